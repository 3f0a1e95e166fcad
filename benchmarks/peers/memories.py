# SPDX-License-Identifier: MIT
"""Small recurrent models with a memory in PyTorch: a DNC, an introspection memory, and an LSTM alone.

Each is read from tensors under the names of benchmark-memory_step: weights with one row an input, LSTM gates i, f, g, o
with 1 to be added at f. forward(x) goes from states of zero over x [T, B, X] to answers [T, B, O]. A step reads, lets
the controller see [x, what was read], then writes. One step is one function of tensors, so that it can be run as it is,
scripted or compiled: module.step is what a caller may replace.
"""

import torch
import torch.nn.functional as F


def linear(tensors, name):
    weight = tensors[f"{name}.weight"]
    layer = torch.nn.Linear(*weight.shape)
    with torch.no_grad():
        layer.weight.copy_(weight.t())
        layer.bias.copy_(tensors[f"{name}.bias"].view(-1))
    return layer


def lstm_step(z, c):
    i, f, g, o = z.chunk(4, 1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def cosines(memory, keys):
    """[B, R, N] of memory [B, N, W] and keys [B, R, W]."""
    rows = torch.sqrt(memory.square().sum(2) + 1e-6).unsqueeze(1)
    norms = torch.sqrt(keys.square().sum(2) + 1e-6).unsqueeze(2)
    return torch.bmm(keys, memory.transpose(1, 2)) / (norms * rows + 1e-6)


def allocation(usage):
    """Where the next write goes if it goes by usage [B, N]."""
    used, order = torch.sort(1e-6 + (1 - 1e-6) * usage, dim=1, stable=True)
    before = torch.cumprod(torch.cat((torch.ones_like(used[:, :1]), used[:, :-1]), 1), 1)
    return torch.zeros_like(used).scatter(1, order, (1 - used) * before)


def dnc_step(x, h, c, memory, usage, read, written, precedence, link, off_diagonal, read_weight, read_bias, gate_weight,
             gate_bias, write_weight, write_bias):
    """One step of a DNC that reads before it writes. memory [B, N, W], usage, written and precedence [B, N], read
    [B, R, N], link [B, N, N]; off_diagonal [N, N] is one but for a diagonal of zeros."""
    B, N, W = memory.shape
    R = read.shape[1]
    z = F.linear(torch.cat((x, h), 1), read_weight, read_bias)
    keys, strength, modes = z.split((R * W, R, 3 * R), 1)
    content = torch.softmax(F.softplus(strength).unsqueeze(2) * cosines(memory, keys.view(B, R, W)), 2)
    here = written.unsqueeze(2)
    link = ((1 - here - written.unsqueeze(1)) * link + here * precedence.unsqueeze(1)) * off_diagonal
    precedence = (1 - written.sum(1, keepdim=True)) * precedence + written
    before = read
    backward, forward = torch.bmm(before, link), torch.bmm(before, link.transpose(1, 2))
    mode = torch.softmax(modes.view(B, R, 3), 2)
    read = mode[:, :, 0:1] * backward + mode[:, :, 1:2] * forward + mode[:, :, 2:3] * content
    recalled = torch.bmm(read, memory).view(B, R * W)

    h, c = lstm_step(F.linear(torch.cat((x, recalled, h), 1), gate_weight, gate_bias), c)

    z = F.linear(torch.cat((x, h), 1), write_weight, write_bias)
    key, add, gates, strength = z.split((W, W, W + R + 2, 1), 1)
    erase, free, by_allocation, gate = torch.sigmoid(gates).split((W, R, 1, 1), 1)
    usage = torch.clamp(usage + (1 - usage) * written.detach(), max=1.0)
    usage = usage * torch.clamp(1 - free.unsqueeze(2) * before, min=0.0).prod(1)
    content = torch.softmax(F.softplus(strength) * cosines(memory, key.unsqueeze(1)).squeeze(1), 1)
    written = gate * (by_allocation * allocation(usage) + (1 - by_allocation) * content)
    where = written.unsqueeze(2)
    memory = memory * (1 - where * erase.unsqueeze(1)) + where * add.unsqueeze(1)
    return h, c, memory, usage, read, written, precedence, link


def introspection_step(x, h, c, memory, hidden_weight, hidden_bias, logits_weight, logits_bias, let_weight, let_bias,
                       gate_weight, gate_bias):
    """One step of an introspection memory: memory [B, L, X] holds the last L inputs, the newest first, and is read by
    attention from h alone."""
    B, L, X = memory.shape
    s = F.softplus(F.linear(torch.relu(F.linear(h, hidden_weight, hidden_bias)), logits_weight, logits_bias))
    s = s.view(B, -1, L)
    phi = torch.bmm(s / s.sum(2, keepdim=True), memory).view(B, -1)
    recalled = phi * torch.sigmoid(F.linear(h, let_weight, let_bias))
    h, c = lstm_step(F.linear(torch.cat((x, recalled, h), 1), gate_weight, gate_bias), c)
    return h, c, torch.cat((x.unsqueeze(1), memory[:, :-1]), 1)


class Recurrent(torch.nn.Module):
    """What the models share: a gate map, whose forget bias takes up the 1, and a linear answer of every step."""

    def __init__(self, tensors, answer):
        super().__init__()
        self.controller_gates = linear(tensors, "controller.gates")
        self.H = self.controller_gates.out_features // 4
        with torch.no_grad():
            self.controller_gates.bias[self.H:2 * self.H] += 1
        self.answer = linear(tensors, answer)
        self.names = {"controller.gates": self.controller_gates, answer: self.answer}

    def forward(self, x):
        state, outputs = self.begin(x), []
        weights = self.weights()
        for now in x.unbind(0):
            state = self.step(now, *state, *weights)
            outputs.append(state[0])
            state = (*state, *self.constants)
        return self.answer(torch.stack(outputs))

    def act(self, now, state):
        """The answer [B, O] to x [B, X], and the state behind it; the first one is begin(x)."""
        state = self.step(now, *state, *self.weights())
        return self.answer(state[0]), (*state, *self.constants)

    def gradients(self):
        """By the names and in the shapes of the file."""
        found = {}
        for name, layer in self.names.items():
            found[f"grad.{name}.weight"] = layer.weight.grad.t().contiguous()
            found[f"grad.{name}.bias"] = layer.bias.grad.view(1, -1)
        return found


class Dnc(Recurrent):
    def __init__(self, tensors, slots=16, word=16, heads=4):
        super().__init__(tensors, "learner.bits")
        self.N, self.W, self.R = slots, word, heads
        self.read, self.write = linear(tensors, "memory.read"), linear(tensors, "memory.write")
        self.names.update({"memory.read": self.read, "memory.write": self.write})
        self.register_buffer("off_diagonal", 1 - torch.eye(slots))
        self.step = dnc_step

    @property
    def constants(self):
        return (self.off_diagonal,)

    def weights(self):
        maps = self.read, self.controller_gates, self.write
        return [p for m in maps for p in (m.weight, m.bias)]

    def begin(self, x):
        B, N = x.shape[1], self.N
        zeros = x.new_zeros
        return (zeros(B, self.H), zeros(B, self.H), zeros(B, N, self.W), zeros(B, N), zeros(B, self.R, N), zeros(B, N),
                zeros(B, N), zeros(B, N, N), self.off_diagonal)


class Introspection(Recurrent):
    constants = ()

    def __init__(self, tensors, slots=16):
        super().__init__(tensors, "learner.numbers")
        self.slots = slots
        self.hidden, self.logits, self.gate = (linear(tensors, f"memory.{n}") for n in ("hidden", "logits", "gate"))
        self.names.update({"memory.hidden": self.hidden, "memory.logits": self.logits, "memory.gate": self.gate})
        self.step = introspection_step

    def weights(self):
        maps = self.hidden, self.logits, self.gate, self.controller_gates
        return [p for m in maps for p in (m.weight, m.bias)]

    def begin(self, x):
        B, X = x.shape[1:]
        return x.new_zeros(B, self.H), x.new_zeros(B, self.H), x.new_zeros(B, self.slots, X)


class Lstm(torch.nn.Module):
    """torch.nn.LSTM, which has no step of its own; its second bias stays zero. use_cell() makes act() go through
    torch.nn.LSTMCell, which torch.compile can take apart."""

    step = None

    def __init__(self, tensors):
        super().__init__()
        weight, bias = tensors["controller.gates.weight"], tensors["controller.gates.bias"].view(-1)
        H = weight.shape[1] // 4
        self.lstm = torch.nn.LSTM(weight.shape[0] - H, H)
        with torch.no_grad():
            self.lstm.weight_ih_l0.copy_(weight[:-H].t())
            self.lstm.weight_hh_l0.copy_(weight[-H:].t())
            self.lstm.bias_ih_l0.copy_(bias)
            self.lstm.bias_ih_l0[H:2 * H] += 1
            self.lstm.bias_hh_l0.zero_().requires_grad_(False)
        self.answer = linear(tensors, "learner.numbers")

    def forward(self, x):
        return self.answer(self.lstm(x)[0])

    def begin(self, x):
        return (x.new_zeros(1, x.shape[1], self.lstm.hidden_size),) * 2

    def act(self, now, state):
        h, state = self.lstm(now.unsqueeze(0), state)
        return self.answer(h[0]), state

    def use_cell(self):
        net = self.lstm
        self.cell = torch.nn.LSTMCell(net.input_size, net.hidden_size)
        with torch.no_grad():
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                getattr(self.cell, name).copy_(getattr(net, f"{name}_l0"))
        self.begin = lambda x: (x.new_zeros(x.shape[1], net.hidden_size),) * 2
        self.act = self.act_by_cell

    def act_by_cell(self, now, state):
        h, c = self.cell(now, state)
        return self.answer(h), (h, c)

    def gradients(self):
        net = self.lstm
        gates = torch.cat((net.weight_ih_l0.grad, net.weight_hh_l0.grad), 1)
        return {
            "grad.controller.gates.weight": gates.t().contiguous(),
            "grad.controller.gates.bias": net.bias_ih_l0.grad.view(1, -1),
            "grad.learner.numbers.weight": self.answer.weight.grad.t().contiguous(),
            "grad.learner.numbers.bias": self.answer.bias.grad.view(1, -1),
        }


MODELS = {"dnc": Dnc, "introspection": Introspection, "lstm": Lstm}


def loss_of(model, answer, target):
    """Mean over rows of what a row's columns cost together."""
    if isinstance(model, Dnc):
        return F.binary_cross_entropy_with_logits(answer, target, reduction="sum") / target[..., 0].numel()
    return (answer - target).square().sum() / target[..., 0].numel()
