#!/usr/bin/env bash
# The runs behind mra.md: ten ablations of the Memory Recall Agent on two tasks, three seeds, small preset. About 45 minutes
# on two cores. Finished runs are kept, so the script can be stopped and started again.
#
#   docs/results/mra.sh [RUNS_FOLDER]      (default runs/mra; builds what it needs)

set -euo pipefail
cd "$(dirname "$0")/../.."
runs=${1:-runs/mra}
tasks=(arbitrary_visuomotor_mapping continuous_recognition)
ablations=(ff ff_mem ff_mem_cpc ff_mem_rec lstm lstm_cpc lstm_mem lstm_mem_rec mra mra_no_jumpy)
seeds=(1 2 3)

[[ -n ${ENGRAM_BIN:-} ]] || { ./dev build "${ablations[@]/#/engram-}" engram-report; ENGRAM_BIN=build/bin; }
for seed in "${seeds[@]}"; do
    for task in "${tasks[@]}"; do
        for ablation in "${ablations[@]}"; do
            out=$runs/$task/$ablation-$seed
            grep -qs '"finished": true' "$out/summary.json" || printf '%s\n' \
                "mkdir -p $runs/$task && $ENGRAM_BIN/engram-$ablation train --task $task --seed $seed --out $out --threads 1 --quiet > $out.log"
        done
    done
done | xargs -r -P 2 -d '\n' -n 1 bash -c

# Steps until the smoothed reward first reaches 95 % of the maximum, for each seed.
for task in "${tasks[@]}"; do
    "$ENGRAM_BIN/engram-report" "$runs/$task"/*-[0-9]* --out "$runs/$task/report.html"
    printf '\nsteps until the smoothed training reward is 95 %% of the maximum (seeds %s)\n' "${seeds[*]}"
    for ablation in "${ablations[@]}"; do
        printf '  %-14s' "$ablation"
        for seed in "${seeds[@]}"; do
            awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) column[$i] = i; next }
                     !found && $column["reward_smooth"] >= 0.95 * 50 { found = $column["step"] }
                     END { printf " %10s", found ? found : "never" }' "$runs/$task/$ablation-$seed/metrics.csv"
        done
        printf '\n'
    done
    printf '\n'
done
