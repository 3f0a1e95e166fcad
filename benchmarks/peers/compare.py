# SPDX-License-Identifier: MIT
"""Compares two safetensors files of outputs and gradients, tensor by tensor.

The relative difference of a tensor is max |a - b| / max |a|, a from the first file: element by element it would mean
nothing where a passes through zero. Names starting with 'read.' describe the run and are not compared.
Exit status 1 when a tensor is missing on one side, differs in shape, is not finite, or exceeds --tolerance.
"""

import argparse
import sys

import numpy
from safetensors.numpy import load_file


def main():
    options = argparse.ArgumentParser(description="Largest relative difference of each tensor in two files.")
    options.add_argument("first")
    options.add_argument("second")
    options.add_argument("--tolerance", type=float, default=1e-3)
    options = options.parse_args()

    first, second = load_file(options.first), load_file(options.second)
    failed = False
    for name in sorted(n for n in first.keys() | second.keys() if not n.startswith("read.")):
        if name not in first or name not in second:
            print(f"{name:32} only in {options.first if name in first else options.second}")
            failed = True
            continue
        a, b = first[name].astype(numpy.float64), second[name].astype(numpy.float64)
        if a.shape != b.shape:
            print(f"{name:32} {list(a.shape)} against {list(b.shape)}")
            failed = True
            continue
        scale = numpy.abs(a).max(initial=0.0)
        difference = numpy.abs(a - b).max(initial=0.0)
        relative = difference / scale if scale > 0 else difference
        bad = not relative <= options.tolerance  # also true for a NaN
        failed = failed or bad
        print(f"{name:32} {relative:9.2e}  of {scale:.3e}{'  too large' if bad else ''}")
    for path, tensors in ((options.first, first), (options.second, second)):
        if "read.gap" in tensors:
            print(f"smallest relative gap behind the last neighbour in {path}: {tensors['read.gap'].min():.1e}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
