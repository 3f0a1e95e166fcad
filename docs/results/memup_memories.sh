#!/usr/bin/env bash
# The runs behind "Other memories" of memup.md: copies over 120 steps by MemUP with a k-NN memory, an NTM and a DNC in place of the
# LSTM, three seeds each, one thread each, two at a time.
#
#   docs/results/memup_memories.sh [RUNS_FOLDER]      (default runs/memup_memories; builds what it needs)

set -euo pipefail
cd "$(dirname "$0")/../.."
runs=${1:-runs/memup_memories}
models=(memup_knn memup_ntm memup_dnc)
[[ -n ${ENGRAM_BIN:-} ]] || { ./dev build "${models[@]/#/engram-}"; ENGRAM_BIN=build/bin; }

mkdir -p "$runs"
for seed in ${SEEDS:-1 2 3}; do
    for model in "${models[@]}"; do
        out=$runs/$model-$seed
        grep -qs '"finished": true' "$out/summary.json" && continue
        echo "$ENGRAM_BIN/engram-$model train --task copy --task.steps 120 --steps 4000000 --seed $seed --out $out --threads 1" \
            "--evaluate 1000 --quiet --resume > $out.log 2>&1"
    done
done | xargs -r -P "${PARALLEL:-2}" -d '\n' -n 1 bash -c

printf '%-12s %5s %22s %14s\n' model seed '% right, held out' 'wall seconds'
for model in "${models[@]}"; do
    for seed in ${SEEDS:-1 2 3}; do
        out=$runs/$model-$seed
        mean=$(awk -F'[:,]' '/holdout_interpolate/ { inside = 1 } inside && /"mean"/ { printf "%.2f", $2; exit }' "$out/summary.json")
        seconds=$(awk -F'[:,]' '/"wall_seconds"/ { printf "%.0f", $2 }' "$out/summary.json")
        printf '%-12s %5s %22s %14s\n' "$model" "$seed" "$mean" "$seconds"
    done
done
