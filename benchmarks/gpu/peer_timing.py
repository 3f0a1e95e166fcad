# SPDX-License-Identifier: MIT
"""What the PyTorch programs of this folder share: the device, timing, and a row for each way to run the same work.

Without PyTorch or without a GPU the program that imports this says so and exits with status 77. ENGRAM_PEERS_DEVICE=cpu
runs the eager rows on the host, to see that they run.
"""

import os
import sys
import time

try:
    import torch
except ImportError:
    print("peers: PyTorch is not installed for this interpreter; its rows are left out")
    sys.exit(77)
on_host = os.environ.get("ENGRAM_PEERS_DEVICE") == "cpu"
if not on_host and not torch.cuda.is_available():
    print(f"peers: PyTorch {torch.__version__} finds no CUDA device; its rows are left out")
    sys.exit(77)

device = torch.device("cpu" if on_host else "cuda")
failed = []


def wait():
    if not on_host:
        torch.cuda.synchronize()


def line(what, number, unit):
    print(f"{what:52s} {number:14.1f} {unit}", flush=True)


def microseconds(body, repeats=10, warmup=3, runs=5):
    """Best of five runs, a call of body()."""
    for _ in range(warmup):
        body()
    wait()
    best = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        for _ in range(repeats):
            body()
        wait()
        best = min(best, (time.perf_counter() - start) / repeats)
    return 1e6 * best


def captured(body):
    """body() as a CUDA graph: warmed up on a side stream first, as PyTorch asks."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            body()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        body()
    return graph.replay


def timed_ways(what, ways, unit, per_call, repeats=10):
    """A row a way: its name and a function that prepares it and returns what is timed; per_call turns microseconds into
    the unit."""
    for way, make in ways.items():
        try:
            line(f"PyTorch {way}: {what}", per_call(microseconds(make(), repeats)), unit)
        except Exception as problem:  # one way that fails must not hide the others
            failed.append(what)
            reason = " | ".join([said for said in str(problem).splitlines() if said.strip()][:4]) or "no reason given"
            print(f"PyTorch {way}: {what} failed: {type(problem).__name__}: {reason}", flush=True)


def three_ways(what, body, unit, per_call, compile_it=None):
    """Rows for eager, captured and, where given, compiled."""
    ways = {"eager": lambda: body}
    if not on_host:
        ways["graph"] = lambda: captured(body)
    if compile_it is not None and not on_host:
        ways["compiled"] = lambda: compile_it
    timed_ways(what, ways, unit, per_call)


def name_of_device():
    return "the host" if on_host else torch.cuda.get_device_name()
