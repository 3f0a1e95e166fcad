#!/bin/sh
# SPDX-License-Identifier: MIT
# bridge.sh <checkout>: tools/world_bridge.py on Gymnasium's CartPole and on an environment of dm_env, and what every space
# becomes (bridge.py). ENGRAM_RPC_PYTHON names an interpreter that has the packages; skipped where there is none:
#   python3 -m venv ~/.cache/engram/rpc && ~/.cache/engram/rpc/bin/pip install dm-env-rpc dm-env gymnasium
set -eu
python=${ENGRAM_RPC_PYTHON:-$HOME/.cache/engram/rpc/bin/python}
if ! "$python" -c 'import dm_env, dm_env_rpc.v1.compliance, gymnasium' 2> /dev/null; then
    echo "skipped: there is no $python with dm-env-rpc, dm-env and gymnasium"
    exit 77
fi
exec "$python" "$1/tests/program/bridge.py" "$1/tools/world_bridge.py"
