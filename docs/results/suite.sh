#!/usr/bin/env bash
# The runs behind suite.md: a feed-forward agent, an LSTM and the Memory Recall Agent (LSTM+MEM+CPC) on one task of each
# family of the Memory Tasks Suite, three seeds, small preset. Visuomotor mapping is in mra.sh. About two hours on two
# cores. Finished runs are kept, so it can be stopped and started again.
#
#   docs/results/suite.sh [RUNS_FOLDER]      (default runs/suite; builds what it needs)

set -euo pipefail
cd "$(dirname "$0")/../.."
runs=${1:-runs/suite}
ablations=(ff lstm mra)
seeds=(1 2 3)
declare -A steps=([change_detection]=3000000 [spot_diff_passive]=12000000 [invisible_goal_empty_arena]=6000000
                  [transitive_inference]=6000000)

[[ -n ${ENGRAM_BIN:-} ]] || { ./dev build "${ablations[@]/#/engram-}" engram-report; ENGRAM_BIN=build/bin; }

for seed in "${seeds[@]}"; do
    for ablation in "${ablations[@]}"; do
        for task in "${!steps[@]}"; do
            out=$runs/$task/$ablation-$seed
            grep -qs '"finished": true' "$out/summary.json" && continue
            mkdir -p "$(dirname "$out")"
            echo "$ENGRAM_BIN/engram-$ablation train --task $task --seed $seed --steps ${steps[$task]} --out $out" \
                 "--threads 1 --quiet --resume > $out.log 2>&1"
        done
    done
done | xargs -r -P 2 -d '\n' -n 1 bash -c

"$ENGRAM_BIN/engram-report" "$runs"/*/*-[0-9] --out "$runs/report.html"
