#!/usr/bin/env bash
# The runs behind memup.md: copies over 60 and 120 steps by MemUP and by truncated BPTT, three seeds each. About ten minutes on
# two cores.
#
#   docs/results/memup.sh [RUNS_FOLDER]      (default runs/memup; builds what it needs)

set -euo pipefail
cd "$(dirname "$0")/../.."
runs=${1:-runs/memup}
models=(memup tbptt_lstm)
[[ -n ${ENGRAM_BIN:-} ]] || { ./dev build "${models[@]/#/engram-}" engram-report; ENGRAM_BIN=build/bin; }

mkdir -p "$runs"
for steps in 60 120; do
    for seed in 1 2 3; do
        for model in "${models[@]}"; do
            out=$runs/$model-$steps-$seed
            length=$((steps == 60 ? 2000000 : 4000000))
            [[ $model == memup ]] || length=1000000
            grep -qs '"finished": true' "$out/summary.json" && continue
            "$ENGRAM_BIN/engram-$model" train --task copy --task.steps "$steps" --seed "$seed" --out "$out" --threads 2 --steps "$length" \
                --evaluate 1000 --quiet --resume > "$out.log" 2>&1
        done
    done
done

printf '%-12s %6s %5s %22s %14s\n' model steps seed '% right, held out' 'wall seconds'
for steps in 60 120; do
    for model in "${models[@]}"; do
        for seed in 1 2 3; do
            out=$runs/$model-$steps-$seed
            mean=$(awk -F'[:,]' '/holdout_interpolate/ { inside = 1 } inside && /"mean"/ { printf "%.2f", $2; exit }' "$out/summary.json")
            seconds=$(awk -F'[:,]' '/"wall_seconds"/ { printf "%.0f", $2 }' "$out/summary.json")
            printf '%-12s %6s %5s %22s %14s\n' "$model" "$steps" "$seed" "$mean" "$seconds"
        done
    done
done
