# SPDX-License-Identifier: MIT
"""What the peer programs share: command-line options, timing, and the one JSON line they print."""

import argparse
import json
import statistics
import time

import torch


def parser(description):
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--repeats", type=int, default=10)
    options.add_argument("--warmup", type=int, default=2, help="runs before the timed ones")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--steps", type=int, default=50, help="T, the unroll")
    options.add_argument("--batch", type=int, default=16, help="B")
    options.add_argument("--slots", type=int, default=1024, help="N, slots of each row's memory")
    return options


def use_threads(count):
    torch.set_num_threads(count)
    torch.set_num_interop_threads(1)
    torch.set_flush_denormal(True)


def measure(forward, backward, repeats, warmup, prepare=lambda: None):
    """Times forward() and backward(forward's result) together and apart; prepare() runs untimed before each. Medians
    of both by the clock, and the least processor time of a turn."""
    forward_ms, total_ms, processor_ms = [], [], []
    for turn in range(warmup + repeats):
        prepare()
        given = time.process_time()
        start = time.perf_counter()
        result = forward()
        middle = time.perf_counter()
        backward(result)
        end = time.perf_counter()
        given = time.process_time() - given
        del result
        if turn >= warmup:
            forward_ms.append(1e3 * (middle - start))
            total_ms.append(1e3 * (end - start))
            processor_ms.append(1e3 * given)
    return statistics.median(forward_ms), statistics.median(total_ms), min(processor_ms)


def report(options, forward_ms, total_ms, processor_ms, **more):
    frames = options.steps * options.batch
    line = {
        "threads": options.threads,
        "total_ms": round(total_ms, 3),
        "processor_ms": round(processor_ms, 3),
        "forward_ms": round(forward_ms, 3),
        "frames_per_second": round(1e3 * frames / total_ms, 1),
        "torch": torch.__version__,
    }
    line.update(more)
    print(json.dumps(line), flush=True)
