# SPDX-License-Identifier: MIT
"""MemUP and its baselines on the copy task in PyTorch, whole training updates, as a careful user would write them.

A pass goes over T steps of B sequences; it is what is timed:
    memup             T / r updates; before them the moving averages go over all T steps at once and say how uncertain
                      each is. An update: r steps of the memory and of the predictor's own LSTM with carried states, K
                      targets for every f-th step and the last, the head on all pairs, backward, clip, Adam, averages
    tbptt_lstm        T / r updates of r steps with a carried state
    tbptt_transformer      T / r updates of r steps, each of which sees its own r steps only
    bptt_lstm, bptt_srnn, bptt_transformer      one update of T steps
LSTMs are torch.nn.LSTM (oneDNN's where --onednn 1), attention is scaled_dot_product_attention with is_causal, Adam is
fused. The sequences are drawn before anything is timed, which the other side does within its updates.

--weights names the file that benchmark-memup_step wrote: float32 parameters under its names, weights with one row an
input, LSTM gates i, f, g, o with 1 to be added at f; tokens and targets [passes, T, B]; sizes r, f, K, layers of the
context, updates, B. torch's second LSTM bias stays zero. --outputs writes the loss and the gradient norm of each of
the first `updates` updates, and needs --dropout 0 on both sides to be compared.
"""

import copy
import json
import math
import resource
import statistics
import time

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

import timing


def linear(tensors, name):
    weight = tensors[f"{name}.weight"]
    layer = torch.nn.Linear(*weight.shape)
    with torch.no_grad():
        layer.weight.copy_(weight.t())
        layer.bias.copy_(tensors[f"{name}.bias"].view(-1))
    return layer


def embedding(tensors, name):
    return torch.nn.Embedding.from_pretrained(tensors[f"{name}.table"].clone(), freeze=False)


def lstm(tensors, name, dropout):
    layers = sum(1 for key in tensors if key.startswith(f"{name}.gates.") and key.endswith(".weight"))
    H = tensors[f"{name}.gates.0.weight"].shape[1] // 4
    inputs = tensors[f"{name}.gates.0.weight"].shape[0] - H
    net = torch.nn.LSTM(inputs, H, layers, dropout=dropout if layers > 1 else 0.0)
    with torch.no_grad():
        for n in range(layers):
            weight = tensors[f"{name}.gates.{n}.weight"]
            getattr(net, f"weight_ih_l{n}").copy_(weight[:-H].t())
            getattr(net, f"weight_hh_l{n}").copy_(weight[-H:].t())
            getattr(net, f"bias_ih_l{n}").copy_(tensors[f"{name}.gates.{n}.bias"].view(-1))
            getattr(net, f"bias_ih_l{n}")[H:2 * H] += 1
            getattr(net, f"bias_hh_l{n}").zero_().requires_grad_(False)
    return net


def costs(logits, targets):
    """[T, B] of logits [T, B, C] and targets [T, B]."""
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none").view(targets.shape)


class Trainer:
    """Parameters of `net`, clipped at norm 1 and stepped by Adam."""

    def __init__(self, net):
        self.net = net
        self.trained = [p for p in net.parameters() if p.requires_grad]
        self.adam = torch.optim.Adam(self.trained, lr=2e-4, eps=1e-8, fused=True)
        self.record = None  # lists of losses and norms

    def step(self, loss):
        self.adam.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.trained, 1.0)
        self.adam.step()
        if self.record is not None:
            self.record[0].append(loss.item())
            self.record[1].append(norm.item())


class Recurrent(torch.nn.Module):
    """An embedding and an LSTM: h [T, B, H] of tokens [T, B]."""

    def __init__(self, tensors, encoder, name, dropout):
        super().__init__()
        self.embedding, self.lstm = embedding(tensors, encoder), lstm(tensors, name, dropout)

    def forward(self, tokens, state=None):
        return self.lstm(self.embedding(tokens), state)


class MemupNet(torch.nn.Module):
    def __init__(self, tensors, context, dropout):
        super().__init__()
        self.memory = Recurrent(tensors, "encoder", "controller", dropout)
        if context:
            self.view = Recurrent(tensors, "predictor.encoder", "predictor.context", dropout)
        else:
            self.view = embedding(tensors, "predictor.encoder")
        self.context = context
        layers = []
        while f"predictor.hidden.{len(layers) // 2}.weight" in tensors:
            layers += [linear(tensors, f"predictor.hidden.{len(layers) // 2}"), torch.nn.ReLU()]
        self.head = torch.nn.Sequential(*layers, torch.nn.Dropout(dropout), linear(tensors, "predictor.answer"))

    def seen(self, tokens, state=None):
        return self.view(tokens, state) if self.context else (self.view(tokens), None)

    def predict(self, seen, memory):
        return self.head(torch.cat((seen, memory), 2))


