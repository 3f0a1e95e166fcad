# SPDX-License-Identifier: MIT
"""The recurrent core of the Memory Recall Agent in PyTorch, forward and backward, as a careful user would write it.

Per step t (facts 1.1, 1.3, 1.4), for each of B rows with a memory of N slots (p_j, v_j) and cached keys k_j:
    q = W_q [x, h] + b_q                                  h, c: the state before this step
    J = the K slots with the smallest |k_j - q|           not differentiated
    w_j = u_j / sum u,  u_j = 1 / (1e-3 + |q - k'_j|^2),  k'_j = W_k [p_j, v_j] + b_k for j in J
    m = sum_j w_j v_j
    i, f, g, o = W [x, m, h] + b;  c' = sigmoid(f + 1) c + sigmoid(i) tanh(g);  h' = sigmoid(o) tanh(c')
    write over the oldest slot: p = x, v = h', k = W_k [p, v] + b_k, all without gradient
Loss: sum of h' times fixed coefficients over all steps. Every weight and x receive gradients.

The timed part is the T steps and their backward sweep. Putting the memory back to its first content between repeats
and the first keys of the ring, which an agent has cached already, are not timed.

The file given by --weights, made by --save or by another program, holds float32 tensors, weights with one row an input:
    query.weight [X+H, D]  rows x, h         query.bias [D]      x, coefficients [T, B, X], [T, B, H]
    key.weight   [X+H, D]  rows p, v         key.bias   [D]      ring.content    [B, N, X+H]
    lstm.weight  [X+H+H, 4H] rows x, m, h; columns i, f, g, o    initial.h, initial.c [B, H]
    lstm.bias    [4H]                                            ring.count [1], optional: slots in use, else N
Slot 0 is the oldest. --outputs writes h [T, B, H], grad.x and grad.<name> of every weight, and read.gap [T, B]: how far
apart, relatively, the last neighbour taken and the first one left out are, since a tiny gap may be resolved otherwise
by other rounding.

--products bfloat16: weights are cast once a pass, all products with them are of bfloat16 and give bfloat16, as under
torch.autocast, which would cast slices of weights again at every step; the search, the mixture and the cell are in
float. Form 'cell', whose weights autocast casts once, is run under it.
"""

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

import timing

EPSILON = 1e-3


def random_tensors(T, B, X, H, D, N, seed):
    g = torch.Generator().manual_seed(seed)

    def uniform(*shape, bound):
        return (2 * torch.rand(*shape, generator=g) - 1) * bound

    def normal(*shape):
        return torch.randn(*shape, generator=g)

    fan, fan_lstm = (X + H) ** -0.5, (X + 2 * H) ** -0.5
    return {
        "query.weight": uniform(X + H, D, bound=fan), "query.bias": uniform(D, bound=fan),
        "key.weight": uniform(X + H, D, bound=fan), "key.bias": uniform(D, bound=fan),
        "lstm.weight": uniform(X + 2 * H, 4 * H, bound=fan_lstm), "lstm.bias": uniform(4 * H, bound=fan_lstm),
        "x": normal(T, B, X), "coefficients": normal(T, B, H),
        "ring.content": torch.cat((normal(B, N, X), 0.5 * uniform(B, N, H, bound=1.0)), 2),
        "initial.h": 0.5 * uniform(B, H, bound=1.0), "initial.c": normal(B, H),
    }


