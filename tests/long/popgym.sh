#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# POPGym's environments beside the original, 10,000 steps of each of the 45 variants (docs/results/popgym.md).
#   tests/long/popgym.sh BIN_DIRECTORY
# ENGRAM_POPGYM_PYTHON names an interpreter that has popgym and mazelib; skipped where there is none:
#   python3 -m venv ~/.cache/engram/popgym && ~/.cache/engram/popgym/bin/pip install popgym mazelib
set -euo pipefail

python="${ENGRAM_POPGYM_PYTHON:-$HOME/.cache/engram/popgym/bin/python}"
if [ ! -x "$python" ]; then
    echo "skipped: there is no $python with popgym and mazelib"
    exit 77
fi
exec "$python" "$(dirname "$0")/../../benchmarks/peers/popgym_parity.py" check --program "$1/benchmark-popgym"
