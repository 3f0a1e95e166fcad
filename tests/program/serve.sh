#!/bin/sh
# SPDX-License-Identifier: MIT
# serve.sh <folder of programs> <the test program.serve> <scratch>: engram-tasks serve, asked by the Python package dm-env-rpc
# (serve.py).
set -eu
needs="dm_env, dm_env_rpc.v1.compliance"
. "$(dirname "$0")/dm_env_rpc.sh"
mkdir -p "$3"
ENGRAM_NATIVE_EPISODES=$3/native.json "$2" --test-case='native episodes for peers' > /dev/null
exec "$python" "$(dirname "$0")/serve.py" "$1/engram-tasks" "$3/native.json"
