#!/usr/bin/env bash
# Runs at the papers' sizes on a GPU; none of them has been made yet (gpu.md).
#
#   docs/results/gpu_paper_scale.sh [RUNS_FOLDER]      (default runs/gpu_paper_scale; builds what it needs, for CUDA)
#
#   AVM             arbitrary_visuomotor_mapping at paper fidelity (72 x 96 frames, preset paper: MRA, Tables 17 and 18):
#                   LSTM and MRA, a curve of all three levels in levels.csv (fifty points), 200 episodes a level at the end
#   perfect recall  preset paper: the five generative models of GTMM, 1000 sequences a level at the end
#
# Each run leaves the folder RUNS_FOLDER/<task>/<ablation>-<seed> (config.json, metrics.csv, levels.csv, summary.json,
# checkpoint) and a log beside it; each task a report.html. Finished runs are kept and interrupted ones go on, so it can
# be stopped and started again. The papers name no number of steps: the preset's 100 million, or STEPS. A run takes
# steps / steps_per_second, which metrics.csv tells after some updates; the script prints it of every finished run.
#
#   SEEDS="1 2 3"   STEPS=100000000   DEVICE=cuda   DATA=folder with mnist/ (default: built-in digits)
#   QUICK=1         the same commands with sizes and steps that say nothing, on DEVICE=cpu: a minute, to see that they run

set -euo pipefail
cd "$(dirname "$0")/../.."
runs=${1:-runs/gpu_paper_scale}
quick=${QUICK:-}
device=${DEVICE:-$([[ -n $quick ]] && echo cpu || echo cuda)}
read -ra seeds <<< "${SEEDS:-$([[ -n $quick ]] && echo 1 || echo 1 2 3)}"
steps=${STEPS:-100000000}
acting=(lstm mra)
generative=(vrnn introspective_gtmm ntm_gtmm lru_gtmm dnc_gtmm)

if [[ -z ${ENGRAM_BIN:-} ]]; then
    if [[ $device == cuda ]]; then
        cmake --preset cuda
        cmake --build build/cuda --target "${acting[@]/#/engram-}" "${generative[@]/#/engram-}" engram-report
        ENGRAM_BIN=build/cuda/bin
    else
        ./dev build "${acting[@]/#/engram-}" "${generative[@]/#/engram-}" engram-report
        ENGRAM_BIN=build/bin
    fi
fi

# One run, unless it is finished: run ABLATION TASK SEED [FLAG...]
run() {
    local out=$runs/$2/$1-$3
    if ! grep -qs '"finished": true' "$out/summary.json"; then
        mkdir -p "$(dirname "$out")"
        echo "$ENGRAM_BIN/engram-$1 train --task $2 --preset paper --seed $3 --device $device --out $out ${*:4}"
        "$ENGRAM_BIN/engram-$1" train --task "$2" --preset paper --seed "$3" --device "$device" --out "$out" --resume --quiet \
            "${@:4}" > "$out.log" 2>&1 || { echo "  failed: $(tail -n 1 "$out.log")" >&2; exit 1; }
    fi
    awk -F'[:,]' '/"steps_per_second"/ { rate = $2 } /"steps"/ { steps = $2 }
                  END { printf "  %d steps, %.0f a second: %.1f hours\n", steps, rate, (rate > 0) ? steps / rate / 3600 : 0 }' \
        "$out/summary.json"
}

for seed in "${seeds[@]}"; do
    for ablation in "${acting[@]}"; do
        flags=(--steps "$steps" --evaluate-every "$((steps / 50))" --evaluate-episodes 20 --evaluate 200)
        if [[ -n $quick ]]; then
            flags=(--steps 40 --evaluate-every 20 --evaluate-episodes 1 --evaluate 1 --threads 1 --rollout.environments 2
                   --rollout.unroll 10 --controller.hidden 8)
            [[ $ablation != mra ]] || flags+=(--memory.slots 8 --memory.key 4 --memory.neighbours 2 --auxiliary.steps 2)
        fi
        run "$ablation" arbitrary_visuomotor_mapping "$seed" "${flags[@]}"
    done
    for model in "${generative[@]}"; do
        flags=(--steps "$steps" --evaluate 1000 ${DATA:+--data "$DATA"})
        [[ -z $quick ]] || flags=(--steps 1 --evaluate 2 --threads 1 --sequence.batch 1 --controller.hidden 8)
        run "$model" perfect_recall "$seed" "${flags[@]}"
    done
done
for task in arbitrary_visuomotor_mapping perfect_recall; do
    "$ENGRAM_BIN/engram-report" "$runs/$task"/*-[0-9] --out "$runs/$task/report.html"
done
