#!/bin/sh
# run.sh [sum|actors|beside] [BIN]: what several processes of one machine cost and give; all without a name. Needs an
# mpirun.
#   sum     the ordered sum of a gradient beside MPI_Allreduce and a copy, as 2, 4 and 8 processes
#   actors  steps a second on an environment of a millisecond a step: one process, five synchronous ones, and one that
#           learns from 1 to 4 that act apart. ROUNDS (3) times in turn, the median of each.
#   beside  two processes of one thread beside one process of two, ROUNDS times in turn, and whether both write the same
#           checkpoint: the small preset, a DNC on sequences, the recurrent core at the paper's sizes (a T-Maze shows one
#           pixel), and the paper's full update on frames. ROWS: some of small, dnc, core and full.
set -eu
what=all
case ${1:-} in sum | actors | beside) what=$1; shift ;; esac
bin=${1:-build/bin}
command -v mpirun > /dev/null || { echo "skipped: there is no mpirun"; exit 77; }
case $what in
    sum) programs=benchmark-processes_sum ;;
    actors) programs=benchmark-slow_environment ;;
    beside) programs="engram-lstm_mem engram-dnc_gtmm engram-mra" ;;
    *) programs="benchmark-processes_sum benchmark-slow_environment engram-lstm_mem engram-dnc_gtmm engram-mra" ;;
esac
for program in $programs; do
    [ -x "$bin/$program" ] || { echo "run.sh: $bin/$program is not built (./dev bench processes)" >&2; exit 1; }
done
if mpirun --version 2>&1 | grep -q 'Open MPI'; then
    launch() { n=$1; shift; mpirun --allow-run-as-root --oversubscribe -n "$n" "$@"; }
else
    launch() { n=$1; shift; mpirun -n "$n" "$@"; }
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

if [ $what = all ] || [ $what = sum ]; then
    echo "$(nproc) cores"
    for n in 2 4 8; do launch $n "$bin/benchmark-processes_sum"; done
fi

beside() { # label, program, arguments
    label=$1 program=$2
    shift 2
    rm -f "$folder/ratios"
    for round in $(seq "${ROUNDS:-3}"); do
        for n in 1 2; do
            rm -rf "$folder/run$n"
            [ $n = 1 ] || launcher=launch
            [ $n = 2 ] || launcher=alone
            $launcher $n "$bin/$program" train --seed 1 --threads $((3 - n)) --evaluate 0 --quiet \
                --checkpoint-every 100000000 "$@" --out "$folder/run$n" > "$folder/said" 2>&1 || { cat "$folder/said" >&2; exit 1; }
            sed -n 's/.*"steps_per_second": \([0-9.]*\).*/\1/p' "$folder/run$n/summary.json" > "$folder/rate$n"
        done
        cmp "$folder/run1/checkpoint/latest.safetensors" "$folder/run2/checkpoint/latest.safetensors" ||
            { echo "run.sh: $label: two processes end in another checkpoint than one" >&2; exit 1; }
        paste "$folder/rate2" "$folder/rate1" | awk '{print $1 / $2}' >> "$folder/ratios"
    done
    sort -g "$folder/ratios" | awk -v label="$label" '{r[NR] = $1}
        END {printf "| %s | %.2f | %.2f to %.2f | %d |\n", label, NR % 2 ? r[(NR + 1) / 2] : (r[NR / 2] + r[NR / 2 + 1]) / 2, r[1], r[NR], NR}'
}
alone() { shift; "$@"; }
if [ $what = all ] || [ $what = beside ]; then
    echo "load $(cut -d' ' -f1 /proc/loadavg) before, $(nproc) cores"
    echo "| two processes beside two threads | times as fast, median | from and to | rounds |"
    echo "|---|---|---|---|"
    for row in ${ROWS:-small dnc core full}; do
        case $row in
            small) beside "LSTM+MEM, small preset" engram-lstm_mem --task change_detection --steps 300000 ;;
            dnc) beside "DNC, sequences" engram-dnc_gtmm --task perfect_recall --steps 6000 ;;
            core) beside "core, the paper's sizes" engram-lstm_mem --preset paper --task t_maze --steps 16000 ;;
            full) beside "full update, the paper's sizes" engram-mra --preset paper --task change_detection --steps 4000 ;;
            *) echo "run.sh: ROWS: '$row' is none of small, dnc, core, full" >&2; exit 1 ;;
        esac
    done
    echo "load $(cut -d' ' -f1 /proc/loadavg) after"
fi
if [ $what = sum ] || [ $what = beside ]; then exit 0; fi

one() { # label, processes, further arguments
    label=$1 n=$2
    shift 2
    rm -rf "$folder/run"
    set -- "$bin/benchmark-slow_environment" train --task slow_match --seed 1 --threads 1 --evaluate 0 --quiet \
        --set rollout.environments=16 --set rollout.unroll=8 --checkpoint-every 100000000 "$@" --out "$folder/run"
    if [ "$n" = 1 ]; then "$@" > "$folder/said" 2>&1; else launch "$n" "$@" > "$folder/said" 2>&1; fi ||
        { cat "$folder/said" >&2; exit 1; }
    # The clock of the summary begins when the processes are connected.
    rate=$(sed -n 's/.*"steps_per_second": \([0-9.]*\).*/\1/p' "$folder/run/summary.json")
    lag=$(awk -F, 'NR == 1 {for (i = 1; i <= NF; ++i) if ($i == "lag") at = i} NR > 1 {sum += $at; ++n} END {print n ? sum / n : 0}' "$folder/run/metrics.csv")
    echo "$label;$rate;$lag" >> "$folder/figures"
}
steps=${STEPS:-16000}
for _ in $(seq "${ROUNDS:-3}"); do
    one "one process, synchronous" 1 --steps "$((steps / 4))"
    one "five processes, synchronous" 5 --steps "$steps"
    for actors in 1 2 3 4; do
        one "one learns, $actors act" $((actors + 1)) --mode asynchronous --actors $actors --steps "$((steps * actors / 4))"
    done
done
echo "| | steps/s | beside one process | mean lag, updates |"
echo "|---|---|---|---|"
sort -t';' -k1,1 -k2,2g "$folder/figures" | awk -F';' '
    {rates[$1] = rates[$1] " " $2; lags[$1] += $3; ++n[$1]}
    END {for (k in n) {split(rates[k], r, " "); m[k] = r[int((n[k] + 1) / 2)]}
         for (k in n) printf "| %s | %.0f | %.2f | %.2f |\n", k, m[k], m[k] / m["one process, synchronous"], lags[k] / n[k]}' | sort
