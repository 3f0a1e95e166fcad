#!/usr/bin/env bash
# The trained runs of answer.campaign at 1, 4 and 16 times the length that they were trained on: a row a memory, the mean over
# the seeds that have run, in docs/results/data/length.csv. Each run keeps its scores in its summary.json, under `changed`.
# BIN names another folder of programs.
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=${BIN:-build/bin}
runs=$(mktemp)
trap 'rm -f "$runs"' EXIT
for run in runs/answer/{t_maze,popgym_repeat_previous,continuous_recognition,copy}/*; do
    grep -q '"finished": true' "$run/summary.json" 2> /dev/null || continue
    task=$(basename "$(dirname "$run")")
    name=$(basename "$run")
    program=${name%-*}
    case $task in
        t_maze) longer=(task.length=80 task.length=320) ;;
        popgym_repeat_previous) longer=(task.decks=4 task.decks=16) ;;
        continuous_recognition) longer=(task.trials=200 task.trials=800) ;;
        copy) longer=(task.steps=240 task.steps=960) ;;
    esac
    times=1
    for set in "" "${longer[@]}"; do
        "$bin/engram-$program" evaluate --from "$run" --level train --episodes 200 ${set:+--set "$set"} |
            awk -v row="$task ${program#*_} $times" '$1 == "train" && !found++ {print row, $2}' >> "$runs"
        times=$((4 * times))
    done
done
awk '
    BEGIN {
        print "# docs/results/length.sh: 200 episodes of each run of answer.campaign at 1, 4 and 16 times the length that was trained; means over seeds."
        print "memory,t_maze_1,t_maze_4,t_maze_16,repeat_1,repeat_4,repeat_16,recognition_1,recognition_4,recognition_16,copy_1,copy_4,copy_16"
        split("t_maze popgym_repeat_previous continuous_recognition copy", tasks)
    }
    {
        value = $4
        if ($1 == "continuous_recognition") value *= 2 / $3
        sum[$2, $1, $3] += value; ++count[$2, $1, $3]; seen[$2] = 1
    }
    END {
        for (memory in seen) {
            line = memory
            for (t = 1; t <= 4; ++t)
                for (times = 1; times <= 16; times *= 4) {
                    at = memory SUBSEP tasks[t] SUBSEP times
                    line = line "," (count[at] ? sprintf(tasks[t] == "popgym_repeat_previous" ? "%.3f" : tasks[t] == "t_maze" ? "%.2f" : "%.1f", sum[at] / count[at]) : "")
                }
            print line | "sort"
        }
    }' "$runs" > docs/results/data/length.csv
