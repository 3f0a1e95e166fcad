#!/usr/bin/env bash
# The runs behind "Two Colors" of memup.md: who sees no past (V-trace without a memory) beside PPO on a memory that MemUP has trained,
# small fidelity, and what a script that remembers and random actions earn. About 20 minutes of one core a seed.
#
#   docs/results/two_colors.sh [RUNS_FOLDER]      (default runs/two_colors; builds what it needs)
#   SEEDS="1 2 3" docs/results/two_colors.sh

set -euo pipefail
cd "$(dirname "$0")/../.."
runs=${1:-runs/two_colors}
seeds=${SEEDS:-1}
[[ -n ${ENGRAM_BIN:-} ]] || { ./dev build engram-tasks engram-ff engram-ppo_memup; ENGRAM_BIN=build/bin; }

for fidelity in small paper; do
    for policy in oracle random; do
        echo "$fidelity $policy"
        "$ENGRAM_BIN/engram-tasks" score --task two_colors --fidelity "$fidelity" --policy "$policy" --episodes 200
    done
done

mkdir -p "$runs"
steps_of() { [[ $1 == ff ]] && echo 2000000 || echo 4000000; }
for seed in $seeds; do
    for model in ff ppo_memup; do
        out=$runs/$model-$seed
        grep -qs '"finished": true' "$out/summary.json" && continue
        echo "$ENGRAM_BIN/engram-$model train --task two_colors --task.fidelity small --seed $seed --out $out --threads 1" \
            "--steps $(steps_of "$model") --evaluate 200 --quiet --resume > $out.log 2>&1"
    done
done | xargs -r -P "${PARALLEL:-2}" -d '\n' -n 1 bash -c

# Smoothed reward of training, at every fifth of a million steps of the agent.
for seed in $seeds; do
    for model in ff ppo_memup; do
        echo "$model, seed $seed: step and smoothed reward"
        awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == "reward_smooth") at = i; next }
            $at != "" && int($1 / 200000) > last { last = int($1 / 200000); printf "%9d %6.2f\n", $1, $at }' "$runs/$model-$seed/metrics.csv"
        awk -F'[:,]' '/"(train|holdout_extrapolate)"/ { level = $1 } /"mean"/ { mean = $2 } /"stderr"/ { printf "%s %.2f +- %.2f\n", level, mean, $2 }' \
            "$runs/$model-$seed/summary.json"
    done
done
