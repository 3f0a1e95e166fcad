#!/bin/bash
# What the programs of answer.campaign have of parameters, and what a row carries from step to step, for each program and
# task, by `describe` with the campaign's own settings: docs/results/data/answer_sizes.csv. BIN names another folder of programs.
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=${BIN:-build/bin}
{
    echo "# docs/results/answer.sh: parameters, and bytes that a row carries from step to step, as the programs describe themselves."
    echo "program,task,parameters,bytes"
    # Folders that hold no run, so that all commands are printed.
    "$bin/engram-campaign" docs/results/answer.campaign seeds=1 'out=runs/answer_sizes/{task}/{program}-{seed}' --dry-run |
        while read -r program verb line; do
            [[ $verb == train ]] || continue
            words=()
            task=
            set -f
            set -- $line
            set +f
            while [[ $# -gt 1 ]]; do
                if [[ $1 == --task ]]; then task=$2; words+=("$1" "$2"); fi
                if [[ $1 == --*.* ]]; then words+=("$1" "$2"); fi
                shift
            done
            "$program" describe "${words[@]}" | awk -v name="${program##*engram-},$task" '
                $1 == "total" && !total {for (i = 2; i <= NF; ++i) total = total $i}
                $2 == "numbers," || / numbers, .* bytes$/ {sub(/.* numbers, /, ""); sub(/ bytes/, ""); gsub(/ /, ""); bytes = $0}
                END {print name "," total "," bytes}'
        done
} > docs/results/data/answer_sizes.csv
