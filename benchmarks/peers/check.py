# SPDX-License-Identifier: MIT
"""Holds the PyTorch programs against slow, loop-only restatements of the equations, in double; status 1 on failure."""

import math
import sys

import torch

import mra_core
import mra_update

WEIGHTS = ("query.weight", "query.bias", "key.weight", "key.bias", "lstm.weight", "lstm.bias")


def check_cpc():
    T, B, X, H, N = 7, 3, 4, 5, 6
    x, h, weight = torch.randn(T, B, X), torch.randn(T, B, H), torch.randn(N, H, X)
    loss = 0.0
    for b in range(B):
        for k in range(1, N + 1):
            for t in range(1, T - k + 1):
                f = {j: math.exp(x[j - 1, b] @ (h[t - 1, b] @ weight[k - 1])) for j in range(k + 1, T + 1)}
                total = sum(f.values())
                rest = [math.log(sum(f[i] for i in f if i != j) / total) for j in f if j != t + k]
                loss -= math.log(f[t + k] / total) + (sum(rest) / len(rest) if rest else 0.0)
    return abs(loss - mra_update.cpc_loss(x, h, weight).item()) / abs(loss)


def check_vtrace():
    T, B = 7, 3
    rewards, discounts, values = torch.rand(T, B), torch.rand(T, B), torch.rand(T, B)
    ratios, bootstrap = 2 * torch.rand(T, B), torch.rand(B)
    targets, advantages = mra_update.vtrace(ratios, rewards, discounts, values, bootstrap)
    clipped, following = ratios.clamp(max=1), torch.cat((values[1:], bootstrap[None]))
    v = torch.cat((values, bootstrap[None]))
    for s in range(T):
        for t in range(s, T):
            trace = torch.ones(B)
            for i in range(s, t):
                trace = trace * clipped[i] * discounts[i]
            v[s] += trace * clipped[t] * (rewards[t] + discounts[t] * following[t] - values[t])
    slow = clipped * (rewards + discounts * v[1:] - values)
    return max((v[:T] - targets).abs().max().item(), (slow - advantages).abs().max().item())


def slow_core(tensors, count, N, K, X, H):
    p = {name: tensors[name].clone().requires_grad_() for name in (*WEIGHTS, "x")}
    outputs, loss = [], 0.0
    for b in range(tensors["x"].shape[1]):
        def entry(content):
            return content, (content @ p["key.weight"] + p["key.bias"]).detach()
        memory = [entry(tensors["ring.content"][b, n]) for n in range(count)]
        h, c = tensors["initial.h"][b], tensors["initial.c"][b]
        for t in range(tensors["x"].shape[0]):
            x = p["x"][t, b]
            q = torch.cat((x, h)) @ p["query.weight"] + p["query.bias"]
            near = sorted((content for content in memory), key=lambda e: (e[1] - q.detach()).norm().item())[:K]
            m = torch.zeros(H)
            if near:
                u = [1 / (1e-3 + (q - (e @ p["key.weight"] + p["key.bias"])).square().sum()) for e, _ in near]
                m = sum(a * e[X:] for a, (e, _) in zip(u, near)) / sum(u)
            i, f, g, o = (torch.cat((x, m, h)) @ p["lstm.weight"] + p["lstm.bias"]).split(H)
            c = torch.sigmoid(f + 1) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            memory = (memory + [entry(torch.cat((x, h)).detach())])[-N:]
            loss = loss + (h * tensors["coefficients"][t, b]).sum()
            outputs.append(h.detach())
    loss.backward()
    T, B = tensors["x"].shape[:2]
    found = {f"grad.{name}": value.grad for name, value in p.items()}
    found["h"] = torch.stack(outputs).view(B, T, H).transpose(0, 1)
    return found


def check_core(form, count):
    T, B, X, H, D, N, K = 9, 2, 5, 6, 4, 12, 4
    tensors = {name: value.double() for name, value in mra_core.random_tensors(T, B, X, H, D, N, 3).items()}
    slow = slow_core(tensors, count, N, K, X, H)
    core = mra_core.Core(X, H, D, K, form)
    core.load(tensors)
    ring = mra_core.Ring(tensors["ring.content"], count, core.key.weight, core.key.bias)
    x = tensors["x"].requires_grad_()
    h = core(x, tensors["initial.h"], tensors["initial.c"], ring)
    (h * tensors["coefficients"]).sum().backward()
    fast = {"h": h.detach(), "grad.x": x.grad, **core.gradients()}
    return max((slow[name] - fast[name]).abs().max().item() for name in slow)


def main():
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(1)
    results = {"cpc": check_cpc(), "vtrace": check_vtrace()}
    for form in ("split", "cell"):
        for count in (0, 3, 12):  # empty, fewer than K, full and overwriting
            results[f"core {form}, {count} slots in use"] = check_core(form, count)
    for name, error in results.items():
        print(f"{name:28} {error:.1e}")
    return 0 if all(error < 1e-12 for error in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