class Ring:
    """The slots of all rows: content [B*N, X+H], cached keys [B, D, N] and their squared norms [B, 1, N].
    Keys lie with slots innermost because the product of one query with them is then ten times as fast."""

    def __init__(self, content, count, key_weight, key_bias, products=torch.float32):
        self.products = products
        self.B, self.N, self.C = content.shape
        self.first_content, self.first_count = content, count
        self.content = torch.empty(self.B * self.N, self.C)
        self.offset = (torch.arange(self.B) * self.N).unsqueeze(1)
        self.key_weight, self.key_bias = key_weight, key_bias
        with torch.no_grad():
            self.first_keys = F.linear(content, key_weight, key_bias).transpose(1, 2).contiguous()
        self.restore()

    @torch.no_grad()
    def restore(self):
        self.content.copy_(self.first_content.reshape(-1, self.C))
        self.slots = self.content.view(self.B, self.N, self.C)
        self.keys = self.first_keys.clone()
        self.norms = self.keys.square().sum(1, keepdim=True)
        self.count, self.next = self.first_count, self.first_count % self.N
        self.rounded_key = self.key_weight.t().to(self.products)

    @torch.no_grad()
    def nearest(self, q, K, gap=None):
        """Contents [B, K, X+H] of the K nearest slots; |q|^2 is the same for all slots, so it is left out."""
        n = self.count
        scores = torch.baddbmm(self.norms[:, :, :n], q.unsqueeze(1), self.keys[:, :, :n], alpha=-2).squeeze(1)
        hits = scores.topk(min(K, n), dim=1, largest=False, sorted=False).indices
        if gap is not None and n > K:
            d = (scores + q.square().sum(1, keepdim=True)).sort(1).values
            gap.append((d[:, K] - d[:, K - 1]) / d[:, K])
        return self.content.index_select(0, (hits + self.offset).view(-1)).view(self.B, -1, self.C)

    @torch.no_grad()
    def write(self, x, h):
        content = torch.cat((x, h), 1)
        key = torch.addmm(self.key_bias.to(self.products), content.to(self.products), self.rounded_key).float()
        self.slots[:, self.next] = content
        self.keys[:, :, self.next] = key
        self.norms[:, 0, self.next] = key.square().sum(1)
        self.next = (self.next + 1) % self.N
        self.count = min(self.count + 1, self.N)


def recall(q, hits, key_weight, key_bias, X):
    """Inverse squared distances under recomputed keys: weighted sum [B, H] of the values of hits [B, K, X+H]."""
    keys = F.linear(hits.to(key_weight.dtype), key_weight, key_bias).float()
    u = (EPSILON + (q.unsqueeze(1) - keys).square().sum(2)).reciprocal()
    w = u / u.sum(1, keepdim=True)
    return torch.bmm(w.unsqueeze(1), hits[:, :, X:]).squeeze(1)


def cell(gates, c):
    i, f, g, o = gates.float().chunk(4, 1)
    c = torch.sigmoid(f + 1) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


class Core(torch.nn.Module):
    """form 'split': what depends on x alone is one product over all steps, the loop multiplies [m, h] by one matrix.
    form 'cell': torch.nn.LSTMCell over [x, m] and h, everything in the loop.
    form 'compiled': as 'split', with the arithmetic of a step compiled by torch.compile."""

    def __init__(self, X, H, D, K, form, products=torch.float32):
        super().__init__()
        self.products = products
        self.X, self.H, self.K, self.form = X, H, K, form
        self.key = torch.nn.Linear(X + H, D)
        self.query = torch.nn.Linear(X + H, D)
        self.lstm = torch.nn.LSTMCell(X + H, H)
        self.recall, self.cell = recall, cell
        if form == "compiled":
            self.recall = torch.compile(recall, dynamic=False)
            self.cell = torch.compile(cell, dynamic=False)

    @torch.no_grad()
    def load(self, tensors):
        X, H = self.X, self.H
        self.query.weight.copy_(tensors["query.weight"].t())
        self.query.bias.copy_(tensors["query.bias"])
        self.key.weight.copy_(tensors["key.weight"].t())
        self.key.bias.copy_(tensors["key.bias"])
        self.lstm.weight_ih.copy_(tensors["lstm.weight"][: X + H].t())
        self.lstm.weight_hh.copy_(tensors["lstm.weight"][X + H:].t())
        self.lstm.bias_ih.copy_(tensors["lstm.bias"])
        self.lstm.bias_hh.zero_()
        if self.form == "cell":
            self.lstm.bias_hh[H:2 * H] = 1  # the forget gate's offset
        else:
            self.lstm.bias_hh.requires_grad_(False)

    def gradients(self):
        lstm = torch.cat((self.lstm.weight_ih.grad, self.lstm.weight_hh.grad), 1)
        return {
            "grad.query.weight": self.query.weight.grad.t(), "grad.query.bias": self.query.bias.grad,
            "grad.key.weight": self.key.weight.grad.t(), "grad.key.bias": self.key.bias.grad,
            "grad.lstm.weight": lstm.t(), "grad.lstm.bias": self.lstm.bias_ih.grad,
        }

    def forward(self, x, h, c, ring, gap=None):
        self.rounded_key = self.key.weight.to(self.products), self.key.bias.to(self.products)
        if self.form != "cell":
            return self.unroll_split(x, h, c, ring, gap)
        with torch.autocast("cpu", self.products, enabled=self.products != torch.float32):
            return self.unroll_cell(x, h, c, ring, gap)

    def read(self, ring, q, gap):
        if ring.count == 0:
            return q.new_zeros(q.shape[0], self.H)
        hits = ring.nearest(q.detach(), self.K, gap)
        return self.recall(q, hits, *self.rounded_key, self.X)

    def unroll_split(self, x, h, c, ring, gap):
        X = self.X
        query, query_bias, input_lstm, lstm_bias, recurrent_lstm, rounded = (
            v.to(self.products) for v in (self.query.weight, self.query.bias, self.lstm.weight_ih, self.lstm.bias_ih,
                                          self.lstm.weight_hh, x))
        query_h = query[:, X:].t()
        lstm_mh = torch.cat((input_lstm[:, X:], recurrent_lstm), 1).t()
        queries = F.linear(rounded, query[:, :X], query_bias).unbind(0)
        gates = F.linear(rounded, input_lstm[:, :X], lstm_bias).unbind(0)
        contents = x.detach().unbind(0)
        outputs = []
        for t in range(len(queries)):
            q = torch.addmm(queries[t], h.to(self.products), query_h).float()
            m = self.read(ring, q, gap)
            h, c = self.cell(torch.addmm(gates[t], torch.cat((m, h), 1).to(self.products), lstm_mh), c)
            ring.write(contents[t], h)
            outputs.append(h)
        return torch.stack(outputs)

    def unroll_cell(self, x, h, c, ring, gap):
        outputs = []
        for now in x.unbind(0):
            q = self.query(torch.cat((now, h), 1)).float()
            m = self.read(ring, q, gap)
            h, c = (v.float() for v in self.lstm(torch.cat((now, m), 1), (h, c)))
            ring.write(now, h)
            outputs.append(h)
        return torch.stack(outputs)


