# SPDX-License-Identifier: MIT
"""The memories of today in PyTorch: GRU, MinGRU, the linear recurrent unit, S5, FFM, SHM, mLSTM, gated DeltaNet, memory
traces and GTrXL, from the equations at the head of each header of the library.

Parameters have the names of the file that benchmark-memory_step writes, and maps lie as torch.nn.Linear has them.
forward(x) goes from states of zero over x [T, B, X] to answers [T, B, O]. What hangs on the input alone is computed for
all T steps at once; what is left is a loop of step(elements, state) -> (state, what is read of it), or, where `parallel`
is set, a form without a loop: a scan in log space (MinGRU), a scan by doubling (LRU, S5, FFM, SHM), attention of all
steps to all (mLSTM, GTrXL), one chunk with a triangular system (gated DeltaNet), a matrix of powers (memory traces).
FFM is published with a cumulative sum over powers of its poles, in double: in float the norm of its second gradient was
7e-4 off. GTrXL has no loop but a step to act with.

A complex state [B, 2, N] has its real parts first: three calls a step, eager or compiled. There are no resets here.
"""

import math

import torch
import torch.nn.functional as F


class Weights(torch.nn.Module):
    """Parameters by the names of the file, one module a dot: `gates.weight` is self.gates.weight, [columns, inputs]."""

    def put(self, name, value):
        first, _, rest = name.partition(".")
        if rest:
            if first not in self._modules:
                self.add_module(first, Weights())
            self._modules[first].put(rest, value)
        else:
            row = value.shape[0] == 1
            self.register_parameter(name, torch.nn.Parameter(
                value.reshape(-1).clone() if row else value.t().contiguous() if name == "weight" else value.clone()))


def linear(x, w):
    return F.linear(x, w.weight, getattr(w, "bias", None))


def layer_norm(x, w):
    return F.layer_norm(x, x.shape[-1:], w.gain, w.bias, 1e-5)


def log_logistic(x):
    return -F.softplus(-x)


class Today(Weights):
    """Layers, each of which makes [T, B, H] of what the one below gives; layer 0 sees `enter` of the inputs."""

    parallel = False
    compiled = False

    def __init__(self, tensors):
        super().__init__()
        for name, value in tensors.items():
            if name not in ("x", "target", "updates"):
                self.put(name, value)
        layers = getattr(self.controller, "layer", None)
        self.layers = list(layers.children()) if isinstance(layers, Weights) else []
        self.layers = self.layers or [self.controller]

    def enter(self, x):
        return linear(x, self.controller.input)

    def forward(self, x):
        x = self.enter(x)
        for w in self.layers:
            x = self.over_steps(w, x)
        return linear(x, self.learner.numbers)

    def over_steps(self, w, x):
        fixed = self.fixed(w)
        elements, rest, _ = self.lift(w, x, None, fixed)
        return self.out(w, x, self.scan(w, elements) if self.parallel else self.loop(w, elements, fixed), rest)

    def loop(self, w, elements, fixed):
        state, found = self.first(w, elements[0].shape[1]), []
        for now in zip(*(e.unbind(0) for e in elements)):
            state, read = self.step(now, state, fixed)
            found.append(read)
        return torch.stack(found)

    @torch.no_grad()
    def begin(self, x):
        return [(self.window(w, x.shape[1]), self.first(w, x.shape[1]), self.fixed(w)) for w in self.layers]

    def fixed(self, w):
        """What is made of parameters alone: once an unroll, and once for all steps of acting."""

    def window(self, w, B):
        """Inputs of steps before that a layer's lift sees, as a convolution does."""

    def act(self, now, states):
        """The answer [B, O] to x [B, X], and the states behind it; the first ones are begin(x)."""
        x, after = self.enter(now), []
        for w, (window, state, fixed) in zip(self.layers, states):
            elements, rest, window = self.lift(w, x, window, fixed)
            state, read = self.step(elements, state, fixed)
            x = self.out(w, x, read, rest)
            after.append((window, state, fixed))
        return linear(x, self.learner.numbers), after

    def gradients(self):
        """By the names and in the shapes of the file."""
        return {f"grad.{name}": p.grad.t().contiguous() if name.endswith(".weight") else
                p.grad if p.dim() > 1 else p.grad.view(1, -1) for name, p in self.named_parameters()}


