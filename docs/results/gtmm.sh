#!/usr/bin/env bash
# The runs behind gtmm.md: five generative temporal models on seven tasks, three seeds, small preset, then a strip of each.
# About an hour on two cores. Finished runs are kept, so it can be stopped and started again. Similarity-cued recall runs
# with 10 items (similarity_cued_recall, three seeds) and with the task's own 20 (similarity_cued_recall_20, one seed).
#
#   docs/results/gtmm.sh DATA [RUNS_FOLDER]      DATA holds mnist/ and omniglot/; default runs/gtmm; builds what it needs

set -euo pipefail
cd "$(dirname "$0")/../.."
data=${1:?a folder with mnist/ and omniglot/ was expected}
runs=${2:-runs/gtmm}
tasks=(perfect_recall parity_recall one_shot_recall dynamic_dependency similarity_cued_recall mnist_map rotation
       similarity_cued_recall_20)
models=(introspective_gtmm vrnn dnc_gtmm ntm_gtmm lru_gtmm)
seeds=(1 2 3)

[[ -n ${ENGRAM_BIN:-} ]] || { ./dev build "${models[@]/#/engram-}" engram-report; ENGRAM_BIN=build/bin; }

# The command of one run, unless it is finished.
job() {
    local task=${1%_20} model=$2 seed=$3 out=$runs/$1/$2-$3 with=()
    [[ $1 != *_20 || $seed == 1 ]] || return 0
    case $1-$2 in
        similarity_cued_recall-lru_gtmm | similarity_cued_recall-vrnn) with+=(--steps 3000000 --task.items 10) ;;
        similarity_cued_recall-*) with+=(--steps 3000000 --task.items 10 --memory.slots 25) ;;
    esac
    grep -qs '"finished": true' "$out/summary.json" && return
    [[ $task == rotation ]] || with+=(--data "$data")
    mkdir -p "$(dirname "$out")"
    echo "$ENGRAM_BIN/engram-$model train --task $task --seed $seed --out $out --threads 1 --evaluate 1000 --quiet --resume ${with[*]} > $out.log 2>&1"
}

for seed in "${seeds[@]}"; do
    for task in "${tasks[@]}"; do
        for model in "${models[@]}"; do job "$task" "$model" "$seed"; done
    done
done | xargs -r -P 2 -d '\n' -n 1 bash -c

# Who has stored the parity is surprised by a last image of the other one: the column "last KL" of both levels.
for seed in "${seeds[@]}"; do
    for model in "${models[@]}"; do
        "$ENGRAM_BIN/engram-$model" evaluate --from "$runs/parity_recall/$model-$seed" --episodes 1000 \
            --level holdout_interpolate --level wrong_parity | tee "$runs/parity_recall/$model-$seed.parity.txt"
    done
done

for task in "${tasks[@]}"; do
    for model in "${models[@]}"; do
        "$ENGRAM_BIN/engram-$model" sample --from "$runs/$task/$model-1" > /dev/null
    done
    "$ENGRAM_BIN/engram-report" "$runs/$task"/*-[0-9] --out "$runs/$task/report.html"
done
