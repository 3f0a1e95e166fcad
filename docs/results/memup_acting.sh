#!/usr/bin/env bash
# The runs behind the second half of memup.md: T-Mazes of 100 steps by PPO on a memory that MemUP has trained, and by PPO with an
# LSTM, three seeds each; about two minutes on two cores. LENGTHS="100 500 1000" goes on to longer ones, one seed each.
#
#   docs/results/memup_acting.sh [RUNS_FOLDER]      (default runs/memup_acting; builds what it needs)

set -euo pipefail
cd "$(dirname "$0")/../.."
runs=${1:-runs/memup_acting}
models=(ppo_memup ppo_lstm)
[[ -n ${ENGRAM_BIN:-} ]] || { ./dev build "${models[@]/#/engram-}"; ENGRAM_BIN=build/bin; }
lengths=${LENGTHS:-100}

mkdir -p "$runs"
# Every phase takes as many episodes as at length 100; the longer mazes are run with one seed.
seeds() { [[ $1 == 100 ]] && echo 1 2 3 || echo 1; }
for length in $lengths; do
    times=$((length / 100))
    for seed in $(seeds "$length"); do
        for model in "${models[@]}"; do
            out=$runs/$model-$length-$seed
            grep -qs '"finished": true' "$out/summary.json" && continue
            phases=()
            [[ $model != ppo_memup ]] || phases=(--phases.detector_steps $((128000 * times)) --phases.memory.steps $((128000 * times))
                --phases.detector.replay.capacity $((128000 * times)))
            "$ENGRAM_BIN/engram-$model" train --task t_maze --task.length "$length" --seed "$seed" --out "$out" --threads 2 \
                --steps $((1500000 * times)) "${phases[@]}" --evaluate 0 --quiet --resume > "$out.log" 2>&1
            "$ENGRAM_BIN/engram-$model" evaluate --from "$out" --episodes 1000 --level train --quiet >> "$out.log" 2>&1
        done
    done
done

printf '%-10s %6s %5s %22s %14s\n' model length seed 'return, 1000 episodes' 'wall seconds'
for length in $lengths; do
    for model in "${models[@]}"; do
        for seed in $(seeds "$length"); do
            out=$runs/$model-$length-$seed
            mean=$(awk -F'[:,]' '/"train"/ { inside = 1 } inside && /"mean"/ { printf "%.3f", $2; exit }' "$out/summary.json")
            seconds=$(awk -F'[:,]' '/"wall_seconds"/ { printf "%.0f", $2 }' "$out/summary.json")
            printf '%-10s %6s %5s %22s %14s\n' "$model" "$length" "$seed" "$mean" "$seconds"
        done
    done
done
