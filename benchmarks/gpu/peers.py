#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The same work in PyTorch on the same GPU, eagerly, as one captured CUDA graph, and compiled, for the tables of run.sh.

    T-Maze       B mazes as tensors, one vectorised step and observation (the rules of task/t_maze.hpp)
    k-NN read    distances to N keys, top K, keys recomputed, inverse-distance mixture; T of them, forward and backward
    MRA core     read, LSTM, write, T steps, forward and backward (sizes of benchmarks/gpu/core.cu)
    conv + LSTM  one iteration: T acting steps with a frame each from a pool that lies on the GPU (nothing is drawn, which
                 is less work than here), then the update of an actor-critic by the same unroll

Without PyTorch or without a GPU it says so and exits with status 77.
"""

import sys

from peer_timing import device, failed, name_of_device, three_ways  # first: it says so where PyTorch is missing

import torch
import torch.nn.functional as F

T, B, X, H, N, D, K = 50, 16, 256, 512, 1024, 128, 10
C = X + H


def t_maze(rows, steps=50):
    length = 100 + torch.randint(0, 11, (rows,), device=device)
    side = torch.randint(0, 2, (rows,), device=device)
    clock = torch.zeros(rows, dtype=torch.int64, device=device)
    action = torch.randint(0, 2, (rows,), device=device)

    def step():
        now = clock + 1
        done = now == length
        reward = torch.where(done, torch.where(action == side, 4.0, -3.0), 0.0)
        clock.copy_(torch.where(done, 0, now))
        length.copy_(torch.where(done, 100 + torch.randint(0, 11, (rows,), device=device), length))
        side.copy_(torch.where(done, torch.randint(0, 2, (rows,), device=device), side))
        hint = torch.where(clock > 0, 0.0, 2.0 * side - 1)
        corner = (clock == length - 1).float()
        noise = 2.0 * torch.randint(0, 2, (rows,), device=device) - 1
        return torch.stack((hint, corner, noise), 1), reward, done

    def many():
        for _ in range(steps):
            step()

    compiled = torch.compile(step)

    def many_compiled():
        for _ in range(steps):
            compiled()

    three_ways(f"T-Maze, {rows}", many, "steps/s", lambda us: 1e6 * rows * steps / us, many_compiled)


class Core(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key = torch.nn.Linear(C, D), torch.nn.Linear(C, D)
        self.gates = torch.nn.Linear(X + 2 * H, 4 * H)
        self.content = torch.randn(B, N, C, device=device)
        self.keys = torch.randn(B, N, D, device=device)

    def read(self, q):
        with torch.no_grad():
            far = self.keys.square().sum(2) - 2 * torch.bmm(self.keys, q.unsqueeze(2)).squeeze(2)
            slots = far.topk(K, dim=1, largest=False).indices
            found = self.content.gather(1, slots.unsqueeze(2).expand(B, K, C))
        gap = (q.unsqueeze(1) - self.key(found)).square().sum(2)
        weight = 1 / (1e-3 + gap)
        weight = weight / weight.sum(1, keepdim=True)
        return torch.bmm(weight.unsqueeze(1), found[:, :, X:]).squeeze(1)

    def forward(self, x, coefficients):
        h, c = torch.zeros(B, H, device=device), torch.zeros(B, H, device=device)
        loss = 0.0
        for t in range(T):
            m = self.read(self.query(torch.cat((x[t], h), 1)))
            i, f, g, o = self.gates(torch.cat((x[t], m, h), 1)).chunk(4, 1)
            c = torch.sigmoid(f + 1) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            with torch.no_grad():
                self.content[:, t] = torch.cat((x[t], h), 1)
                self.keys[:, t] = self.key(self.content[:, t])
            loss = loss + (h * coefficients[t]).sum()
        return loss


def mra():
    core = Core().to(device)
    x, coefficients = torch.randn(T, B, X, device=device), torch.randn(T, B, H, device=device)
    queries = torch.randn(T, B, D, device=device, requires_grad=True)

    def reads():
        loss = sum(core.read(queries[t]).sum() for t in range(T))
        loss.backward()

    def clear():
        queries.grad = None
        for p in core.parameters():
            p.grad = None

    def reads_once():
        clear()
        reads()

    def sweep():
        clear()
        core(x, coefficients).backward()

    three_ways("k-NN read, forward and backward", reads_once, "us/step", lambda us: us / T)
    three_ways("MRA core, float, forward and backward", sweep, "us/step", lambda us: us / T)
    torch.set_float32_matmul_precision("high")
    three_ways("MRA core, tf32, forward and backward", sweep, "us/step", lambda us: us / T)


class Seeing(torch.nn.Module):
    def __init__(self, actions=8):
        super().__init__()
        self.first, self.second = torch.nn.Conv2d(3, 16, 8, 4), torch.nn.Conv2d(16, 32, 4, 2)
        self.out = torch.nn.Linear(32 * 7 * 10, 256)
        self.cell = torch.nn.LSTMCell(256, H)
        self.policy, self.value = torch.nn.Linear(H, actions), torch.nn.Linear(H, 1)

    def encode(self, frames):
        return F.relu(self.out(F.relu(self.second(F.relu(self.first(frames)))).flatten(1)))

    def act(self, frame, state):
        h, c = self.cell(self.encode(frame), state)
        return F.log_softmax(self.policy(h), 1), self.value(h).squeeze(1), (h, c)


def seeing(rows=256, steps=20):
    model = Seeing().to(device)
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-4, capturable=True)
    pool = torch.rand(64, rows, 3, 72, 96, device=device)
    reward = torch.randn(steps, rows, device=device)
    zero = torch.zeros(rows, H, device=device)

    def iteration():
        with torch.no_grad():
            state, taken = (zero, zero), []
            for t in range(steps):
                policy, _, state = model.act(pool[t], state)
                taken.append(torch.multinomial(policy.exp(), 1).squeeze(1))
        optimiser.zero_grad(set_to_none=True)
        encoded = model.encode(pool[:steps].flatten(0, 1)).view(steps, rows, -1)
        h, c, policies, values = zero, zero, [], []
        for t in range(steps):
            h, c = model.cell(encoded[t], (h, c))
            policies.append(F.log_softmax(model.policy(h), 1))
            values.append(model.value(h).squeeze(1))
        returns, target = torch.zeros(rows, device=device), []
        for t in reversed(range(steps)):
            returns = reward[t] + 0.98 * returns
            target.append(returns)
        loss = 0.0
        for t, goal in enumerate(reversed(target)):
            log_probability = policies[t].gather(1, taken[t].unsqueeze(1)).squeeze(1)
            advantage = goal - values[t]
            loss = loss - (log_probability * advantage.detach()).sum() + 0.25 * advantage.square().sum()
            loss = loss + 0.01 * (policies[t].exp() * policies[t]).sum()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 40.0)
        optimiser.step()

    three_ways(f"small conv + LSTM, frames from a pool, B {rows}, T {steps}", iteration, "steps/s",
               lambda us: 1e6 * rows * steps / us)


print(f"PyTorch {torch.__version__}, {name_of_device()}")
for mazes in (4096, 65536, 1048576):
    t_maze(mazes)
mra()
seeing()
sys.exit(1 if failed else 0)
