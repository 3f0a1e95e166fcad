#!/usr/bin/env bash
# The runs behind gtmm.md (gtmm.campaign), then what a campaign does not do: the wrong parity, and a strip of each model.
#
#   docs/results/gtmm.sh DIR [JOBS]      DIR holds mnist/ and omniglot/

set -euo pipefail
cd "$(dirname "$0")/../.."
data=${1:?a folder with mnist/ and omniglot/ was expected}
bin=build/bin runs=runs/gtmm
models=(introspective_gtmm vrnn dnc_gtmm ntm_gtmm lru_gtmm hybrid_gtmm)

./dev campaign docs/results/gtmm.campaign "data=$data" ${2:+--jobs "$2"}

# Who has stored the parity is surprised by a last image of the other one: the column "last KL" of both levels.
for seed in 1 2 3; do
    for model in "${models[@]}"; do
        "$bin/engram-$model" evaluate --from "$runs/parity_recall/$model-$seed" --episodes 1000 \
            --level holdout_interpolate --level wrong_parity | tee "$runs/parity_recall/$model-$seed.parity.txt"
    done
done

for folder in "$runs"/*/; do
    for model in "${models[@]}"; do
        "$bin/engram-$model" sample --from "$folder$model-1" > /dev/null
    done
done
./dev campaign docs/results/gtmm.campaign "data=$data" --report    # with the strips
