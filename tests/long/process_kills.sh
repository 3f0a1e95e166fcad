#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Kills one of several processes that train one model, a random one at a random moment, with SIGKILL: the job must end
# by itself within ten seconds and not with 0, the last checkpoint must be whole, and the run that any number of processes
# takes up again must end in the checkpoint and the metrics of a run that nobody touched, bit for bit.
#
#     tests/long/process_kills.sh <folder of the programs> [kills (50)] [seed (1)]
#
# Half of the kills are of two processes and half of four. MPIRUN: another mpirun.
set -euo pipefail

[[ $# -ge 1 ]] || { echo "usage: process_kills.sh <folder of the programs> [kills (50)] [seed (1)]" >&2; exit 2; }
bin=$1 kills=${2:-50}
RANDOM=${3:-1}
mpirun=${MPIRUN:-mpirun}
command -v "$mpirun" > /dev/null || { echo "process_kills: there is no $mpirun" >&2; exit 2; }
work=$(mktemp -d "${TMPDIR:-/tmp}/engram-process-kills-XXXXXX")
job=
trap '[[ -z $job ]] || kill -9 "$job" 2>/dev/null || true; rm -rf "$work"' EXIT
fail() { echo "process_kills: $*: $(cat "$work/said")" >&2; exit 1; }

rooms=()
if "$mpirun" --version 2>&1 | grep -q 'Open MPI'; then rooms=(--allow-run-as-root --oversubscribe); fi
program=$bin/engram-ff_mem
command=(train --task t_maze --task.length 10 --rollout.environments 16 --rollout.shards 8 --seed 3 --steps 48000
    --checkpoint-every 960 --evaluate 10 --quiet --resume)

start() {  # start <processes> <threads> <folder>: in the background
    "$mpirun" "${rooms[@]}" -n "$1" "$program" "${command[@]}" --threads "$2" --out "$3" > "$work/said" 2>&1 &
    job=$!
}
# Waits for the job for at most ten seconds more than <seconds>; its exit code in $code.
finish() {
    local waited=0
    while kill -0 "$job" 2> /dev/null; do
        sleep 0.05
        waited=$((waited + 1))
        ((waited < 20 * ($1 + 10))) || fail "the job has not ended after $(($1 + 10)) seconds"
    done
    code=0
    wait "$job" 2> /dev/null || code=$?
    job=
}
process_of() {  # process_of <rank>: its number, where it lives
    local process
    for process in $(grep -lszE "^(OMPI_COMM_WORLD_RANK|PMI_RANK)=$1\$" /proc/[0-9]*/environ); do
        process=${process%/environ}
        ! tr '\0' ' ' 2> /dev/null < "$process/cmdline" | grep -q "^$program .*--out $work/killed" || echo "${process#/proc/}"
    done
}
steps_of() { sed -n 's/^ *"steps": \([0-9]*\),*$/\1/p' "$1/summary.json" 2> /dev/null || true; }
# Everything that must be equal: how fast it was is not.
curves() {
    awk -F, -v OFS=, 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == "steps_per_second") column = i }
                      { $column = ""; print }' "$1/metrics.csv"
}
levels() { sed -n '/"levels"/,/^  }/p' "$1/summary.json"; }
# A checkpoint is whole when a program reads it.
whole() {
    [[ -e $work/killed/checkpoint/latest.safetensors ]] || return 0
    rm -rf "$work/copy"  # for the scores are noted in the folder
    cp -r "$work/killed" "$work/copy"
    "$program" evaluate --from "$work/copy" --episodes 1 --quiet > "$work/said" 2>&1 || fail "the checkpoint is not whole"
}
compare() {
    cmp "$work/whole/checkpoint/latest.safetensors" "$work/killed/checkpoint/latest.safetensors" || fail "the checkpoints differ"
    cmp <(curves "$work/whole") <(curves "$work/killed") || fail "the metrics differ"
    cmp <(levels "$work/whole") <(levels "$work/killed") || fail "the scores differ"
    [[ -z $(find "$work/killed" -name '*.safetensors.??????') ]] || fail "a half-written checkpoint is left"
}

begin=${EPOCHREALTIME/./}
start 2 1 "$work/whole"
finish 600
[[ $code == 0 ]] || fail "the run without kills ended with exit code $code"
lasts=$(((${EPOCHREALTIME/./} - begin) / 1000))

died=0 runs=0 further=0 before=0 slowest=0
counts=(0 0 0 0 0)  # kills of each rank
while ((died < kills)); do
    processes=$((2 + 2 * (died % 2)))
    start "$processes" $((1 + RANDOM % 2)) "$work/killed"
    # Lives of all lengths up to most of the whole run, its start included.
    life=$((100 + (RANDOM * 32768 + RANDOM) % lasts))
    sleep "$((life / 1000)).$(printf '%03d' $((life % 1000)))"
    rank=$((RANDOM % processes))
    victim=$(process_of "$rank")
    hit=
    [[ -z $victim ]] || ! kill -9 "$victim" 2> /dev/null || hit=yes
    killed_at=${EPOCHREALTIME/./}
    finish "$([[ -n $hit ]] && echo 0 || echo 600)"
    if [[ $code != 0 ]]; then
        [[ -n $hit ]] || fail "a job that nobody touched ended with $code"
        took=$(((${EPOCHREALTIME/./} - killed_at) / 1000))
        ((took <= slowest)) || slowest=$took
        died=$((died + 1)) counts[rank]=$((counts[rank] + 1))
        for rank in 0 1 2 3; do
            [[ -z $(process_of $rank) ]] || fail "process $rank lives on after its job"
        done
        whole
        now=$(steps_of "$work/killed") now=${now:-0}
        ((now >= before)) || fail "the kill lost a checkpoint: step $now after step $before"
        ((now == before)) || further=$((further + 1))
        before=$now
    elif grep -q '"finished": true' "$work/killed/summary.json"; then
        # It was done; a process that was killed while the others said goodbye would be no 0.
        compare
        runs=$((runs + 1)) before=0
        rm -rf "$work/killed"
    else
        fail "a job that is not finished ended with 0"
    fi
done
start $((1 + RANDOM % 4)) 1 "$work/killed"
finish 600
[[ $code == 0 ]] || fail "after $died kills it could not be resumed, exit code $code"
compare
echo "$mpirun: $died kills of ranks 0 to 3 (${counts[0]}, ${counts[1]}, ${counts[2]}, ${counts[3]}), $further of them behind a newer checkpoint;" \
    "a job ended within $slowest ms; $((runs + 1)) finished runs, all equal to the run without kills, bit for bit"
