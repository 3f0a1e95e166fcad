# SPDX-License-Identifier: MIT
"""Exact nearest neighbours with FAISS's flat index, as an agent asks for them: B memories of N keys [N, D], one query
each, the K nearest by squared distance of every memory.

One IndexFlatL2 a memory, searched through its C entry with arrays that are prepared before, so that Python costs next
to nothing (`call_ms`: the same calls on memories of one key each). FAISS runs the queries of one search in parallel,
and here a search has one; with --threads 2 the memories are therefore shared out to two Python threads, which FAISS
lets run at once.

The file of --weights holds float32 keys [B, N, D] and queries [B, D]; --save makes one. --outputs writes the slots
[B, K], nearest first; --compare FIRST SECOND holds two such files against the keys: slots may differ only where their
distances, computed in double, are equal to 1e-6.
"""

import argparse
import concurrent.futures
import json
import statistics
import sys
import time

import faiss
import numpy
from safetensors.numpy import load_file, save_file


def flat_indexes(keys):
    indexes = []
    for rows in keys:
        index = faiss.IndexFlatL2(keys.shape[2])
        index.add(rows)
        indexes.append(index)
    return indexes


class Searches:
    """One query for each memory; results in distances [B, K] and slots [B, K]."""

    def __init__(self, keys, queries, neighbours, threads):
        B = len(keys)
        self.indexes = flat_indexes(keys)
        self.queries = numpy.ascontiguousarray(queries)
        self.distances = numpy.empty((B, neighbours), numpy.float32)
        self.slots = numpy.empty((B, neighbours), numpy.int64)
        calls = [
            (index.search_c if hasattr(index, "search_c") else index.search, 1, faiss.swig_ptr(self.queries[b]),
             neighbours, faiss.swig_ptr(self.distances[b]), faiss.swig_ptr(self.slots[b]))
            for b, index in enumerate(self.indexes)
        ]
        self.parts = [calls[B * i // threads:B * (i + 1) // threads] for i in range(threads)]
        # The number of OpenMP's threads is one of the calling thread: two that wait for two more would be four.
        self.pool = None if threads == 1 else concurrent.futures.ThreadPoolExecutor(
            threads, initializer=faiss.omp_set_num_threads, initargs=(1,))

    @staticmethod
    def part(calls, rounds):
        for _ in range(rounds):
            for call, *arguments in calls:
                call(*arguments)

    def run(self, rounds):
        """The searches `rounds` times; threads meet at the end alone."""
        if self.pool is None:
            self.part(self.parts[0], rounds)
        else:
            list(self.pool.map(self.part, self.parts, [rounds] * len(self.parts)))


def measure(run, repeats):
    """Milliseconds of a round, of samples of about 20 ms: the median by the clock, the least of processor time."""
    run(1)
    start = time.perf_counter()
    run(3)
    rounds = max(1, int(0.02 * 3 / (time.perf_counter() - start)))
    wall, processor = [], []
    for _ in range(repeats):
        before, start = time.process_time(), time.perf_counter()
        run(rounds)
        wall.append(1e3 * (time.perf_counter() - start) / rounds)
        processor.append(1e3 * (time.process_time() - before) / rounds)
    return statistics.median(wall), min(processor)


def compare(tensors, first, second):
    a, b = load_file(first)["slots"], load_file(second)["slots"]
    if a.shape != b.shape:
        return f"{list(a.shape)} slots against {list(b.shape)}"
    keys, queries = (tensors[name].astype(numpy.float64) for name in ("keys", "queries"))
    distances = [numpy.take_along_axis(((keys - queries[:, None]) ** 2).sum(2), slots, 1) for slots in (a, b)]
    unequal = numpy.abs(distances[0] - distances[1]) > 1e-6 * distances[0]
    if unequal.any():
        return f"{int(unequal.sum())} of {a.size} neighbours differ in distance"
    for slots in (a, b):
        if any(len(set(row)) != len(row) for row in slots):
            return "a slot was found twice"
    print(f"{a.size} neighbours of {len(a)} queries: {int((a != b).sum())} in another place, distances equal to 1e-6")
    return None


def main():
    options = argparse.ArgumentParser(description="FAISS's flat index: B memories, one query each.")
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--batch", type=int, default=16)
    options.add_argument("--slots", type=int, default=1024)
    options.add_argument("--neighbours", type=int, default=10)
    options.add_argument("--weights")
    options.add_argument("--save")
    options.add_argument("--outputs")
    options.add_argument("--compare", nargs=2)
    options = options.parse_args()
    faiss.omp_set_num_threads(1)

    if options.weights:
        tensors = load_file(options.weights)
    else:
        random = numpy.random.default_rng(1)
        shape = (options.batch, options.slots, 128)
        tensors = {"keys": random.standard_normal(shape, numpy.float32),
                   "queries": random.standard_normal((options.batch, 128), numpy.float32)}
    if options.save:
        save_file(tensors, options.save)
    if options.compare:
        fault = compare(tensors, *options.compare)
        if fault:
            print(f"knn_read: {fault}", file=sys.stderr)
        return 1 if fault else 0

    keys, queries = tensors["keys"], tensors["queries"]
    searches = Searches(keys, queries, options.neighbours, options.threads)
    searches.run(1)
    if options.outputs:
        save_file({"slots": searches.slots}, options.outputs)
    if options.repeats > 0:
        total, processor = measure(searches.run, options.repeats)
        call, _ = measure(Searches(keys[:, :1], queries, 1, options.threads).run, options.repeats)
        print(json.dumps({"threads": options.threads, "total_ms": round(total, 4), "processor_ms": round(processor, 4),
                          "frames_per_second": round(1e3 * len(keys) / total), "call_ms": round(call, 4),
                          "faiss": faiss.__version__}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
