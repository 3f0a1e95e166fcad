#!/usr/bin/env bash
# The runs behind "The paper's tasks" of memup.md: ten digits and one query token, scattered queries, and sums, at the paper's sizes
# (preset `tuned`) by MemUP and by truncated BPTT. Hours on two cores; a run that was stopped goes on where its checkpoint stands.
# Copies over 520 steps and more begin with the weights of copies over 120 steps.
#
#   docs/results/memup_literal.sh [RUNS_FOLDER]      (default runs/memup_literal; builds what it needs)
#   CASES="copy:120 copy:1020" SEEDS=1 THREADS=2 PARALLEL=1 docs/results/memup_literal.sh

set -euo pipefail
cd "$(dirname "$0")/../.."
runs=${1:-runs/memup_literal}
models=(memup tbptt_lstm)
cases=${CASES:-copy:120 scattered_copy:120 add:100 copy:520}
seeds=${SEEDS:-1 2 3}
[[ -n ${ENGRAM_BIN:-} ]] || { ./dev build "${models[@]/#/engram-}"; ENGRAM_BIN=build/bin; }

mkdir -p "$runs"
is_long_copy() { [[ $1 == copy:* && ${1#*:} -gt 120 ]]; }
# What the length asks for: steps, and where a run begins.
steps_of() { # model case seed
    [[ $1 == memup ]] || { echo 4000000; return; }
    case $2 in
        copy:120 | scattered_copy:120) echo 25600000 ;;
        add:100) echo 12800000 ;;
        *) is_long_copy "$2" && echo 6400000 || echo 102400000 ;;
    esac
}
begins_with() { # model case seed
    [[ $1 == memup ]] && is_long_copy "$2" || return 0
    echo "--weights $runs/memup-copy-120-$3 --set optimiser.learning_rate=0.0005"
}
commands() { # the cases of one round
    local one model seed out
    for one; do
        for model in "${models[@]}"; do
            for seed in $seeds; do
                out=$runs/$model-${one/:/-}-$seed
                grep -qs '"finished": true' "$out/summary.json" && continue
                echo "$ENGRAM_BIN/engram-$model train --task ${one%:*} --task.steps ${one#*:} --preset tuned --seed $seed --out $out" \
                    "--threads ${THREADS:-1} --steps $(steps_of "$model" "$one") --evaluate 1000 --checkpoint-every 1000000 --quiet --resume" \
                    "$(begins_with "$model" "$one" "$seed") > $out.log 2>&1"
            done
        done
    done
}
first=() second=()
for one in $cases; do
    if is_long_copy "$one"; then second+=("$one"); else first+=("$one"); fi
done
for round in "${first[*]}" "${second[*]}"; do
    # shellcheck disable=SC2086
    commands $round | xargs -r -P "${PARALLEL:-2}" -d '\n' -n 1 bash -c
done

printf '%-11s %-20s %5s %10s %10s %9s %9s %9s\n' model task seed 'held out' updates 'wall, s' 'CPU, s' 'peak, MB'
for one in $cases; do
    for model in "${models[@]}"; do
        for seed in $seeds; do
            awk -F'[:,]' -v model="$model" -v task="${one/:/ }" -v seed="$seed" '
                /"updates"/ { updates = $2 } /"wall_seconds"/ { wall = $2 } /"cpu_seconds"/ { cpu = $2 } /"peak_memory_bytes"/ { peak = $2 / 1e6 }
                /holdout_interpolate/ { inside = 1 } inside && /"mean"/ { mean = $2; inside = 0 }
                END { printf "%-11s %-20s %5s %10.4g %10d %9.0f %9.0f %9.0f\n", model, task, seed, mean, updates, wall, cpu, peak }' \
                "$runs/$model-${one/:/-}-$seed/summary.json"
        done
    done
done
