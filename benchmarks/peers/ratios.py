# SPDX-License-Identifier: MIT
"""Medians and ratios of the JSON lines that run.sh collects: each thread count, then the best of either side.
Behind the ratio of the medians is that of the fastest runs: where they are far apart, the machine was busy. The last
column, where programs tell it, is that of the least processor time they were given. A second argument names a file for
the same table as Markdown."""

import json
import statistics
import sys

COLUMNS = ("", "threads", "engram ms", "peer ms", "engram /s", "peer /s", "peer / engram", "fastest", "processor")
WIDTHS = (36, 7, 10, 10, 10, 10, 13, 8, 9)


def table(lines):
    times, rates, given, peers = {}, {}, {}, {}
    for line in lines:
        side = "engram" if line["side"] == "engram" else "peer"
        if side == "peer":
            peers[line["name"]] = line["side"]
        place = line["name"], line["threads"], side
        times.setdefault(place, []).append(line["total_ms"])
        rates.setdefault(place, []).append(line["frames_per_second"])
        if "processor_ms" in line:
            given.setdefault(place, []).append(line["processor_ms"])
    fastest = {place: min(found) for place, found in times.items()}
    times = {place: statistics.median(found) for place, found in times.items()}
    rates = {place: statistics.median(found) for place, found in rates.items()}
    given = {place: min(found) for place, found in given.items()}

    def show(found, form):
        return format(found, form) if found else "-"

    def ratio(numbers, name, threads):
        ours, theirs = (numbers.get((name, threads, side)) for side in ("engram", "peer"))
        return f"{theirs / ours:.2f}" if ours and theirs else "-"

    for name in dict.fromkeys(place[0] for place in times):
        label = f"{name}, {peers[name]}" if name in peers else name
        counts = sorted({place[1] for place in times if place[0] == name})
        for threads in counts:
            yield (label, str(threads), *(show(times.get((name, threads, side)), ".4g") for side in ("engram", "peer")),
                   *(show(rates.get((name, threads, side)), ".0f") for side in ("engram", "peer")),
                   ratio(times, name, threads), ratio(fastest, name, threads), ratio(given, name, threads))
        best = {side: min((times[name, threads, side] for threads in counts if (name, threads, side) in times),
                          default=None) for side in ("engram", "peer")}
        both = f"{best['peer'] / best['engram']:.2f}" if all(best.values()) else "-"
        yield label, "best", show(best["engram"], ".4g"), show(best["peer"], ".4g"), "", "", both, "", ""


def main():
    with open(sys.argv[1]) as lines:
        rows = list(table(map(json.loads, lines)))
    print()
    for row in (COLUMNS, *rows):
        print(f"{row[0]:{WIDTHS[0]}} " + " ".join(f"{cell:>{width}}" for cell, width in zip(row[1:], WIDTHS[1:])))
    if len(sys.argv) > 2:
        with open(sys.argv[2], "w") as out:
            for row in (COLUMNS, ("---",) * len(COLUMNS), *rows):
                out.write("| " + " | ".join(row) + " |\n")


if __name__ == "__main__":
    main()