class Gru(Today):
    """Not compiled it is what torch.nn.GRU and torch.nn.GRUCell call."""

    def enter(self, x):
        return x

    def lift(self, w, x, window, fixed):
        return (linear(x, w.input),), None, window

    def first(self, w, B):
        return w.recurrent.weight.new_zeros(B, w.recurrent.weight.shape[1])

    def step(self, now, h, fixed):
        r, z, n = now[0].chunk(3, -1)
        r_h, z_h, n_h = linear(h, self.controller.recurrent).chunk(3, -1)
        h = torch.lerp(torch.tanh(n + torch.sigmoid(r + r_h) * n_h), h, torch.sigmoid(z + z_h))
        return h, h

    def out(self, w, x, h, rest):
        return h

    def maps(self):
        w = self.controller
        return w.input.weight, w.recurrent.weight, w.input.bias, w.recurrent.bias

    def over_steps(self, w, x):
        if self.compiled:
            return super().over_steps(w, x)
        return torch.gru(x, self.first(w, x.shape[1])[None], self.maps(), True, 1, 0.0, True, False, False)[0]

    def act(self, now, states):
        if self.compiled:
            return super().act(now, states)
        h = torch.gru_cell(now, states[0][1], *self.maps())
        return linear(h, self.learner.numbers), [(None, h, None)]


class MinGru(Today):
    def lift(self, w, x, window, fixed):
        u, z, o = linear(x, w.gates).chunk(3, -1)
        if self.parallel:
            return (log_logistic(-z), log_logistic(z) + torch.where(u >= 0, torch.log(F.relu(u) + 0.5),
                                                                    log_logistic(u))), o, window
        z = torch.sigmoid(z)
        return (1 - z, z * torch.where(u >= 0, u + 0.5, torch.sigmoid(u))), o, window

    def first(self, w, B):
        return w.gates.weight.new_zeros(B, w.gates.weight.shape[1])

    def step(self, now, h, fixed):
        h = torch.addcmul(now[1], now[0], h)
        return h, h

    def scan(self, w, elements):
        keep, add = elements
        kept = torch.cumsum(keep, 0)
        return torch.exp(kept + torch.logcumsumexp(add - kept, 0))

    def out(self, w, x, h, o):
        return torch.lerp(x, h, torch.sigmoid(o))