class Memup(Trainer):
    def __init__(self, tensors, options):
        r, f, K, context = (int(n) for n in tensors["sizes"][:4])
        super().__init__(MemupNet(tensors, context, options.dropout))
        self.rollout, self.every, self.selected = r, f, K
        self.slow = copy.deepcopy(self.net).eval().requires_grad_(False)
        self.slow_flat = list(self.slow.parameters())
        self.fast_flat = list(self.net.parameters())

    @torch.no_grad()
    def detect(self, tokens, targets):
        memory, _ = self.slow.memory(tokens)
        seen, _ = self.slow.seen(tokens)
        return costs(self.slow.predict(seen, memory), targets), seen

    def choose(self, uncertainty, i):
        """[K, B]: steps from i on, most uncertain first, again in the same order where there are too few."""
        left = uncertainty.shape[0] - i
        chosen = uncertainty[i:].topk(min(self.selected, left), 0).indices + i
        return chosen if left >= self.selected else chosen[torch.arange(self.selected) % left]

    def run(self, tokens, targets):
        T, B = tokens.shape
        rows = torch.arange(B)
        uncertainty, contexts = self.detect(tokens, targets)
        state = view_state = None
        for begin in range(0, T, self.rollout):
            piece = slice(begin, begin + self.rollout)
            memory, state = self.net.memory(tokens[piece], state)
            seen, view_state = self.net.seen(tokens[piece], view_state)
            state = tuple(s.detach() for s in state)
            if view_state is not None:
                view_state = tuple(s.detach() for s in view_state)
            n = memory.shape[0]
            at = [j for j in range(n) if (j + 1) % self.every == 0 or j == n - 1]
            targets_of = [self.choose(uncertainty, begin + j) for j in at]
            k = torch.cat(targets_of)
            # without a context the predictor's embedding is trained by chosen steps as well
            far = contexts[k, rows] if self.net.context else self.net.view(tokens[k, rows])
            m = torch.cat([memory[j].expand(self.selected, -1, -1) for j in at] + [memory])
            loss = costs(self.net.predict(torch.cat((far, seen)), m), torch.cat((targets[k, rows], targets[piece])))
            self.step(loss[:len(k)].mean() + loss[len(k):].mean())
            torch._foreach_lerp_(self.slow_flat, [p.detach() for p in self.fast_flat], 0.03)


class Answering(torch.nn.Module):
    """Logits [T, B, C] of a core's h."""

    def __init__(self, tensors, core):
        super().__init__()
        self.core, self.answer = core, linear(tensors, "learner.classes")

    def forward(self, tokens, state=None):
        h, state = self.core(tokens, state)
        return self.answer(h), state


class Truncated(Trainer):
    def __init__(self, tensors, core):
        super().__init__(Answering(tensors, core))
        self.unroll = int(tensors["sizes"][0])

    def run(self, tokens, targets):
        state = None
        for begin in range(0, tokens.shape[0], self.unroll):
            piece = slice(begin, begin + self.unroll)
            logits, state = self.net(tokens[piece], state)
            state = state and tuple(s.detach() for s in state)
            self.step(costs(logits, targets[piece]).mean())


class Whole(Trainer):
    def run(self, tokens, targets):
        logits, _ = self.net(tokens)
        self.step(costs(logits, targets).mean())


def shuffle(b):
    """h_t = relu(b_t + roll(h_{t-1})) of b [T, B, H]."""
    h = torch.relu(b[0])
    outputs = [h]
    for now in b[1:].unbind(0):
        h = torch.relu(now + torch.roll(h, 1, 1))
        outputs.append(h)
    return torch.stack(outputs)


class Srnn(torch.nn.Module):
    def __init__(self, tensors):
        super().__init__()
        self.embedding = embedding(tensors, "encoder")
        self.hyper = torch.nn.Sequential(linear(tensors, "controller.hyper.0"), torch.nn.ReLU(),
                                         linear(tensors, "controller.sum"))
        self.gate = linear(tensors, "controller.gate")

    def forward(self, tokens, _):
        x = self.embedding(tokens)
        return shuffle(self.hyper(x) * torch.sigmoid(self.gate(x))), None


