#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Kills training at random moments with SIGKILL, resumes it each time, and compares what comes out with a run that was
# never killed: checkpoint and metrics bit for bit where training is synchronous; nothing lost where it is not.
#
#     tests/long/kills.sh <folder of the programs> [kills of each kind (100)] [seed (1)] [kind...]
#
# A run that ends before it has been killed often enough is compared, and another one begins.
set -euo pipefail

[[ $# -ge 1 ]] || { echo "usage: kills.sh <folder of the programs> [kills (100)] [seed (1)] [kind...]" >&2; exit 2; }
bin=$1 kills=${2:-100}
RANDOM=${3:-1}
shift $(($# < 3 ? $# : 3))
kinds=("$@")
[[ ${#kinds[@]} -gt 0 ]] || kinds=(mra mra_two_threads memup phases asynchronous)

work=$(mktemp -d "${TMPDIR:-/tmp}/engram-kills-XXXXXX")
program=
trap '[[ -z $program ]] || kill -9 "$program" 2>/dev/null || true; rm -rf "$work"' EXIT
fail() { echo "kills: $kind: $*" >&2; exit 1; }

# The command of a kind, without its folder.
command_of() {
    local mapping=(--task arbitrary_visuomotor_mapping --checkpoint-every 2000)
    case $1 in
        mra) echo mra "${mapping[@]}" --steps 60000 --threads 1 ;;
        mra_two_threads) echo mra "${mapping[@]}" --steps 60000 --threads 2 ;;
        memup) echo memup --task copy --task.steps 60 --steps 150000 --threads 1 --checkpoint-every 2000 ;;
        phases) echo ppo_memup --task t_maze --task.length 12 --steps 300000 --threads 1 --checkpoint-every 5000 \
            --phases.detector_steps 100000 --phases.memory.steps 100000 --phases.detector.start 6400 ;;
        asynchronous) echo mra "${mapping[@]}" --steps 60000 --threads 2 --mode asynchronous ;;
        *) fail "no such kind; expected mra, mra_two_threads, memup, phases or asynchronous" ;;
    esac
}

start() {  # start <folder>: the run of this kind in the background
    "$bin/engram-${command[0]}" train "${command[@]:1}" --evaluate 10 --quiet --resume --out "$1" 2> "$work/error" &
    program=$!
}
finish() {  # waits for the program; its exit code, 137 when it was killed, in $code
    code=0
    wait "$program" 2> /dev/null || code=$?
    program=
}
steps_of() { sed -n 's/^ *"steps": \([0-9]*\),*$/\1/p' "$1/summary.json" 2> /dev/null || true; }
# Everything that must be equal: how fast it was is not.
curves() {
    awk -F, -v OFS=, 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == "steps_per_second") column = i }
                      { $column = ""; print }' "$1/metrics.csv"
}
compare() {
    [[ $(steps_of "$work/killed") == $(steps_of "$work/whole") ]] || [[ $kind == asynchronous ]] ||
        fail "it ended at step $(steps_of "$work/killed"), the run without kills at $(steps_of "$work/whole")"
    awk -F, 'NR > 2 && $1 <= last { exit 1 } NR > 1 { last = $1 }' "$work/killed/metrics.csv" ||
        fail "metrics.csv has a step twice"
    grep -q '"finished": true' "$work/killed/summary.json" || fail "the run is not finished"
    [[ -z $(find "$work/killed" -name '*.safetensors.??????') ]] ||
        fail "a half-written checkpoint is left"
    [[ $kind != asynchronous ]] || return 0
    cmp "$work/whole/checkpoint/latest.safetensors" "$work/killed/checkpoint/latest.safetensors" ||
        fail "the checkpoints differ"
    cmp <(curves "$work/whole") <(curves "$work/killed") || fail "the metrics differ"
}

for kind in "${kinds[@]}"; do
    read -r -a command <<< "$(command_of "$kind")"
    rm -rf "$work/whole" "$work/killed"
    begin=${EPOCHREALTIME/./}
    start "$work/whole"
    finish
    [[ $code == 0 ]] || fail "the run without kills ended with exit code $code: $(cat "$work/error")"
    whole=$(((${EPOCHREALTIME/./} - begin) / 1000))
    died=0 runs=0 further=0 before=0
    while ((died < kills)); do
        start "$work/killed"
        # Lives of all lengths up to a fifth of the whole run, so that moments of every part of it are met.
        life=$((20 + (RANDOM * 32768 + RANDOM) % (whole / 5 + 100)))
        sleep "$((life / 1000)).$(printf '%03d' $((life % 1000)))"
        kill -9 "$program" 2> /dev/null || true
        finish
        case $code in
            137) died=$((died + 1)) ;;
            0) ;;
            *) fail "after $died kills it could not be resumed, exit code $code: $(cat "$work/error")" ;;
        esac
        now=$(steps_of "$work/killed") now=${now:-0}
        ((now >= before)) || fail "the kill lost a checkpoint: step $now after step $before"
        ((now == before)) || further=$((further + 1))
        before=$now
        if [[ $code == 0 ]]; then
            compare
            runs=$((runs + 1)) before=0
            rm -rf "$work/killed"
        fi
    done
    start "$work/killed"
    finish
    [[ $code == 0 ]] || fail "after $died kills it could not be resumed, exit code $code: $(cat "$work/error")"
    compare
    echo "$kind: $died kills, $further of them behind a newer checkpoint; $((runs + 1)) finished runs," \
        "$([[ $kind == asynchronous ]] && echo "none lost" || echo "all equal to the run without kills, bit for bit")"
done
