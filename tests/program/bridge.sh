#!/bin/sh
# SPDX-License-Identifier: MIT
# bridge.sh <checkout>: tools/world_bridge.py on Gymnasium's CartPole and on an environment of dm_env, and what every space
# becomes (bridge.py).
set -eu
needs="dm_env, dm_env_rpc.v1.compliance, gymnasium"
. "$(dirname "$0")/dm_env_rpc.sh"
exec "$python" "$1/tests/program/bridge.py" "$1/tools/world_bridge.py"
