#!/bin/sh
# SPDX-License-Identifier: MIT
# world_served.sh BIN FOLDER: an agent in a world behind engram-tasks serve. Both sides are ours: what is served is learnt from, scored
# and counted as an agent's own task is, and a server that ends costs a sentence.
set -eu
bin=$1 folder=$2
rm -rf "$folder"
mkdir -p "$folder"
fail() { echo "world_served: $*" >&2; exit 1; }
"$bin/engram-tasks" serve --port 0 > "$folder/server" 2>&1 &
server=$!
trap 'kill "$server" 2> /dev/null || true' EXIT
tries=0
until grep -q '^listening at' "$folder/server"; do
    tries=$((tries + 1))
    [ $tries -le 200 ] && kill -0 "$server" || fail "$(cat "$folder/server")"
    sleep 0.1
done
world=rpc://$(sed -n 's/^listening at \([^,]*\),.*/\1/p' "$folder/server")

"$bin/engram-lstm" describe --world "$world" --world-set levelName=t_maze --world-set length=6 > "$folder/described" || fail "describe"
grep -q '1 x 1 x 3 numbers *2 actions' "$folder/described" || fail "a T-Maze shows three numbers and takes two actions"
common="--seed 1 --steps 1600 --rollout.environments 8 --threads 2 --quiet"
"$bin/engram-lstm" train --world "$world" --world-set levelName=t_maze --world-set length=5 --world-set length_spread=1 \
    --world-set seed=1 --world-set 'episodeId={row}' $common --evaluate 8 --out "$folder/run" || fail "train"
"$bin/engram-lstm" train --task t_maze --set task.length=5 --set task.length_spread=1 $common --evaluate 0 --out "$folder/native" || fail "native"
# Row by row the episodes are those of a native run of that seed, and so is every number but the last two columns: speed, and none.
numbers() { awk -F, '{NF -= 2; print}' "$folder/$1/metrics.csv"; }
[ "$(numbers run | wc -l)" -ge 5 ] || fail "a run of $(numbers run | wc -l) lines"
[ "$(numbers run)" = "$(numbers native)" ] || fail "a served task is not learnt as the native one: $(numbers run | tail -n 1), $(numbers native | tail -n 1)"
number() { sed -n "s/.*\"$1\": *\([-0-9.]*\).*/\1/p" "$folder/run/summary.json" | head -n 1; }
[ "$(number lost_episodes)" = 0 ] || fail "$(number lost_episodes) episodes were lost"
awk -v n="$(number mean)" 'BEGIN { exit !(n >= -3 && n <= 4) }' || fail "a mean reward of $(number mean)"
"$bin/engram-lstm" evaluate --from "$folder/run" --episodes 16 --quiet || fail "evaluate"

kill "$server"
wait "$server" || fail "the server ended with $?"
status=0
"$bin/engram-lstm" evaluate --from "$folder/run" --patience 1 > /dev/null 2> "$folder/gone" || status=$?
[ "$status" = 2 ] && grep -q 'nobody answers there within 1 second' "$folder/gone" || fail "$status: $(cat "$folder/gone")"
