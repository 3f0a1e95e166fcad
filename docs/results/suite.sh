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
declare -A steps=([change_detection]=3000000 [spot_diff_passive]=10000000 [invisible_goal_empty_arena]=3000000
                  [transitive_inference]=3000000)

[[ -n ${ENGRAM_BIN:-} ]] || { ./dev build "${ablations[@]/#/engram-}" engram-report; ENGRAM_BIN=build/bin; }

# The command of one run, unless it is finished: job ABLATION TASK SEED [CHANGED SETTING]
job() {
    local out=$runs/$2/$1-$3
    [[ -z ${4:-} ]] || out=$runs/changed/$4/$2-$1-$3
    grep -qs '"finished": true' "$out/summary.json" && return
    mkdir -p "$(dirname "$out")"
    echo "$ENGRAM_BIN/engram-$1 train --task $2 --seed $3 --steps ${steps[$2]} --out $out --threads 1 --quiet --resume" \
         "${4:+--set $4} > $out.log 2>&1"
}

{
    for seed in "${seeds[@]}"; do
        for task in change_detection invisible_goal_empty_arena transitive_inference; do
            for ablation in "${ablations[@]}"; do job "$ablation" "$task" "$seed"; done
        done
        job lstm spot_diff_passive "$seed"
    done
    job lstm change_detection 1 encoder.subtract_mean=false
    for ablation in mra ff; do
        for seed in "${seeds[@]}"; do job "$ablation" spot_diff_passive "$seed"; done
    done
} | xargs -r -P 2 -d '\n' -n 1 bash -c

"$ENGRAM_BIN/engram-report" "$runs"/*/*-[0-9] --out "$runs/report.html"
