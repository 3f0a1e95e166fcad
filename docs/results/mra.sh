#!/usr/bin/env bash
# The runs behind mra.md: ten ablations of the Memory Recall Agent on two tasks, three seeds, small preset; then LSTM+MEM with
# one default changed. About 45 minutes on two cores. Finished runs are kept, so it can be stopped and started again.
#
#   docs/results/mra.sh [RUNS_FOLDER]      (default runs/mra; builds what it needs)

set -euo pipefail
cd "$(dirname "$0")/../.."
runs=${1:-runs/mra}
tasks=(arbitrary_visuomotor_mapping continuous_recognition)
ablations=(ff ff_mem ff_mem_cpc ff_mem_rec lstm lstm_cpc lstm_mem lstm_mem_rec mra mra_no_jumpy)
seeds=(1 2 3)
changes=(memory.tied_start=false memory.neighbours=1 memory.epsilon=0.001 wiring.last_action_reward=false optimiser.clip=0.5)

[[ -n ${ENGRAM_BIN:-} ]] || { ./dev build "${ablations[@]/#/engram-}" engram-report; ENGRAM_BIN=build/bin; }

# The command of one run, unless it is finished: job FOLDER ABLATION TASK SEED [FLAG...]
job() {
    local out=$runs/$1
    grep -qs '"finished": true' "$out/summary.json" && return
    mkdir -p "$(dirname "$out")"
    echo "$ENGRAM_BIN/engram-$2 train --task $3 --seed $4 --out $out --threads 1 --quiet --resume ${*:5} > $out.log 2>&1"
}

{
    for seed in "${seeds[@]}"; do
        for task in "${tasks[@]}"; do
            for ablation in "${ablations[@]}"; do job "$task/$ablation-$seed" "$ablation" "$task" "$seed"; done
        done
    done
    for seed in 1 2; do
        for change in "${changes[@]}"; do job "defaults/$change-$seed" lstm_mem "${tasks[0]}" "$seed" --set "$change"; done
    done
} | xargs -r -P 2 -d '\n' -n 1 bash -c

for task in "${tasks[@]}"; do
    "$ENGRAM_BIN/engram-report" "$runs/$task"/*-[0-9] --out "$runs/$task/report.html"
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
done
printf '\nLSTM+MEM on %s with one default changed: %% of the maximum on train, interpolate, extrapolate\n' "${tasks[0]}"
for change in "${changes[@]}"; do
    for seed in 1 2; do
        printf '  %-34s seed %s ' "$change" "$seed"
        awk -F'[:,]' '/"mean"/ { mean = $2 } /"maximum"/ { printf " %6.1f", 100 * mean / $2 } END { print "" }' \
            "$runs/defaults/$change-$seed/summary.json"
    done
done
