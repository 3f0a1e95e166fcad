#!/usr/bin/env bash
# The first step at which a column of a run's metrics.csv is at or above a value, or at or below it: the columns "steps to
# 95 %" of mra.md and "until the training loss was below" of copy.md.
#
#   docs/results/first_step.sh reward_smooth above 47.5 runs/mra/*/*-[0-9]
#   docs/results/first_step.sh loss below 0.01 runs/copy/*-*[0-9]

set -euo pipefail
[[ $# -ge 4 && ($2 == above || $2 == below) ]] || { echo "usage: $0 COLUMN above|below VALUE RUN..." >&2; exit 2; }
column=$1 side=$2 value=$3
shift 3
for run in "$@"; do
    awk -F, -v name="$column" -v side="$side" -v value="$value" -v run="$run" '
        NR == 1 { for (i = 1; i <= NF; ++i) if ($i == name) at = i
                  if (!at) { print run "/metrics.csv: there is no column " name > "/dev/stderr"; failed = 1; exit 2 } }
        NR > 1 && $at != "" && (side == "above" ? $at >= value : $at <= value) { first = $1; exit }
        END { if (failed) exit 2; printf "%-48s %s\n", run, (first != "" ? first : "never") }' "$run/metrics.csv"
done