class Layer(torch.nn.Module):
    def __init__(self, tensors, name):
        super().__init__()
        self.norms = torch.nn.ModuleList()
        for norm in (f"{name}.attention.norm", f"{name}.inner.norm"):
            self.norms.append(layer_norm(tensors, norm))
        self.look, self.combine = linear(tensors, f"{name}.attention.look"), linear(tensors, f"{name}.attention.combine")
        self.widen, self.narrow = linear(tensors, f"{name}.inner.widen"), linear(tensors, f"{name}.inner.narrow")

    def forward(self, x, heads, cosine, sine):
        B, T, W = x.shape
        q, k, v = (part.view(B, T, heads, W // heads).transpose(1, 2) for part in self.look(self.norms[0](x)).chunk(3, 2))
        y = F.scaled_dot_product_attention(turn(q, cosine, sine), turn(k, cosine, sine), v, is_causal=True)
        x = x + self.combine(y.transpose(1, 2).reshape(B, T, W))
        return x + self.narrow(F.gelu(self.widen(self.norms[1](x)), approximate="tanh"))


def layer_norm(tensors, name):
    layer = torch.nn.LayerNorm(tensors[f"{name}.gain"].numel())
    with torch.no_grad():
        layer.weight.copy_(tensors[f"{name}.gain"].view(-1))
        layer.bias.copy_(tensors[f"{name}.bias"].view(-1))
    return layer


def turn(x, cosine, sine):
    """Rotary positions: the plane of columns (f, f + d/2) by the angle n 10000^(-2f/d)."""
    a, b = x.chunk(2, 3)
    return torch.cat((a * cosine - b * sine, a * sine + b * cosine), 3)


class Transformer(torch.nn.Module):
    """Batch first inside."""

    def __init__(self, tensors, heads=4):
        super().__init__()
        self.embedding, self.input = embedding(tensors, "encoder"), linear(tensors, "controller.input")
        self.layers = torch.nn.ModuleList()
        while f"controller.layer.{len(self.layers)}.attention.look.weight" in tensors:
            self.layers.append(Layer(tensors, f"controller.layer.{len(self.layers)}"))
        self.norm, self.heads = layer_norm(tensors, "controller.norm"), heads
        d, T = self.input.out_features // heads, tensors["tokens"].shape[1]
        angle = torch.arange(T).unsqueeze(1) * torch.exp(torch.arange(d // 2) * (-2 * math.log(10000) / d))
        self.cosine, self.sine = angle.cos(), angle.sin()

    def forward(self, tokens, _):
        x = self.input(self.embedding(tokens.t()))
        T = tokens.shape[0]
        for layer in self.layers:
            x = layer(x, self.heads, self.cosine[:T], self.sine[:T])
        return self.norm(x).transpose(0, 1), None


MODELS = {
    "memup": Memup,
    "tbptt_lstm": lambda t, o: Truncated(t, Recurrent(t, "encoder", "controller", o.dropout)),
    "tbptt_transformer": lambda t, o: Truncated(t, Transformer(t)),
    "bptt_lstm": lambda t, o: Whole(Answering(t, Recurrent(t, "encoder", "controller", o.dropout))),
    "bptt_srnn": lambda t, o: Whole(Answering(t, Srnn(t))),
    "bptt_transformer": lambda t, o: Whole(Answering(t, Transformer(t))),
}


def main():
    options = timing.parser(__doc__.splitlines()[0])
    options.add_argument("--model", choices=MODELS, default="memup")
    options.add_argument("--weights", required=True, help="safetensors file that benchmark-memup_step wrote")
    options.add_argument("--outputs", help="write loss and gradient norm of the first updates")
    options.add_argument("--dropout", type=float, default=0.1)
    options.add_argument("--onednn", type=int, choices=(0, 1), default=1)
    options = options.parse_args()
    timing.use_threads(options.threads)
    torch.manual_seed(options.seed)
    torch.backends.mkldnn.set_flags(bool(options.onednn))

    tensors = load_file(options.weights)
    tokens, targets = tensors["tokens"].long(), tensors["targets"].long()
    passes, options.steps, options.batch = tokens.shape
    trainer = MODELS[options.model](tensors, options)
    if options.outputs:
        trainer.record = [], []
        for number in range(passes):
            trainer.run(tokens[number], targets[number])
        updates = int(tensors["sizes"][4])
        losses, norms = (torch.tensor(numbers[:updates]) for numbers in trainer.record)
        save_file({"losses": losses, "gradient_norms": norms}, options.outputs)
        trainer.record = None
    if options.repeats > 0:
        times, processor = [], []
        for turn in range(options.warmup + options.repeats):
            start, before = time.perf_counter(), time.process_time()
            trainer.run(tokens[turn % passes], targets[turn % passes])
            if turn >= options.warmup:
                times.append(1e3 * (time.perf_counter() - start))
                processor.append(1e3 * (time.process_time() - before))
        total_ms = statistics.median(times)
        print(json.dumps({
            "model": options.model, "threads": options.threads, "T": options.steps, "B": options.batch,
            "total_ms": round(total_ms, 1), "processor_ms": round(statistics.median(processor), 1),
            "frames_per_second": round(1e3 * options.steps * options.batch / total_ms),
            "peak_MB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3, 1),
            "torch": torch.__version__, "onednn": options.onednn,
        }), flush=True)


if __name__ == "__main__":
    main()
