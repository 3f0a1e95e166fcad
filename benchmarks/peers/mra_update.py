# SPDX-License-Identifier: MIT
"""One full learner update of the Memory Recall Agent in PyTorch: forward, backward and Adam.

    images [T, B, 72, 96, 3] bytes / 255 -> IMPALA ResNet (facts 1.2) -> x [T, B, 256]
    the recurrent core with its memory (mra_core.py)                  -> h [T, B, 512]
    policy and value heads, V-trace (facts 1.5), CPC with its weight (facts 1.6), one Adam step, eps 1e-4 (facts 1.8)
Loss = sum over t, b of [-log pi(a) A + c_base/2 (v - V)^2 + c_ent sum pi log pi] + c_cpc sum over t, k, b of L_{t,k}.
V_T comes with the trajectory as `bootstrap`, no episode ends inside the unroll, and memory keys of earlier unrolls stay
cached, so T x B frames pass through the network in an update. Not timed: putting the memory back between repeats.
The scores of CPC for prediction distance k are one [T-k, T-k] matrix for each row, positives on its diagonal.

The file given by --weights or made by --save holds, besides the weights, ring and initial state of mra_core.py:
    encoder.<s>.entry.weight, encoder.<s>.<b>.first.weight, .second.weight [3, 3, in, out], .bias [out]; s 0..2, b 0..1
    encoder.out.weight [9*12*32, 256] rows in order row, column, channel; encoder.out.bias [256]
    policy.weight [H, A], policy.bias; value.weight [H, 1], value.bias; cpc.weight [N, H, X], k = 1..N
    images (U8), actions [T, B] (I32), rewards, discounts, behaviour.log_probability [T, B], bootstrap [B]
--outputs writes loss [1], x, h and grad.<name> of every weight, before Adam changes them.
"""

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

import mra_core
import timing

CHANNELS = (16, 32, 32)
BASELINE, ENTROPY, CPC, RATE, DISCOUNT = 0.5, 0.0052, 10.0, 1e-5, 0.98


