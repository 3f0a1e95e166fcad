#!/usr/bin/env bash
# The runs behind copy.md: an NTM and a DNC copy up to 20 patterns of 8 bits, ten seeds each. About 15 minutes on two cores.
#
#   docs/results/copy.sh [RUNS_FOLDER]      (default runs/copy; builds what it needs)
#   STEPS=3000000 docs/results/copy.sh      as many for both

set -euo pipefail
cd "$(dirname "$0")/../.."
runs=${1:-runs/copy}
models=(ntm_copy dnc_copy)
declare -A steps=([ntm_copy]=${STEPS:-3000000} [dnc_copy]=${STEPS:-6000000})
[[ -n ${ENGRAM_BIN:-} ]] || { ./dev build "${models[@]/#/engram-}" engram-report; ENGRAM_BIN=build/bin; }

mkdir -p "$runs"
for seed in 1 2 3 4 5 6 7 8 9 10; do
    for model in "${models[@]}"; do
        out=$runs/$model-$seed
        grep -qs '"finished": true' "$out/summary.json" && continue
        echo "$ENGRAM_BIN/engram-$model train --task bit_copy --seed $seed --steps ${steps[$model]} --out $out --threads 1 --evaluate 200 --quiet --resume > $out.log 2>&1"
    done
done | xargs -r -P 2 -d '\n' -n 1 bash -c

printf '%-10s %5s %22s %22s %28s\n' model seed 'wrong bits, lengths 1-20' 'worst length' 'frames until loss < 0.01'
for model in "${models[@]}"; do
    for seed in 1 2 3 4 5 6 7 8 9 10; do
        out=$runs/$model-$seed
        # Levels are objects over several lines; "mean" follows its level.
        read -r mean worst < <(awk -F'[:,]' '
            /"length_[0-9]+"/ { inside = 1 }
            inside && /"mean"/ { sum += $2; n += 1; if ($2 > worst) worst = $2; inside = 0 }
            END { printf "%.4f %.4f\n", sum / n, worst + 0 }' "$out/summary.json")
        first=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) column[$i] = i; next }
            $column["loss"] < 0.01 && !found { found = $column["step"] } END { print found ? found : "never" }' "$out/metrics.csv")
        finite=$(grep -ciE 'nan|inf' "$out/metrics.csv" || true)
        printf '%-10s %5s %22s %22s %28s%s\n' "$model" "$seed" "$mean" "$worst" "$first" "$([[ $finite == 0 ]] || echo '  NOT FINITE')"
    done
done
"$ENGRAM_BIN/engram-report" "$runs"/*_copy-*[0-9] --out "$runs/report.html" > /dev/null