class Diagonal(Today):
    """s' = exp(-decay + i angle) s + b of complex numbers: a layer says its poles and its b."""

    def first(self, w, B):
        weight = (w.mix if hasattr(w, "mix") else w.read).weight
        return weight.new_zeros(B, 2, weight.shape[1] // 2)

    def fixed(self, w):
        """What a state is multiplied by, and its parts exchanged."""
        decay, angle = self.poles(w)
        length = torch.exp(-decay)
        im = length * torch.sin(angle)
        return length * torch.cos(angle), torch.stack((-im, im))

    def step(self, now, s, fixed):
        s = torch.addcmul(torch.addcmul(now[0], fixed[0], s), fixed[1], s.flip(-2))
        return s, s

    def scan(self, w, elements):
        """By doubling: what came 1, 2, 4, ... steps before, by as many turns of the pole."""
        decay, angle = self.poles(w)
        s, distance = elements[0], 1
        while distance < len(s):
            length, turn = torch.exp(-distance * decay), distance * angle
            re, im = length * torch.cos(turn), length * torch.sin(turn)
            before = s[:-distance]
            turned = torch.addcmul(torch.addcmul(s[distance:], re, before), torch.stack((-im, im)), before.flip(-2))
            s, distance = torch.cat((s[:distance], turned)), 2 * distance
        return s

    def gated(self, w, x, u, s, pairs):
        y = F.gelu(torch.addcmul(pairs * linear(s.flatten(-2), w.read), w.through, u), approximate="tanh")
        y, gate = linear(y, w.gate).chunk(2, -1)
        return torch.addcmul(x, y, torch.sigmoid(gate))


class LinearRecurrentUnit(Diagonal):
    def poles(self, w):
        return torch.exp(w.nu), torch.exp(w.theta)

    def fixed(self, w):
        return (*super().fixed(w), torch.exp(w.gamma))

    def lift(self, w, x, window, fixed):
        u = layer_norm(x, w.norm)
        return (fixed[2] * linear(u, w.input).unflatten(-1, (2, -1)),), u, window

    def out(self, w, x, s, u):
        return self.gated(w, x, u, s, 1)


class S5(Diagonal):
    def poles(self, w):
        rate, dt = getattr(w, "lambda"), torch.exp(w.log_dt)
        return -torch.clamp(rate.real, max=-1e-4) * dt, rate.imaginary * dt

    def fixed(self, w):
        rate = getattr(w, "lambda")
        re, im = torch.clamp(rate.real, max=-1e-4), rate.imaginary
        decay, angle = self.poles(w)
        # exp(z) - 1 without a difference of nearly equal numbers
        top_re = torch.expm1(-decay) * torch.cos(angle) - 2 * torch.sin(angle / 2).square()
        top_im = torch.exp(-decay) * torch.sin(angle)
        size = re.square() + im.square()
        f_re, f_im = (top_re * re + top_im * im) / size, (top_im * re - top_re * im) / size
        return (*super().fixed(w), f_re, torch.stack((-f_im, f_im)))

    def lift(self, w, x, window, fixed):
        b = linear(x, w.input).unflatten(-1, (2, -1))
        return (torch.addcmul(fixed[2] * b, fixed[3], b.flip(-2)),), None, window

    def out(self, w, x, s, rest):
        return self.gated(w, x, x, s, 2)


class FastAndForgetful(Diagonal):
    def enter(self, x):
        return x

    def poles(self, w):
        m, c = len(w.alpha), len(w.omega)
        return w.alpha.abs().repeat_interleave(c), w.omega.repeat(m)

    def lift(self, w, x, window, fixed):
        m = len(w.alpha)
        y = linear(x, w.input)
        H = y.shape[-1] // 2 - m
        a, b, o, r = y.split((m, m, H, H), -1)
        u = (a * torch.sigmoid(b)).repeat_interleave(len(w.omega), -1)
        return (torch.stack((u, torch.zeros_like(u)), -2),), (o, r), window

    def out(self, w, x, s, rest):
        o, r = rest
        z = linear(s.flatten(-2), w.mix)
        return torch.lerp(r, F.layer_norm(z, z.shape[-1:], None, None, 1e-5), torch.sigmoid(o))


class StableHadamard(Today):
    def lift(self, w, x, window, fixed):
        N = w.theta.shape[1]
        u = layer_norm(x, w.norm)
        k, q, v, c, eta = linear(u, w.look).split((N, N, N, N, 1), -1)
        k, q = F.relu(k), F.relu(q)
        k, q = k / (k.sum(-1, keepdim=True) + 1e-5), q / (q.sum(-1, keepdim=True) + 1e-5)
        if window is None:
            place, places = torch.zeros(1), []
            for _ in range(len(x)):
                places.append(place)
                place = self.next_place(place)
            place = torch.stack(places)
        else:
            place, window = window, self.next_place(window)
        rows = len(w.theta)
        theta = w.theta[torch.clamp(place * rows, max=rows - 0.5).long()]
        calibration = 1 + torch.tanh(c.unsqueeze(-1) * theta.unsqueeze(-2))
        write = (torch.sigmoid(eta) * k).unsqueeze(-1) * v.unsqueeze(-2)
        return (calibration, write, q), u, window

    def next_place(self, place):
        place = place + 0.6180339887498949
        return torch.where(place < 1, place, place - 1)

    def window(self, w, B):
        return w.theta.new_zeros(B)

    def first(self, w, B):
        return w.theta.new_zeros(B, w.theta.shape[1], w.theta.shape[1])

    def step(self, now, matrix, fixed):
        calibration, write, q = now
        matrix = torch.addcmul(write, calibration, matrix)
        return matrix, torch.bmm(q.unsqueeze(-2), matrix).squeeze(-2)

    def scan(self, w, elements):
        keep, matrix, q = elements
        distance = 1
        while distance < len(q):
            matrix = torch.cat((matrix[:distance], torch.addcmul(matrix[distance:], keep[distance:],
                                                                 matrix[:-distance])))
            keep = torch.cat((keep[:distance], keep[distance:] * keep[:-distance]))
            distance *= 2
        return torch.matmul(q.unsqueeze(-2), matrix).squeeze(-2)

    def out(self, w, x, read, u):
        return linear(read + linear(u, w.through), w.out)


def convolve(x, w, window):
    """Of four steps, columns by themselves; window [3, B, F] has the steps before, the oldest first."""
    taps = [getattr(w.tap, str(i)) for i in (3, 2, 1, 0)]
    if window is None:
        T, x = len(x), F.pad(x, (0, 0, 0, 0, 3, 0))
        steps = [x[i:i + T] for i in range(4)]
    else:
        steps = (*window, x)
    y = w.bias
    for tap, step in zip(taps, steps):
        y = torch.addcmul(y, tap, step)
    return F.silu(y), None if window is None else steps[1:]


def heads_first(x):
    """[B * heads, T, .] of [T, B, heads, .]."""
    return x.flatten(1, 2).transpose(0, 1)


def below(T):
    return torch.ones(T, T, dtype=torch.bool).tril()


class Mlstm(Today):
    heads = 4

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1))

    def lift(self, w, x, window, fixed):
        a, z = linear(layer_norm(x, w.norm), w.up).chunk(2, -1)
        c, window = convolve(a, w.convolution, window)
        v = linear(a, w.value)
        look = linear(c, w.look)
        q, k = look.chunk(2, -1)
        i, f = linear(torch.cat((look, v), -1), w.gates).chunk(2, -1)
        return (*map(self.split, (q, k, v)), i, log_logistic(f)), (c, z), window

    def window(self, w, B):
        return (w.gain.new_zeros(B, len(w.gain)),) * 3

    def first(self, w, B):
        K, V = w.look.weight.shape[0] // 2 // self.heads, len(w.gain) // self.heads
        zeros = w.gain.new_zeros
        return zeros(B, self.heads, K, V), zeros(B, self.heads, K), zeros(B, self.heads)

    def step(self, now, state, fixed):
        q, k, v, i, f = now
        matrix, norm, m = state
        f = f + m
        m = torch.maximum(f, i)
        keep, take = torch.exp(f - m).unsqueeze(-1), torch.exp(i - m).unsqueeze(-1) / math.sqrt(k.shape[-1])
        k = take * k
        norm = torch.addcmul(k, keep, norm)
        matrix = torch.addcmul(keep.unsqueeze(-1) * matrix, k.unsqueeze(-1), v.unsqueeze(-2))
        size = torch.maximum((norm * q).sum(-1).abs(), torch.exp(-m))
        read = torch.matmul(q.unsqueeze(-2), matrix).squeeze(-2) / size.unsqueeze(-1)
        return (matrix, norm, m), read

    def scan(self, w, elements):
        q, k, v, i, f = elements
        T, B = i.shape[:2]
        q, k, v = map(heads_first, (q, k, v))
        i, f = (x.flatten(1).t() for x in (i, f))
        f = torch.cumsum(f, 1)
        score = (f.unsqueeze(2) + (i - f).unsqueeze(1)).masked_fill(~below(T), -math.inf)
        m = score.amax(2, keepdim=True)
        score = torch.bmm(q, k.transpose(1, 2)) * (torch.exp(score - m) / math.sqrt(k.shape[-1]))
        size = torch.maximum(score.sum(2, keepdim=True).abs(), torch.exp(-m))
        return (torch.bmm(score, v) / size).transpose(0, 1).unflatten(1, (B, -1))

    def out(self, w, x, h, rest):
        c, z = rest
        h = F.layer_norm(h, h.shape[-1:], None, None, 1e-5).flatten(-2)
        return x + linear(torch.addcmul(w.skip * c, w.gain, h) * F.silu(z), w.down)


