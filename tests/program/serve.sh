#!/bin/sh
# SPDX-License-Identifier: MIT
# serve.sh <folder of programs> <the test program.serve> <scratch>: engram-tasks serve, asked by the Python package dm-env-rpc
# (serve.py). ENGRAM_RPC_PYTHON names an interpreter that has it; skipped where there is none:
#   python3 -m venv ~/.cache/engram/rpc && ~/.cache/engram/rpc/bin/pip install dm-env-rpc dm-env
set -eu
python=${ENGRAM_RPC_PYTHON:-$HOME/.cache/engram/rpc/bin/python}
if ! "$python" -c 'import dm_env, dm_env_rpc.v1.compliance' 2> /dev/null; then
    echo "skipped: there is no $python with dm-env-rpc and dm-env"
    exit 77
fi
mkdir -p "$3"
ENGRAM_NATIVE_EPISODES=$3/native.json "$2" --test-case='native episodes for peers' > /dev/null
exec "$python" "$(dirname "$0")/serve.py" "$1/engram-tasks" "$3/native.json"
