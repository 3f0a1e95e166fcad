# SPDX-License-Identifier: MIT
"""Medians and ratios of the JSON lines that run.sh collects: each thread count, then the best of either side.
Behind the ratio of the medians is that of the fastest runs: where they are far apart, the machine was busy. The last
column, where programs tell it, is that of the processor time they were given."""

import json
import statistics
import sys


def main():
    times, rates, given = {}, {}, {}
    with open(sys.argv[1]) as lines:
        for line in map(json.loads, lines):
            place = line["name"], line["threads"], line["side"]
            times.setdefault(place, []).append(line["total_ms"])
            rates.setdefault(place, []).append(line["frames_per_second"])
            if "processor_ms" in line:
                given.setdefault(place, []).append(line["processor_ms"])
    fastest = {place: min(found) for place, found in times.items()}
    times = {place: statistics.median(found) for place, found in times.items()}
    rates = {place: statistics.median(found) for place, found in rates.items()}
    given = {place: statistics.median(found) for place, found in given.items()}

    def ratio(ours, theirs):
        return f"{theirs / ours:7.2f}x" if ours and theirs else "      - "

    def show(found, form):
        return format(found, form) if found else "-"

    print(f"\n{'':12} {'threads':>7} {'engram ms':>10} {'torch ms':>10} {'engram f/s':>11} {'torch f/s':>11}"
          "  torch / engram, fastest, processor")
    for name in dict.fromkeys(place[0] for place in times):
        best = {}
        for threads in sorted({place[1] for place in times if place[0] == name}):
            ours, theirs = times.get((name, threads, "engram")), times.get((name, threads, "torch"))
            print(f"{name:12} {threads:7} {show(ours, '.1f'):>10} {show(theirs, '.1f'):>10} "
                  f"{show(rates.get((name, threads, 'engram')), '.0f'):>11} "
                  f"{show(rates.get((name, threads, 'torch')), '.0f'):>11} {ratio(ours, theirs)} "
                  f"{ratio(fastest.get((name, threads, 'engram')), fastest.get((name, threads, 'torch')))} "
                  f"{ratio(given.get((name, threads, 'engram')), given.get((name, threads, 'torch')))}")
            for side, found in (("engram", ours), ("torch", theirs)):
                if found:
                    best[side] = min(found, best.get(side, found))
        print(f"{name:12} {'best':>7} {show(best.get('engram'), '.1f'):>10} {show(best.get('torch'), '.1f'):>10} "
              f"{'':11} {'':11} {ratio(best.get('engram'), best.get('torch'))}")


if __name__ == "__main__":
    main()
