#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Training steps of sequence models with a memory in PyTorch on the same GPU, beside benchmark-gpu-dnc and
benchmark-gpu-generative: the same sizes, equations and parameters (names and shapes as there), as a careful user would
write them. A training step is the forward and backward sweep over T time steps and a fused Adam.

    DNC          batch 16, memory 16 x 16, 4 read heads, LSTM 64, T = 20, bits
    five GTMMs   batch 10, T = 25, 28 x 28 frames through the inception network: no memory (VRNN), introspection network,
                 NTM, LRU, DNC at the paper's sizes

Rows: eager; the whole step as one captured CUDA graph; the same graph with the time step compiled by torch.compile. What
does not depend on carried states (encoder, decoder, the frame's part of the posterior, heads) runs once for all T.
Inputs lie on the GPU already, which on the other side are sent with every step. ENGRAM_PEERS_SECONDS (default 200)
bounds the compiled rows: when it is spent, the ones that are left are not begun, and said so.

    sequence_peers.py [--tiny] [--check FILE]

--tiny: small sizes, for ENGRAM_PEERS_DEVICE=cpu. --check: losses of small models with each memory by the weights and
inputs of FILE, which benchmark-gtmm_step --write made on the host, against the losses that are in it.
"""

import argparse
import os
import sys
import time

from peer_timing import captured, device, failed, name_of_device, on_host, timed_ways  # first: it says so where PyTorch is missing

import torch
import torch.nn.functional as F
from torch import nn


class Affine(nn.Linear):
    """x W + b of the concatenated inputs."""

    def forward(self, *inputs):
        return super().forward(inputs[0] if len(inputs) == 1 else torch.cat(inputs, -1))


class Lstm(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.gates, self.hidden = Affine(inputs + hidden, 4 * hidden), hidden

    def begin(self, B):
        return torch.zeros(B, self.hidden, device=device), torch.zeros(B, self.hidden, device=device)

    def forward(self, inputs, state):
        c, h = state
        i, f, g, o = self.gates(*inputs, h).chunk(4, 1)
        c = torch.sigmoid(f + 1) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        return h, (c, h)


def cosine(keys, memory):
    """[B, R, N] of keys [B, R, W] and memory [B, N, W]."""
    norms = (keys.square().sum(2, keepdim=True) + 1e-6).sqrt(), (memory.square().sum(2) + 1e-6).sqrt().unsqueeze(1)
    return torch.bmm(keys, memory.transpose(1, 2)) / (norms[0] * norms[1] + 1e-6)


class NoMemory(nn.Module):
    width = 0


class Introspection(nn.Module):
    def __init__(self, observed, held, slots, heads, hidden=64):
        super().__init__()
        self.hidden = Affine(held, hidden)
        self.logits, self.gate = Affine(hidden, heads * slots), Affine(held, heads * observed)
        self.slots, self.heads, self.observed, self.width = slots, heads, observed, heads * observed

    def begin(self, B):
        return (torch.zeros(B, self.slots, self.observed, device=device),)

    def read(self, seen, h, state):
        weight = F.softplus(self.logits(F.relu(self.hidden(h)))).view(-1, self.heads, self.slots)
        weight = weight / weight.sum(2, keepdim=True)
        return torch.bmm(weight, state[0]).flatten(1) * torch.sigmoid(self.gate(h)), state

    def write(self, seen, h, state):
        return (torch.cat((seen.unsqueeze(1), state[0][:, :-1]), 1),)


class Heads(nn.Module):
    """What NTM, LRU and DNC share: N slots of W columns, R reads, and maps of all of [seen, h] or of h alone."""

    def __init__(self, observed, held, slots, word, heads, sees_all):
        super().__init__()
        self.N, self.W, self.R, self.sees_all = slots, word, heads, sees_all
        self.inputs, self.width = held + (observed if sees_all else 0), heads * word

    def seen(self, seen, h):
        return (seen, h) if self.sees_all else (h,)

    def zeros(self, B, *shape):
        return torch.zeros(B, *shape, device=device)

    def first(self, B, heads):
        weight = self.zeros(B, heads, self.N)
        weight[:, :, 0] = 1
        return weight


class Ntm(Heads):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.read_map = Affine(self.inputs, self.R * (self.W + 6))
        self.write_map = Affine(self.inputs, 3 * self.W + 6)
        self.start = nn.Parameter(torch.randn(self.N, self.W) / (self.N * self.W) ** 0.5)

    def begin(self, B):
        return self.start.expand(B, -1, -1), self.first(B, self.R), self.first(B, 1)

    def address(self, scores, raw, previous):
        content = (F.softplus(raw[:, :, :1]) * scores).softmax(2)
        gate = torch.sigmoid(raw[:, :, 1:2])
        gated = gate * content + (1 - gate) * previous
        s = raw[:, :, 2:5].softmax(2)
        moved = s[:, :, :1] * gated.roll(-1, 2) + s[:, :, 1:2] * gated + s[:, :, 2:] * gated.roll(1, 2)
        return ((1 + F.softplus(raw[:, :, 5:])) * (moved + 1e-16).log()).softmax(2)

    def read(self, seen, h, state):
        memory, reads, writes = state
        keys, raw = self.read_map(*self.seen(seen, h)).split((self.R * self.W, self.R * 6), 1)
        reads = self.address(cosine(keys.view(-1, self.R, self.W), memory), raw.view(-1, self.R, 6), reads)
        return torch.bmm(reads, memory).flatten(1), (memory, reads, writes)

    def write(self, seen, h, state):
        memory, reads, writes = state
        key, erase, add, raw = self.write_map(*self.seen(seen, h)).split((self.W, self.W, self.W, 6), 1)
        writes = self.address(cosine(key.unsqueeze(1), memory), raw.unsqueeze(1), writes)
        w = writes.transpose(1, 2)
        memory = memory * (1 - w * torch.sigmoid(erase).unsqueeze(1)) + w * add.unsqueeze(1)
        return memory, reads, writes


class Lru(Heads):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.key, self.content = Affine(self.inputs, self.R * self.W), Affine(self.inputs, self.R * self.W)
        self.gate = Affine(self.inputs, self.R)

    def begin(self, B):
        usage = self.zeros(B, self.N)
        usage[:, 0] = 1
        reads = self.first(B, self.R)
        return torch.full((B, self.N, self.W), 1e-6, device=device), usage, reads, reads

    def read(self, seen, h, state):
        memory, usage, reads, _ = state
        keys = torch.tanh(self.key(*self.seen(seen, h))).view(-1, self.R, self.W)
        scale = keys.square().sum(2, keepdim=True) * memory.square().sum(2).unsqueeze(1)
        found = (torch.bmm(keys, memory.transpose(1, 2)) / (scale + 1e-6).sqrt()).softmax(2)
        return torch.bmm(found, memory).flatten(1), (memory, usage, found, reads)

    def write(self, seen, h, state):
        memory, usage, found, before = state
        inputs = self.seen(seen, h)
        add = torch.tanh(self.content(*inputs)).view(-1, self.R, self.W)
        with torch.no_grad():
            least = torch.zeros_like(found)
            least.scatter_(2, usage.topk(self.R, 1, largest=False).indices.unsqueeze(2), 1.0)
        again = torch.sigmoid(self.gate(*inputs)).unsqueeze(2)
        written = again * before + (1 - again) * least
        memory = memory * (1 - least.sum(1).unsqueeze(2)) + torch.bmm(written.transpose(1, 2), add)
        with torch.no_grad():
            usage = 0.95 * usage + found.sum(1) + written.sum(1)
        return memory, usage, found, found


class Dnc(Heads):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.read_map = Affine(self.inputs, self.R * (self.W + 4))
        self.write_map = Affine(self.inputs, 3 * (self.W + 1) + self.R)
        self.register_buffer("off_diagonal", 1 - torch.eye(self.N))

    def begin(self, B):
        reads, writes = self.zeros(B, self.R, self.N), self.zeros(B, self.N)
        return self.zeros(B, self.N, self.W), self.zeros(B, self.N), reads, reads, writes, writes, \
            self.zeros(B, self.N, self.N)

    def read(self, seen, h, state):
        memory, usage, reads, _, written, precedence, link = state
        z = self.read_map(*self.seen(seen, h))
        keys, strength, modes = z.split((self.R * self.W, self.R, 3 * self.R), 1)
        content = (F.softplus(strength).unsqueeze(2) * cosine(keys.view(-1, self.R, self.W), memory)).softmax(2)
        rows, columns = written.unsqueeze(2), written.unsqueeze(1)
        link = ((1 - rows - columns) * link + rows * precedence.unsqueeze(1)) * self.off_diagonal
        precedence = (1 - written.sum(1, keepdim=True)) * precedence + written
        modes = modes.view(-1, self.R, 3).softmax(2)
        found = modes[:, :, :1] * torch.bmm(reads, link) + modes[:, :, 1:2] * torch.bmm(reads, link.transpose(1, 2))
        found = found + modes[:, :, 2:] * content
        return torch.bmm(found, memory).flatten(1), (memory, usage, found, reads, written, precedence, link)

    def write(self, seen, h, state):
        memory, usage, found, before, written, precedence, link = state
        W, R = self.W, self.R
        key, add, erase, free, by_allocation, gate, strength = self.write_map(*self.seen(seen, h)).split(
            (W, W, W, R, 1, 1, 1), 1)
        content = (F.softplus(strength) * cosine(key.unsqueeze(1), memory).squeeze(1)).softmax(1)
        usage = (usage + (1 - usage) * written.detach()).clamp(max=1)
        kept = (1 - torch.sigmoid(free).unsqueeze(2) * before).clamp(min=0)
        # The gradients of prod and cumprod ask the GPU whether a factor is zero, which no graph can hold.
        for head in range(R):
            usage = usage * kept[:, head]
        used, order = (1e-6 + (1 - 1e-6) * usage).sort(1)
        free_first = (1 - used) * torch.cat((torch.ones_like(used[:, :1]), used[:, :-1].log().cumsum(1).exp()), 1)
        allocation = torch.zeros_like(used).scatter(1, order, free_first)
        by_allocation = torch.sigmoid(by_allocation)
        written = torch.sigmoid(gate) * (by_allocation * allocation + (1 - by_allocation) * content)
        w = written.unsqueeze(2)
        memory = memory * (1 - w * torch.sigmoid(erase).unsqueeze(1)) + w * add.unsqueeze(1)
        return memory, usage, found, found, written, precedence, link


class Bits(nn.Module):
    """Reads, controls, writes; says bits at every step."""

    def __init__(self, columns, targets, hidden, memory):
        super().__init__()
        self.memory = memory
        self.controller = Lstm(columns + self.memory.width, hidden)
        self.bits = Affine(hidden, targets)
        self.step = self.one_step

    def one_step(self, x, held, state):
        recalled, state = self.memory.read(x, held[1], state)
        h, held = self.controller((x, recalled), held)
        return h, held, self.memory.write(x, h, state)

    def forward(self, data):
        T, B, _ = data["observation"].shape
        held, state, all_h = self.controller.begin(B), self.memory.begin(B), []
        for t in range(T):
            h, held, state = self.step(data["observation"][t], held, state)
            all_h.append(h)
        logits = self.bits(torch.stack(all_h))
        wrong = F.binary_cross_entropy_with_logits(logits, data["target"], reduction="none").sum(2, keepdim=True)
        return (wrong * data["weight"]).mean()


class Inception(nn.Module):
    """Two blocks of four convolutions side by side and one that halves the image; and the same backwards."""

    kernels, maps, streams = (1, 3, 5, 7), (32, 64), 8

    def __init__(self, size, latent_and_context):
        super().__init__()
        joined, channels = 4 * self.streams, (1,) + self.maps
        self.small = size // 4

        def side_by_side(make):
            return nn.ModuleList(make(k) for k in self.kernels)

        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        for i, to in enumerate(self.maps):
            last = i + 1 == len(self.maps)
            self.down.append(nn.ModuleList((
                side_by_side(lambda k: nn.Conv2d(channels[i], self.streams, k, padding=k // 2, bias=False)),
                nn.BatchNorm2d(joined), nn.Conv2d(joined, to, 3, 2, 1, bias=last),
                nn.Identity() if last else nn.BatchNorm2d(to))))
        for i in reversed(range(len(self.maps))):
            self.up.append(nn.ModuleList((
                nn.ConvTranspose2d(self.maps[i], joined, 3, 2, 1, 1, bias=False), nn.BatchNorm2d(joined),
                side_by_side(lambda k: nn.ConvTranspose2d(self.streams, channels[i], k, padding=k // 2,
                                                          bias=i == 0 and k == 1)),
                nn.BatchNorm2d(channels[i]) if i > 0 else nn.Identity())))
        self.first = Affine(latent_and_context, self.small * self.small * self.maps[-1])

    def width(self):
        return self.small * self.small * self.maps[-1]

    def encode(self, frames):
        x = 2 * frames - 1
        for i, (streams, joined, halve, norm) in enumerate(self.down):
            x = halve(F.relu(joined(torch.cat([s(x) for s in streams], 1))))
            if i + 1 < len(self.down):
                x = F.relu(norm(x))
        return x.flatten(1)

    def decode(self, code):
        x = F.relu(self.first(code)).view(-1, self.maps[-1], self.small, self.small)
        for i, (double, joined, streams, norm) in enumerate(self.up):
            parts = F.relu(joined(double(x))).chunk(4, 1)
            x = sum(s(part) for s, part in zip(streams, parts))
            if i + 1 < len(self.up):
                x = F.relu(norm(x))
        return x


class Generative(nn.Module):
    """Controls, reads, infers, writes; without a memory infers, then controls."""

    def __init__(self, memory, size, hidden, latent, features=128):
        super().__init__()
        self.memory, self.latent = memory, latent
        self.remembers = memory.width > 0
        self.with_held = not isinstance(memory, Introspection)
        context = memory.width + (hidden if self.with_held else 0)
        self.controller = Lstm(latent if self.remembers else 2 * features, hidden)
        self.vision = Inception(size, latent + context)
        self.prior, self.posterior = Affine(context, 2 * latent), Affine(context, 2 * latent)
        self.posterior_of_x = nn.Linear(self.vision.width(), 2 * latent, bias=False)
        if not self.remembers:
            self.x_features, self.z_features = Affine(self.vision.width(), features), Affine(latent, features)
        self.step = self.one_step

    def infer(self, given, of_x, noise):
        prior, posterior = self.prior(*given).chunk(2, 1), (self.posterior(*given) + of_x).chunk(2, 1)
        prior_sigma, sigma = (F.softplus(raw + 0.54) + 1e-4 for raw in (prior[1], posterior[1]))
        ratio, gap = sigma / prior_sigma, (posterior[0] - prior[0]) / prior_sigma
        divergence = (0.5 * (ratio.square() + gap.square() - 1) - ratio.log()).sum(1)
        return posterior[0] + sigma * noise, divergence

    def one_step(self, of_x, fx, noise, z, held, state):
        if not self.remembers:
            given = (held[1],)
            z, divergence = self.infer(given, of_x, noise)
            _, held = self.controller((fx, F.relu(self.z_features(z))), held)
            return z, divergence, torch.cat((z, *given), 1), held, state
        before = z
        h, held = self.controller((z,), held)
        context, state = self.memory.read(before, h, state)
        given = (context, h) if self.with_held else (context,)
        z, divergence = self.infer(given, of_x, noise)
        return z, divergence, torch.cat((z, *given), 1), held, self.memory.write(z, h, state)

    def forward(self, data):
        frames = data["frames"]
        T, B = frames.shape[:2]
        x = self.vision.encode(frames.flatten(0, 1))
        of_x = self.posterior_of_x(x).view(T, B, -1)
        fx = of_x if self.remembers else F.relu(self.x_features(x)).view(T, B, -1)
        noise = torch.randn(T, B, self.latent, device=device)
        z, held = torch.zeros(B, self.latent, device=device), self.controller.begin(B)
        state, divergences, codes = self.memory.begin(B) if self.remembers else (), [], []
        for t in range(T):
            z, divergence, code, held, state = self.step(of_x[t], fx[t], noise[t], z, held, state)
            divergences.append(divergence)
            codes.append(code)
        logits = self.vision.decode(torch.cat(codes))
        wrong = F.binary_cross_entropy_with_logits(logits, frames.flatten(0, 1), reduction="none").flatten(1).sum(1)
        return (torch.cat(divergences) + wrong).mean()


started = time.perf_counter()
budget = float(os.environ.get("ENGRAM_PEERS_SECONDS", "200"))


def rows(what, net, data, unit, per_call):
    net = net.to(device)
    adam = torch.optim.Adam(net.parameters(), lr=3e-4, fused=not on_host, capturable=not on_host)

    def update():
        adam.zero_grad(set_to_none=True)
        net(data).backward()
        adam.step()

    def compiled():
        net.step = torch.compile(net.one_step)
        return captured(update)

    ways = {"eager": lambda: update}
    if not on_host:
        ways["graph"] = lambda: captured(update)
        if time.perf_counter() - started < budget:
            ways["compiled graph"] = compiled
        else:
            print(f"PyTorch compiled graph: {what} left out: {budget:.0f} s were spent before", flush=True)
    timed_ways(what, ways, unit, per_call, repeats=1 if on_host else 10)


def check(path):
    """The losses of models with each memory by another program's weights and inputs, against that program's."""
    from safetensors.torch import load_file
    tensors, wrong = load_file(path), 0
    for name, memory in {"dnc": Dnc(10, 24, 12, 6, 3, True), "ntm": Ntm(10, 24, 12, 6, 3, True),
                         "lru": Lru(10, 24, 12, 6, 3, True), "introspection": Introspection(10, 24, 12, 3)}.items():
        net = Bits(10, 8, 24, memory)

        def found(parameter):
            parameter = parameter.replace("_map", "").replace("bits", "learner.bits")
            return tensors[f"{name}.{parameter}"]

        with torch.no_grad():
            for part, layer in net.named_modules():
                if isinstance(layer, Affine):
                    layer.weight.copy_(found(part + ".weight").t())
                    layer.bias.copy_(found(part + ".bias").view(-1))
            if name == "ntm":
                memory.start.copy_(found("memory.start").view_as(memory.start))
        loss = net({k: tensors[f"{name}.input.{k}"] for k in ("observation", "target", "weight")}).item()
        theirs = tensors[name + ".loss"].item()
        print(f"{name}: loss {loss:.7f} here, {theirs:.7f} in {path}")
        wrong += not abs(loss - theirs) < 1e-5 * abs(theirs)
    return 1 if wrong else 0


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--tiny", action="store_true")
    options.add_argument("--check")
    options = options.parse_args()
    torch.manual_seed(1)
    if options.check:
        return check(options.check)
    print(f"PyTorch {torch.__version__}, {name_of_device()}")
    T, B = (4, 3) if options.tiny else (20, 16)
    data = {name: torch.rand(T, B, width, device=device) for name, width in (("observation", 10), ("target", 8),
                                                                           ("weight", 1))}
    rows(f"DNC, 16 x 16, 4 heads, T {T}, B {B}", Bits(10, 8, 64, Dnc(10, 64, 16, 16, 4, True)), data, "us/update", lambda us: us)
    T, B, Z = (4, 3, 8) if options.tiny else (25, 10, 32)
    H, wide = (16, 24) if options.tiny else (208, 440)
    slots, word = (6, 5) if options.tiny else (25, 32)
    models = {"VRNN": (NoMemory(), H), "introspective GTMM": (Introspection(Z, wide, slots, 5), wide),
              "NTM-GTMM": (Ntm(Z, H, slots, word, 5, False), H), "LRU-GTMM": (Lru(Z, H, 5 * slots, word, 5, False), H),
              "DNC-GTMM": (Dnc(Z, H, slots, word, 5, False), H)}
    frames = {"frames": torch.rand(T, B, 1, 28, 28, device=device)}
    for precision in ("highest", "high"):
        torch.set_float32_matmul_precision(precision)
        torch.backends.cudnn.allow_tf32 = precision == "high"
        for name, (memory, hidden) in models.items():
            rows(f"{name}, {'float' if precision == 'highest' else 'tf32'}", Generative(memory, 28, hidden, Z), frames,
                 "frames/s", lambda us: 1e6 * T * B / us)
        if on_host:
            break
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
