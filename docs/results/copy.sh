#!/usr/bin/env bash
# The table of copy.md from the runs of copy.campaign: wrong bits a sequence over all lengths, at the worst one, and the
# step at which the training loss was first below 0.01. Numbers that are not finite are an error.
#
#   ./dev campaign docs/results/copy.campaign && docs/results/copy.sh

set -euo pipefail
cd "$(dirname "$0")/../.."
awk -F, '/^#/ { next }
    !at["level"] { for (i = 1; i <= NF; ++i) at[$i] = i; next }
    { run = $at["program"] " " $at["seed"]; wrong = $at["reward"]
      if (!(run in count)) order[++runs] = run
      sum[run] += wrong; ++count[run]; if (wrong > worst[run]) worst[run] = wrong }
    END { for (i = 1; i <= runs; ++i) printf "%-12s wrong bits: mean %.4f, worst length %.4f\n", order[i],
              sum[order[i]] / count[order[i]], worst[order[i]] }' runs/copy/results.csv
docs/results/first_step.sh loss below 0.01 runs/copy/*_copy-*[0-9]
! grep -ilE 'nan|inf' runs/copy/*_copy-*[0-9]/metrics.csv
