#!/bin/sh
# run.sh [sum|actors] [BIN]: what several processes of one machine cost and give; both without a name. Needs an mpirun.
#   sum     the ordered sum of a gradient beside MPI_Allreduce and a copy, as 2, 4 and 8 processes
#   actors  steps a second on an environment of a millisecond a step: one process, five synchronous ones, and one that
#           learns from 1 to 4 that act apart. ROUNDS (3) times in turn, the median of each.
set -eu
what=all
case ${1:-} in sum | actors) what=$1; shift ;; esac
bin=${1:-build/bin}
command -v mpirun > /dev/null || { echo "skipped: there is no mpirun"; exit 77; }
for program in benchmark-processes_sum benchmark-slow_environment; do
    [ -x "$bin/$program" ] || { echo "run.sh: $bin/$program is not built (./dev bench processes)" >&2; exit 1; }
done
if mpirun --version 2>&1 | grep -q 'Open MPI'; then
    launch() { n=$1; shift; mpirun --allow-run-as-root --oversubscribe -n "$n" "$@"; }
else
    launch() { n=$1; shift; mpirun -n "$n" "$@"; }
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

if [ $what != actors ]; then
    echo "$(nproc) cores"
    for n in 2 4 8; do launch $n "$bin/benchmark-processes_sum"; done
fi
[ $what != sum ] || exit 0

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
