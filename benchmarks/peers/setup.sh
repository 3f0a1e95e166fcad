#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Makes the Python environment that the peer benchmarks need, outside the source tree.
#   benchmarks/peers/setup.sh [DIRECTORY] [extra arguments of pip install]
# DIRECTORY defaults to $ENGRAM_PEERS_VENV, else ~/.cache/engram/peers. Only the CPU is used, but the default wheel of
# torch for Linux brings its CUDA libraries along (5 GB); whoever has a CPU-only index names it as an extra argument.
set -euo pipefail

directory="${1:-${ENGRAM_PEERS_VENV:-$HOME/.cache/engram/peers}}"
if [ $# -gt 0 ]; then shift; fi

python3 -m venv "$directory"
"$directory/bin/pip" install --quiet --no-cache-dir "$@" torch numpy safetensors faiss-cpu
"$directory/bin/python" -c 'import faiss, torch, numpy, safetensors
for module in (torch, faiss, numpy, safetensors):
    print(module.__name__, module.__version__, end=" ")
print()'
echo "ready: $directory/bin/python"