def main():
    options = timing.parser("The MRA core in PyTorch: forward and backward of one unroll.")
    options.add_argument("--form", choices=("split", "cell", "compiled"), default="split")
    options.add_argument("--products", choices=("float", "bfloat16"), default="float")
    options.add_argument("--neighbours", type=int, default=10, help="K")
    options.add_argument("--weights", help="safetensors file with weights, inputs and memory")
    options.add_argument("--save", help="write the weights, inputs and memory that are used")
    options.add_argument("--outputs", help="write outputs and gradients of the first run")
    options = options.parse_args()
    timing.use_threads(options.threads)

    if options.weights:
        tensors = load_file(options.weights)
    else:
        tensors = random_tensors(options.steps, options.batch, 256, 512, 128, options.slots, options.seed)
    if options.save:
        save_file(tensors, options.save)
    options.steps, options.batch, X = tensors["x"].shape
    H, D = tensors["initial.h"].shape[1], tensors["key.bias"].shape[0]
    slots = tensors["ring.content"].shape[1]
    count = int(tensors["ring.count"].item()) if "ring.count" in tensors else slots

    products = torch.bfloat16 if options.products == "bfloat16" else torch.float32
    core = Core(X, H, D, options.neighbours, options.form, products)
    core.load(tensors)
    ring = Ring(tensors["ring.content"], count, core.key.weight, core.key.bias, products)
    x = tensors["x"].requires_grad_()
    h, c, coefficients = tensors["initial.h"], tensors["initial.c"], tensors["coefficients"]

    def prepare():
        ring.restore()
        core.zero_grad()
        x.grad = None

    def forward(gap=None):
        outputs = core(x, h, c, ring, gap)
        return outputs, (outputs * coefficients).sum()

    def backward(result):
        result[1].backward()

    if options.outputs:
        prepare()
        gap = []
        result = forward(gap)
        backward(result)
        saved = {"h": result[0].detach(), "grad.x": x.grad, **core.gradients()}
        if gap:
            saved["read.gap"] = torch.stack(gap)
        save_file({name: value.contiguous() for name, value in saved.items()}, options.outputs)

    if options.repeats > 0:
        times = timing.measure(forward, backward, options.repeats, options.warmup, prepare)
        timing.report(options, *times, program="mra_core", form=options.form,
                      products=options.products)


if __name__ == "__main__":
    main()
