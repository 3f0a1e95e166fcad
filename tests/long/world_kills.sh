#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Kills servers of worlds at random moments with SIGKILL, and stops others for good with SIGSTOP, while an agent trains in
# them. The run must go on, mark what was lost, hang nowhere, and end as it was told to.
#
#     tests/long/world_kills.sh <program of an agent> <world_server> [kills (100)] [seed (1)]
#
# Two servers carry the rows by turns, so that half of the rows have a world while the other half has none.
set -euo pipefail

[[ $# -ge 2 ]] || { echo "usage: world_kills.sh <program> <world_server> [kills (100)] [seed (1)]" >&2; exit 2; }
program=$1 server=$2 kills=${3:-100}
RANDOM=${4:-1}
work=$(mktemp -d "${TMPDIR:-/tmp}/engram-world-kills-XXXXXX")
pids=(0 0)
agent=
cleanup() {
    for p in "${pids[@]}" $agent; do [[ $p == 0 ]] || kill -9 "$p" 2>/dev/null || true; done
    rm -rf "$work"
}
trap cleanup EXIT
fail() { echo "world_kills: $*" >&2; exit 1; }
start() {  # start <which>: a server on its socket
    "$server" "unix:$work/$1" > "$work/ready$1" &
    pids[$1]=$!
    disown
    for _ in $(seq 200); do grep -q ready "$work/ready$1" && return; sleep 0.05; done
    fail "server $1 does not start"
}

start 0
start 1
"$program" train --world "rpc+unix:$work/0" --world "rpc+unix:$work/1" --world-set world=free_numbers --steps 1000000000 \
    --rollout.environments 8 --threads 2 --evaluate 0 --patience 30 --out "$work/run" --quiet 2> "$work/error" &
agent=$!
stopped=0
for ((i = 0; i < kills; ++i)); do
    sleep "0.$((RANDOM % 400 + 100))"
    kill -0 "$agent" 2> /dev/null || { cat "$work/error" >&2; fail "the run ended by itself after $i kills"; }
    which=$((RANDOM % 2))
    if ((i % 25 == 24)); then  # one that only stops has to be noticed
        kill -STOP "${pids[$which]}"
        sleep 11
        stopped=$((stopped + 1))
    fi
    kill -9 "${pids[$which]}"
    start "$which"
done
sleep 2
kill -INT "$agent"
code=0
wait "$agent" || code=$?
agent=
[[ $code == 130 ]] || { cat "$work/error" >&2; fail "exit code $code, expected 130"; }
lost=$(sed -n 's/.*"lost_episodes": \([0-9]*\).*/\1/p' "$work/run/summary.json")
joined=$(sed -n 's/.*"joined": \([0-9]*\).*/\1/p' "$work/run/summary.json")
steps=$(sed -n 's/^  "steps": \([0-9]*\).*/\1/p' "$work/run/summary.json")
((lost >= kills && lost <= 4 * (kills + stopped))) || fail "$lost episodes lost by $kills kills of four rows each"
((joined >= 9 + 2 * kills)) || fail "$joined worlds joined"
before=$steps
"$program" train --resume --out "$work/run" --steps $((before + 8000)) --evaluate 0 --quiet || fail "the run cannot go on"
echo "$kills kills, $stopped servers that stopped: $steps steps, $lost episodes lost, $joined worlds joined"
