#!/usr/bin/env python3
"""model.py FIGURES: the tables of run.sh, as Markdown, and a prediction for more processes.

An update takes t = c + k log2(P) alpha + m 2 (P - 1) / P n beta: c computing, alpha the delay of a message, n bytes of
gradient, beta seconds a byte. alpha and beta are those of the link; c, k and m are fitted to every other point of two
hosts and judged by the others. k = 2 and m = 1 would be the sum of the gradient and nothing else. Counted in the code k is
5: two exchanges, a gather of losses (two collectives), and what an iteration gathers besides, over its updates.

Where the fit is of no use, because a coefficient is below zero or the other half is missed by more than a quarter (a busy
machine does that), the prediction takes k and m as counted and c from the processor time of one process.
"""
import math
import statistics
import sys
from collections import defaultdict

runs = defaultdict(list)
numbers = {}
for line in open(sys.argv[1]):
    word = line.split()
    if word[0] == "alone":
        runs["alone", word[1]].append(float(word[3]) / float(word[2]))
        runs["processor", word[1]].append(float(word[5]) / float(word[2]))
    else:
        _, model, delay, rate, updates, seconds, parameters, sent = word
        runs[model, float(delay), float(rate)].append(float(seconds) / float(updates))
        numbers[model] = int(parameters)
        runs["bytes", model].append(float(sent) / float(updates))

def solve(rows, values):
    """Least squares of relative errors by the normal equations; few unknowns, well apart."""
    size = len(rows[0])
    a = [[sum(r[i] * r[j] / v / v for r, v in zip(rows, values)) for j in range(size)] for i in range(size)]
    b = [sum(r[i] / v for r, v in zip(rows, values)) for i in range(size)]
    for i in range(size):
        pivot = a[i][i]
        a[i] = [x / pivot for x in a[i]]
        b[i] /= pivot
        for j in range(size):
            if j != i:
                factor = a[j][i]
                a[j] = [x - factor * y for x, y in zip(a[j], a[i])]
                b[j] -= factor * b[i]
    return b

def seconds_a_byte(rate):
    return 8 / (rate * 1e6)

fits = {}
for model in numbers:
    points = sorted((key[1], key[2], statistics.median(times)) for key, times in runs.items() if key[0] == model)
    n = 4 * numbers[model]
    rows = [[1.0, d * 1e-6, n * seconds_a_byte(r)] for d, r, _ in points]
    times = [t for _, _, t in points]
    # Every other point, as the black fields of a board.
    delays, rates = sorted({d for d, _, _ in points}), sorted({r for _, r, _ in points})
    chosen = [i for i, (d, r, _) in enumerate(points) if (delays.index(d) + rates.index(r)) % 2 == 0]
    c, k, m = solve([rows[i] for i in chosen], [times[i] for i in chosen])
    missed = statistics.median(abs((c * r[0] + k * r[1] + m * r[2]) / t - 1)
                               for i, (r, t) in enumerate(zip(rows, times)) if i not in chosen)
    useful = min(c, k, m) >= 0 and missed <= 0.25
    fits[model] = (c, k, m, n) if useful else (statistics.median(runs["processor", model]) / 2, 5, 1, n)
    alone = statistics.median(runs["alone", model])
    print(f"\n{model}: {numbers[model]} parameters, {n / 1e6:.2f} MB; one process of one thread {1e3 * alone:.2f} ms an update; "
          f"{statistics.median(runs['bytes', model]) / n:.2f} gradients an update sent by a host")
    print(f"fit: c = {1e3 * c:.2f} ms, k = {k:.1f}, m = {m:.2f}; the other half is missed by {100 * missed:.0f} % (median)"
          + ("" if useful else f": of no use, below c = {1e3 * fits[model][0]:.2f} ms of processor, k = 5, m = 1") + "\n")
    print("| delay, us | Gbit/s | updates/s | t, ms | c/2 + 2 alpha + n beta, ms | fit, ms | error | |\n|---|---|---|---|---|---|---|---|")
    for i, (d, r, t) in enumerate(points):
        plain = alone / 2 + 2 * d * 1e-6 + n * seconds_a_byte(r)
        found = c + k * rows[i][1] + m * rows[i][2]
        print(f"| {d:.0f} | {r / 1000:g} | {1 / t:.1f} | {1e3 * t:.2f} | {1e3 * plain:.2f} | {1e3 * found:.2f} | "
              f"{100 * (found / t - 1):+.0f} % | {'fitted' if i in chosen else 'held out'} |")

print("\nPredicted, not measured: share of linear when each process computes what it computes here (weak scaling)\n")
sizes = [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
print("| model | delay, us | Gbit/s | " + " | ".join(map(str, sizes)) + " |\n|---|---|---|" + "---|" * len(sizes))
for model, (c, k, m, n) in fits.items():
    for delay, rate in ((50, 1000), (50, 10000), (1000, 1000), (1000, 10000), (5, 100000)):
        shares = []
        for p in sizes:
            t = c + k * math.log2(p) * delay * 1e-6 + m * 2 * (p - 1) / p * n * seconds_a_byte(rate)
            shares.append(c / t)
        print(f"| {model} | {delay} | {rate / 1000:g} | " + " | ".join(f"{s:.2f}" for s in shares) + " |")
print("\nTo keep 0.9 of linear with 1024 processes, communication may take a ninth of c:")
for model, (c, k, m, n) in fits.items():
    for delay, rate in ((50, 1000), (50, 10000), (1000, 10000)):
        cost = k * 10 * delay * 1e-6 + m * 2 * 1023 / 1024 * n * seconds_a_byte(rate)
        print(f"- {model}, {delay} us, {rate / 1000:g} Gbit/s: {1e3 * cost:.1f} ms beside {1e3 * c:.1f} ms: "
              f"{9 * cost / c:.1f} times as much computing an update (rows or steps a process)")
