#!/bin/sh
# program.sh PROGRAM FOLDER: a program that was built with CUDA. Without a GPU it refuses --device cuda in one sentence
# and leaves nothing behind; with one it trains, evaluates and samples there, and goes on on the host.
set -eu
program=$1 folder=$2
rm -rf "$folder"
mkdir -p "$folder"
train() {
    "$program" train --task arbitrary_visuomotor_mapping --task.stimulus_count 100 --rollout.environments 8 \
        --threads 2 --seed 1 --evaluate 5 --quiet --out "$folder/run" "$@"
}
fail() { echo "program.sh: $*" >&2; exit 1; }

if ! "$program" describe --device cuda > "$folder/about" 2>&1; then
    grep -q "device 'cuda': this machine has no usable GPU (.*); use --device cpu" "$folder/about" || fail "$(cat "$folder/about")"
    "$program" describe > "$folder/all" || fail "describe stopped for lack of a GPU"
    grep -q "cuda *device 'cuda': this machine has no usable GPU" "$folder/all" || fail "describe does not say why"
    status=0
    train --steps 1000 --device cuda > "$folder/said" 2>&1 || status=$?
    [ "$status" = 2 ] || fail "train --device cuda ended with exit code $status: $(cat "$folder/said")"
    [ "$(wc -l < "$folder/said")" = 1 ] || fail "not one sentence: $(cat "$folder/said")"
    [ ! -e "$folder/run" ] || fail "a run that never began left a folder"
    echo "skipped: $(cat "$folder/said")"
    exit 77
fi
cat "$folder/about"
train --steps 4000 --device cuda
grep -q '"device": "cuda"' "$folder/run/summary.json" || fail "summary.json does not name the device"
"$program" evaluate --from "$folder/run" --episodes 10 --quiet
"$program" sample --from "$folder/run"
train --steps 6000 --resume --device cpu
train --steps 8000 --resume --device cuda
