#!/bin/sh
# SPDX-License-Identifier: MIT
# world_peer.sh <program of an agent> <scratch>: the agent in a world behind the Python package dm-env-rpc
# (world_peer.py).
set -eu
needs="dm_env_rpc.v1.spec_manager, numpy, grpc"
. "$(dirname "$0")/dm_env_rpc.sh"
rm -rf "$2"
mkdir -p "$2"
socket=$(mktemp -u "${TMPDIR:-/tmp}/engram-catch-XXXXXX")
server=
trap '[ -z "$server" ] || kill "$server" 2> /dev/null || true; rm -f "$socket"' EXIT
: > "$2/server"
"$python" "$(dirname "$0")/world_peer.py" "unix:$socket" > "$2/server" 2>&1 &
server=$!
tries=0
until grep -q ready "$2/server"; do
    tries=$((tries + 1))
    [ $tries -le 200 ] && kill -0 "$server" || { cat "$2/server"; exit 1; }
    sleep 0.1
done

fail() { echo "world_peer: $*" >&2; exit 1; }
"$1" describe --world "rpc+unix:$socket" --world-set seed=1 > "$2/described" || fail "describe"
grep -q '1 x 1 x 50 numbers' "$2/described" || fail "a board of 10 x 5 is not 50 numbers"
grep -q 'paddle, INT8 \[\], -1 to 1' "$2/described" || fail "the paddle's bounds"
"$1" train --world "rpc+unix:$socket" --world-set 'seed={seed}' --steps 1600 --rollout.environments 8 --threads 2 \
    --evaluate 8 --out "$2/run" --quiet || fail "train"
# 200 moves a row, nine an episode.
"$python" -c 'import json, sys
s = json.load(open(sys.argv[1]))
assert s["episodes"] == 8 * (200 // 9), s["episodes"]
assert -1 <= s["levels"]["train"]["mean"] <= 1 and s["levels"]["train"]["episodes"] == 8
assert s["world"]["lost_episodes"] == 0 and s["world"]["joined"] == 9' "$2/run/summary.json" || fail "what the run says of itself"
# What the world refuses it says itself.
if "$1" describe --world "rpc+unix:$socket" --world-set level=2 > /dev/null 2> "$2/refused"; then fail "a setting that is unknown"; fi
grep -q 'answered with an error: catch knows one setting, seed' "$2/refused" || fail "the world's own sentence"
