#!/usr/bin/env bash
# The runs behind "The paper's tasks" of memup.md: ten digits and one query token, scattered queries, and sums, at the paper's sizes
# (preset `tuned`) by MemUP and by truncated BPTT. Hours on two cores; a run that was stopped goes on where its checkpoint stands.
# MemUP learns short sequences first, and longer ones from those weights: 40 steps, 120, and from there any other length.
#
#   docs/results/memup_literal.sh [RUNS_FOLDER]      (default runs/memup_literal; builds what it needs)
#   CASES="copy:120 copy:1020" SEEDS=1 THREADS=2 PARALLEL=1 docs/results/memup_literal.sh
#   DIRECT=1 docs/results/memup_literal.sh           no short ones first: all steps at the length that is asked for

set -euo pipefail
cd "$(dirname "$0")/../.."
runs=${1:-runs/memup_literal}
models=(memup tbptt_lstm)
cases=${CASES:-copy:120 scattered_copy:120 add:100 copy:520}
seeds=${SEEDS:-1 2 3}
[[ -n ${ENGRAM_BIN:-} ]] || { ./dev build "${models[@]/#/engram-}"; ENGRAM_BIN=build/bin; }

mkdir -p "$runs"
train() { # model task length seed steps [more]: prints the command, unless the run is finished
    local out=$runs/$1-$2-$3-$4
    grep -qs '"finished": true' "$out/summary.json" && { echo true; return; }
    echo "$ENGRAM_BIN/engram-$1 train --task $2 --task.steps $3 --preset tuned --seed $4 --out $out --threads ${THREADS:-1}" \
        "--steps $5 --evaluate 1000 --checkpoint-every 1000000 --quiet --resume ${*:6} > $out.log 2>&1"
}
from() { echo "--weights $runs/memup-$1-$2-$3 --set optimiser.learning_rate=0.0005"; }
chain() { # model case seed: the commands of one line, each of which needs those before it
    local task=${2%:*} length=${2#*:}
    if [[ $1 != memup ]]; then
        train "$1" "$task" "$length" "$3" 4000000
    elif [[ -n ${DIRECT:-} ]]; then
        case $2 in
            add:*) train memup add "$length" "$3" 12800000 ;;
            copy:120 | scattered_copy:120) train memup "$task" "$length" "$3" 25600000 ;;
            *) train memup "$task" "$length" "$3" 102400000 ;;
        esac
    elif [[ $task == *copy ]]; then
        echo "$(train memup "$task" 40 "$3" 8000000) && $(train memup "$task" 120 "$3" 3200000 "$(from "$task" 40 "$3")")"
        [[ $length == 120 ]] || train memup "$task" "$length" "$3" 3200000 "$(from "$task" 120 "$3")"
    elif [[ $task == add ]]; then
        echo "$(train memup add 30 "$3" 4000000) && $(train memup add "$length" "$3" 3200000 "$(from add 30 "$3")")"
    else
        train memup "$task" "$length" "$3" 102400000
    fi
}
line() { # joins what chain prints
    chain "$@" | awk 'NR > 1 { printf " && " } { printf "%s", $0 } END { print "" }'
}
# Longer copies come in a second round: they begin with the weights of others of the first.
for round in short long; do
    for one in $cases; do
        kind=short
        [[ -z ${DIRECT:-} && $one == *copy:* && $one != *copy:120 ]] && kind=long
        [[ $kind == "$round" ]] || continue
        for model in "${models[@]}"; do
            for seed in $seeds; do line "$model" "$one" "$seed"; done
        done
    done | xargs -r -P "${PARALLEL:-2}" -d '\n' -n 1 bash -c
done

printf '%-28s %9s %9s %10s %9s %9s %9s\n' run steps updates 'held out' 'wall, s' 'CPU, s' 'peak, MB'
for folder in "$runs"/*/; do
    awk -F'[:,]' -v name="$(basename "$folder")" '
        /"steps"/ { steps = $2 } /"updates"/ { updates = $2 } /"wall_seconds"/ { wall = $2 } /"cpu_seconds"/ { cpu = $2 }
        /"peak_memory_bytes"/ { peak = $2 / 1e6 } /holdout_interpolate/ { inside = 1 } inside && /"mean"/ { mean = $2; inside = 0 }
        END { printf "%-28s %9d %9d %10.4g %9.0f %9.0f %9.0f\n", name, steps, updates, mean, wall, cpu, peak }' "$folder/summary.json"
done