class GatedDeltaNet(Today):
    heads = 2

    def lift(self, w, x, window, fixed):
        u = F.rms_norm(x, x.shape[-1:], w.norm, 1e-6)
        V = len(w.gain)
        seen, window = convolve(linear(u, w.look), w.convolution, window)
        K = (seen.shape[-1] - V) // 2
        q, k, v = (y.unflatten(-1, (self.heads, -1)) for y in seen.split((K, K, V), -1))
        size = K // self.heads
        q = F.rms_norm(q, q.shape[-1:], None, 1e-6) / size
        k = F.rms_norm(k, k.shape[-1:], None, 1e-6) / math.sqrt(size)
        b, a = linear(u, w.gates).chunk(2, -1)
        fade = -torch.exp(w.rate) * F.softplus(a + w.bias)
        return (q, k, v, torch.sigmoid(b).unsqueeze(-1), fade if self.parallel else torch.exp(fade)), u, window

    def window(self, w, B):
        return (w.gain.new_zeros(B, len(w.convolution.bias)),) * 3

    def first(self, w, B):
        K = (len(w.convolution.bias) - len(w.gain)) // 2
        return w.gain.new_zeros(B, self.heads, K // self.heads, len(w.gain) // self.heads)

    def step(self, now, matrix, fixed):
        q, k, v, beta, alpha = now
        matrix = alpha[..., None, None] * matrix
        change = beta * (v - torch.matmul(k.unsqueeze(-2), matrix).squeeze(-2))
        matrix = torch.addcmul(matrix, k.unsqueeze(-1), change.unsqueeze(-2))
        return matrix, torch.matmul(q.unsqueeze(-2), matrix).squeeze(-2)

    def scan(self, w, elements):
        q, k, v, beta, fade = elements
        T, B = fade.shape[:2]
        q, k, v, beta = map(heads_first, (q, k, v, beta))
        fade = torch.cumsum(fade.flatten(1).t(), 1)
        faded = torch.exp((fade.unsqueeze(2) - fade.unsqueeze(1)).masked_fill(~below(T), -math.inf))
        # What each step writes, less what stood at its key by what was written before.
        system = beta * faded * torch.bmm(k, k.transpose(1, 2))
        change = torch.linalg.solve_triangular(system, beta * v, upper=False, unitriangular=True)
        read = torch.bmm(torch.bmm(q, k.transpose(1, 2)) * faded, change)
        return read.transpose(0, 1).unflatten(1, (B, -1))

    def out(self, w, x, y, u):
        y = F.rms_norm(y, y.shape[-1:], None, 1e-6).flatten(-2)
        return x + linear(w.gain * y * F.silu(linear(u, w.gate)), w.out)


class MemoryTraces(Today):
    rates = (0.0, 0.985)

    def __init__(self, tensors):
        super().__init__(tensors)
        self.register_buffer("fading", torch.tensor(self.rates).view(-1, 1))
        T = len(tensors["x"])
        age = torch.arange(T).view(-1, 1) - torch.arange(T)
        self.register_buffer("powers", torch.cat([torch.where(age >= 0, (1 - r) * r ** age.clamp(min=0), 0.0)
                                                  for r in self.rates]))

    def enter(self, x):
        return x

    def lift(self, w, x, window, fixed):
        return (x,), None, window

    def first(self, w, B):
        return self.fading.new_zeros(B, len(self.rates), w.layer.weight.shape[1] // (1 + len(self.rates)))

    def step(self, now, traces, fixed):
        traces = torch.lerp(now[0].unsqueeze(-2), traces, self.fading)
        return traces, traces

    def scan(self, w, elements):
        T, B, X = elements[0].shape
        traces = torch.mm(self.powers, elements[0].view(T, B * X))
        return traces.view(-1, T, B, X).permute(1, 2, 0, 3)

    def out(self, w, x, traces, rest):
        return F.relu(linear(torch.cat((x, traces.flatten(-2)), -1), w.layer))


class Gtrxl(Today):
    heads, window_steps, gate_bias = 4, 64, 2.0

    def gate(self, w, x, y):
        r, z, n = linear(y, w.y).chunk(3, -1)
        r_x, z_x = linear(x, w.x).chunk(2, -1)
        n = torch.tanh(n + linear(torch.sigmoid(r + r_x) * x, w.reset))
        return torch.lerp(x, n, torch.sigmoid(z + z_x - self.gate_bias))

    def look(self, w, x, step):
        """Queries and keys, turned by the step, and values: [..., heads, columns] each."""
        look = linear(layer_norm(x, w.attention.norm), w.attention.look)
        H = look.shape[-1] // 3
        angle = (step * w.attention.frequency).view(*step.shape[:-1], 1, self.heads, -1)
        cosine, sine = torch.cos(angle), torch.sin(angle)
        a, b = look[..., :2 * H].unflatten(-1, (2, 2, self.heads, -1)).unbind(-3)
        q, k = torch.cat((a * cosine - b * sine, a * sine + b * cosine), -1).unbind(-3)
        return q, k, look[..., 2 * H:].unflatten(-1, (self.heads, -1))

    def behind(self, w, x, seen):
        a = self.gate(w.attended, x, F.relu(linear(seen.flatten(-2), w.attention.combine)))
        y = linear(F.relu(linear(layer_norm(a, w.inner.norm), w.inner.widen)), w.inner.narrow)
        return self.gate(w.layered, a, F.relu(y))

    def over_steps(self, w, x):
        T = len(x)
        if T > self.window_steps:
            raise ValueError(f"a window of {self.window_steps} steps is shorter than {T}")
        q, k, v = (y.permute(1, 2, 0, 3) for y in self.look(w, x, torch.arange(T).view(-1, 1, 1)))
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.behind(w, x, seen.permute(2, 0, 1, 3))

    def begin(self, x):
        B, columns = x.shape[1], self.controller.input.weight.shape[0] // self.heads
        return [(x.new_zeros(B, self.heads, self.window_steps, columns),
                 x.new_zeros(B, self.heads, self.window_steps, columns)) for _ in self.layers], torch.zeros(1).long()

    def act(self, now, state):
        caches, step = state
        x = self.enter(now)
        used = torch.arange(self.window_steps) <= step
        for w, (keys, values) in zip(self.layers, caches):
            q, k, v = self.look(w, x, step)
            keys.index_copy_(2, step % self.window_steps, k.unsqueeze(2))
            values.index_copy_(2, step % self.window_steps, v.unsqueeze(2))
            seen = F.scaled_dot_product_attention(q.unsqueeze(2), keys, values, attn_mask=used[None])
            x = self.behind(w, x, seen.squeeze(2))
        return linear(x, self.learner.numbers), (caches, step + 1)


MODELS = {"gru": Gru, "min_gru": MinGru, "linear_recurrent_unit": LinearRecurrentUnit, "s5": S5,
          "fast_and_forgetful": FastAndForgetful, "stable_hadamard": StableHadamard, "mlstm": Mlstm,
          "gated_delta_net": GatedDeltaNet, "memory_traces": MemoryTraces, "gtrxl": Gtrxl}
