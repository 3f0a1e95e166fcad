#!/bin/sh
# sequence_program.sh PROGRAM FOLDER: a program of a generative model that was built with CUDA. Without a GPU it refuses
# --device cuda in one sentence and leaves nothing behind; with one it trains, evaluates and samples there, and goes on
# on the host.
set -eu
program=$1 folder=$2
rm -rf "$folder"
mkdir -p "$folder"
train() {
    "$program" train --task perfect_recall --sequence.batch 8 --threads 2 --seed 1 --evaluate 20 --quiet --out "$folder/run" "$@"
}
fail() { echo "sequence_program.sh: $*" >&2; exit 1; }

status=0
train --steps 2400 --device cuda > "$folder/said" 2>&1 || status=$?
if grep -q "device 'cuda': this machine has no usable GPU (.*); use --device cpu" "$folder/said"; then
    [ "$status" = 2 ] || fail "train --device cuda ended with exit code $status: $(cat "$folder/said")"
    [ "$(wc -l < "$folder/said")" = 1 ] || fail "not one sentence: $(cat "$folder/said")"
    [ ! -e "$folder/run" ] || fail "a run that never began left a folder"
    echo "skipped: $(cat "$folder/said")"
    exit 77
fi
[ "$status" = 0 ] || fail "train --device cuda ended with exit code $status: $(cat "$folder/said")"
grep -q '"device": "cuda"' "$folder/run/summary.json" || fail "summary.json does not name the device"
"$program" evaluate --from "$folder/run" --episodes 20 --quiet
"$program" sample --from "$folder/run"
train --steps 3600 --resume --device cpu
train --steps 4800 --resume --device cuda
