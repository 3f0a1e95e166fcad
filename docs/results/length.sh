#!/bin/sh
# The runs of length.campaign at 4 and 16 times the length they were trained on. Each run keeps the scores in its summary.json, under
# `changed`; printed: task, program, seed, times, mean, standard error.
set -e
cd "$(dirname "$0")/../.."
for run in runs/length/*/*; do
    task=$(basename "$(dirname "$run")")
    name=$(basename "$run")
    case $task in
        t_maze) four=task.length=80 sixteen=task.length=320 ;;
        popgym_repeat_previous) four=task.decks=4 sixteen=task.decks=16 ;;
        continuous_recognition) four=task.trials=200 sixteen=task.trials=800 ;;
    esac
    for set in "" "$four" "$sixteen"; do
        line=$("build/bin/engram-${name%-*}" evaluate --from "$run" --level train --episodes 200 ${set:+--set "$set"} | awk '$1 == "train" {print $2 "," $3}')
        echo "$task,${name%-*},${name##*-},${set:-trained},$line"
    done
done