class Block(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first = torch.nn.Conv2d(channels, channels, 3, padding=1)
        self.second = torch.nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        return x + self.second(F.relu(self.first(F.relu(x)), inplace=True))


class Encoder(torch.nn.Module):
    def __init__(self, rows, columns, width):
        super().__init__()
        self.entries, self.blocks = torch.nn.ModuleList(), torch.nn.ModuleList()
        channels = 3
        for out in CHANNELS:
            self.entries.append(torch.nn.Conv2d(channels, out, 3, padding=1))
            self.blocks.append(torch.nn.ModuleList((Block(out), Block(out))))
            rows, columns, channels = (rows + 1) // 2, (columns + 1) // 2, out
        self.shape = (rows, columns, channels)
        self.out = torch.nn.Linear(rows * columns * channels, width)

    def forward(self, images):
        y = images
        for entry, blocks in zip(self.entries, self.blocks):
            y = F.max_pool2d(entry(y), 3, 2, ceil_mode=True)  # SAME pads even sizes behind the end only
            for block in blocks:
                y = block(y)
        return F.relu(self.out(F.relu(y).permute(0, 2, 3, 1).flatten(1)))

    def convolutions(self):
        for s, (entry, blocks) in enumerate(zip(self.entries, self.blocks)):
            yield f"encoder.{s}.entry", entry
            for b, block in enumerate(blocks):
                yield f"encoder.{s}.{b}.first", block.first
                yield f"encoder.{s}.{b}.second", block.second


class Agent(torch.nn.Module):
    def __init__(self, rows, columns, X, H, D, K, A, N):
        super().__init__()
        self.encoder = Encoder(rows, columns, X)
        self.core = mra_core.Core(X, H, D, K, "split")
        self.policy = torch.nn.Linear(H, A)
        self.value = torch.nn.Linear(H, 1)
        self.cpc = torch.nn.Parameter(torch.empty(N, H, X))

    def linears(self):
        return ("encoder.out", self.encoder.out), ("policy", self.policy), ("value", self.value)

    @torch.no_grad()
    def load(self, tensors):
        self.core.load(tensors)
        for name, layer in self.encoder.convolutions():
            layer.weight.copy_(tensors[name + ".weight"].permute(3, 2, 0, 1))
            layer.bias.copy_(tensors[name + ".bias"])
        for name, layer in self.linears():
            layer.weight.copy_(tensors[name + ".weight"].t())
            layer.bias.copy_(tensors[name + ".bias"])
        self.cpc.copy_(tensors["cpc.weight"])

    def gradients(self):
        found = self.core.gradients()
        for name, layer in self.encoder.convolutions():
            found[f"grad.{name}.weight"] = layer.weight.grad.permute(2, 3, 1, 0)
            found[f"grad.{name}.bias"] = layer.bias.grad
        for name, layer in self.linears():
            found[f"grad.{name}.weight"] = layer.weight.grad.t()
            found[f"grad.{name}.bias"] = layer.bias.grad
        found["grad.cpc.weight"] = self.cpc.grad
        return found


def random_tensors(T, B, rows, columns, N, A, distances, seed):
    X, H, D = 256, 512, 128
    tensors = mra_core.random_tensors(T, B, X, H, D, N, seed)
    del tensors["x"], tensors["coefficients"]
    g = torch.Generator().manual_seed(seed + 1)
    torch.manual_seed(seed + 2)
    agent = Agent(rows, columns, X, H, D, 10, A, distances)  # for the default initial values of its layers
    for name, layer in agent.encoder.convolutions():
        tensors[name + ".weight"] = layer.weight.detach().permute(2, 3, 1, 0).contiguous()
        tensors[name + ".bias"] = layer.bias.detach()
    for name, layer in agent.linears():
        tensors[name + ".weight"] = layer.weight.detach().t().contiguous()
        tensors[name + ".bias"] = layer.bias.detach()
    tensors["cpc.weight"] = 0.05 * torch.randn(distances, H, X, generator=g) / H ** 0.5
    tensors["images"] = torch.randint(0, 256, (T, B, rows, columns, 3), generator=g, dtype=torch.uint8)
    tensors["actions"] = torch.randint(0, A, (T, B), generator=g, dtype=torch.int32)
    tensors["rewards"] = (torch.rand(T, B, generator=g) < 0.1).float()
    tensors["discounts"] = torch.full((T, B), DISCOUNT)
    tensors["behaviour.log_probability"] = torch.log(torch.rand(T, B, generator=g) * 0.3 + 0.1)
    tensors["bootstrap"] = torch.randn(B, generator=g)
    return tensors


@torch.no_grad()
def vtrace(ratios, rewards, discounts, values, bootstrap):
    clipped = ratios.clamp(max=1)
    following = torch.cat((values[1:], bootstrap.unsqueeze(0)))
    deltas = clipped * (rewards + discounts * following - values)
    decay = (discounts * clipped).unbind(0)
    total, corrections = torch.zeros_like(bootstrap), []
    for delta, d in zip(reversed(deltas.unbind(0)), reversed(decay)):
        total = delta + d * total
        corrections.append(total)
    targets = values + torch.stack(corrections[::-1])
    targets_following = torch.cat((targets[1:], bootstrap.unsqueeze(0)))
    return targets, clipped * (rewards + discounts * targets_following - values)


def cpc_loss(x, h, weight):
    """x [T, B, X], h [T, B, H], weight [N, H, X]; log(1 - p) = log(-expm1(log p)), kept finite where p rounds to 1."""
    T, x, h = x.shape[0], x.transpose(0, 1), h.transpose(0, 1)
    loss = 0.0
    for k in range(1, weight.shape[0] + 1):
        scores = torch.matmul(h[:, :T - k], weight[k - 1]) @ x[:, k:].transpose(1, 2)
        log_p = scores.log_softmax(2)
        positive = log_p.diagonal(dim1=1, dim2=2)
        log_rest = torch.log(-torch.expm1(log_p.clamp(max=-1e-7)))
        negatives = log_rest.sum() - log_rest.diagonal(dim1=1, dim2=2).sum()
        loss = loss - positive.sum() - negatives / max(1, T - k - 1)
    return loss


def main():
    options = timing.parser("One MRA learner update in PyTorch: forward, backward, Adam.")
    options.set_defaults(repeats=3, warmup=1)
    options.add_argument("--rows", type=int, default=72)
    options.add_argument("--columns", type=int, default=96)
    options.add_argument("--actions", type=int, default=5)
    options.add_argument("--distances", type=int, default=10, help="N of CPC, at most T-1")
    options.add_argument("--layout", choices=("channels_last", "planes"), default="channels_last",
                         help="how the convolutions keep images in memory")
    options.add_argument("--weights", help="safetensors file with weights, inputs and memory")
    options.add_argument("--save", help="write the weights, inputs and memory that are used")
    options.add_argument("--outputs", help="write outputs and gradients of the first run")
    options = options.parse_args()
    timing.use_threads(options.threads)

    if options.weights:
        tensors = load_file(options.weights)
    else:
        tensors = random_tensors(options.steps, options.batch, options.rows, options.columns, options.slots,
                                 options.actions, min(options.distances, options.steps - 1), options.seed)
    if options.save:
        save_file(tensors, options.save)
    T, B, rows, columns, _ = tensors["images"].shape
    options.steps, options.batch = T, B
    distances, H, X = tensors["cpc.weight"].shape
    agent = Agent(rows, columns, X, H, tensors["key.bias"].shape[0], 10, tensors["policy.bias"].shape[0], distances)
    agent.load(tensors)
    layout = torch.channels_last if options.layout == "channels_last" else torch.contiguous_format
    agent.encoder.to(memory_format=layout)

    count = int(tensors["ring.count"].item()) if "ring.count" in tensors else tensors["ring.content"].shape[1]
    ring = mra_core.Ring(tensors["ring.content"], count, agent.core.key.weight, agent.core.key.bias)
    adam = torch.optim.Adam([p for p in agent.parameters() if p.requires_grad], lr=RATE, eps=1e-4, fused=True)
    actions = tensors["actions"].long().unsqueeze(2)

    def forward():
        images = tensors["images"].flatten(0, 1).permute(0, 3, 1, 2).float().div_(255).contiguous(memory_format=layout)
        x = agent.encoder(images).view(T, B, X)
        h = agent.core(x, tensors["initial.h"], tensors["initial.c"], ring)
        log_policy = agent.policy(h).log_softmax(2)
        values = agent.value(h).squeeze(2)
        log_action = log_policy.gather(2, actions).squeeze(2)
        ratios = (log_action.detach() - tensors["behaviour.log_probability"]).exp()
        targets, advantages = vtrace(ratios, tensors["rewards"], tensors["discounts"], values.detach(),
                                     tensors["bootstrap"])
        loss = (-(log_action * advantages).sum() + 0.5 * BASELINE * (targets - values).square().sum()
                + ENTROPY * (log_policy.exp() * log_policy).sum() + CPC * cpc_loss(x, h, agent.cpc))
        return loss, x, h

    def backward(result):
        adam.zero_grad()
        result[0].backward()
        adam.step()

    if options.outputs:
        ring.restore()
        loss, x, h = forward()
        loss.backward()
        saved = {"loss": loss.detach().view(1), "x": x.detach(), "h": h.detach(), **agent.gradients()}
        save_file({name: value.contiguous() for name, value in saved.items()}, options.outputs)

    if options.repeats > 0:
        times = timing.measure(forward, backward, options.repeats, options.warmup, ring.restore)
        timing.report(options, *times, program="mra_update", layout=options.layout)


if __name__ == "__main__":
    main()
