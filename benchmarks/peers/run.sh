#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs the same work here and in PyTorch, or FAISS, in turn, several rounds, and prints the ratios of the medians.
#   benchmarks/peers/run.sh [knn|dnc|introspection|lstm|acting|today|MODEL|core|update|memup|all]
#                           [CORE_PROGRAM [UPDATE_PROGRAM [MEMUP_PROGRAM [KNN_PROGRAM [SMALL_PROGRAM]]]]]
# Programs default to build/bin/benchmark-mra_core, -mra_update, -memup_step, -knn_read and -memory_step. Both sides
# read the same weights, inputs and memory from one file; their outputs and gradients are compared before anything is
# timed. A missing program leaves the other side's figures alone. Environment:
#   ENGRAM_PEERS_PYTHON  interpreter of the environment made by setup.sh
#   ROUNDS (2; figures to be quoted want 5), THREADS ("1 2"), CORE_REPEATS (5), UPDATE_REPEATS (1), KNN_REPEATS (5),
#   KNN_SLOTS ("1024 16384"), STEPS (50), BATCH (16), TOLERANCE (1e-3);
#                        the update is allowed ten times as much: where two pixels of a pooling window are equal but for
#                        rounding, either side may send the gradient to another one
#   MEMUP_MODELS         of memup: "memup tbptt_lstm tbptt_transformer bptt_lstm bptt_srnn bptt_transformer"; T = 520,
#                        B = 128
#   MEMUP_REPEATS (1)    passes a round; losses and gradient norms of the first updates are compared, dropout off
#   SMALL_FORMS          of dnc and introspection in PyTorch: "eager unroll", where unroll is one compiled graph of the
#                        whole loop, which takes minutes to compile the first time; also script, and compile, which is a
#                        graph a step of time
#   SMALL_REPEATS (10)   samples of about 20 ms a round; outputs, gradients and the first updates are compared to 1e-4
#   TODAY_FORMS          of the memories of today (gru, min_gru, ...: `today` is all of them, or a MODEL alone): "eager
#                        unroll scan scan_compile", where scan has no loop over T; SMALL_REPEATS and ACTING_FORMS are
#                        theirs, too
#   COMPARE (1)          0 leaves the comparison of small models out, where ROUNDS=0 has made it alone before: it needs no
#                        quiet machine, and compiling takes most of the time
#   ACTING_FORMS         of acting, a step of time of the same models: "eager compile", and cell of lstm
#   RESULTS              file that receives every JSON line; a temporary one by default
#   TABLE                file that receives the table of ratios as Markdown; none by default
set -euo pipefail

here="$(cd "$(dirname "$0")" && pwd)"
what="${1:-all}"
core="${2:-build/bin/benchmark-mra_core}"
update="${3:-build/bin/benchmark-mra_update}"
memup="${4:-build/bin/benchmark-memup_step}"
knn="${5:-build/bin/benchmark-knn_read}"
small="${6:-build/bin/benchmark-memory_step}"
python="${ENGRAM_PEERS_PYTHON:-${ENGRAM_PEERS_VENV:-$HOME/.cache/engram/peers}/bin/python}"
rounds="${ROUNDS:-2}"
threads="${THREADS:-1 2}"
shape=(--steps "${STEPS:-50}" --batch "${BATCH:-16}")

today="gru min_gru linear_recurrent_unit s5 fast_and_forgetful stable_hadamard mlstm gated_delta_net memory_traces gtrxl"

case " $today " in *" $what "*) today="$what" what=today ;; esac
case "$what" in
    knn) modules="faiss" ;;
    core | update | memup | dnc | introspection | lstm | acting | today) modules="torch" ;;
    all) modules="torch, faiss" ;;
    *) echo "run.sh: '$what' is none of knn, dnc, introspection, lstm, acting, today, core, update, memup, all, $today" >&2; exit 2 ;;
esac
if ! "$python" -c "import $modules, numpy, safetensors" 2>/dev/null; then
    echo "run.sh: '$python' has no $modules, numpy and safetensors; make it with benchmarks/peers/setup.sh" >&2
    exit 2
fi

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
results="${RESULTS:-$folder/results.jsonl}"
: > "$results"

# a thread pool that waits by spinning loses far more to a busy core than its share, so ratios want a quiet machine
read -r load _ < /proc/loadavg
echo "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores, load $load"
if [ "${load%%.*}" -ge 1 ]; then echo "run.sh: the machine is busy; the ratios will mean little" >&2; fi

# keep SIDE NAME JSON-LINE: the last line of a program's output, marked with the side that it is of
keep() {
    printf '{"side": "%s", "name": "%s", %s\n' "$1" "$2" "${3#\{}" >> "$results"
    printf '%-8s %s\n' "$1" "$3"
}

# one NAME PROGRAM REPEATS TOLERANCE
one() {
    local name="$1" program="$2" repeats="$3" round count
    local weights="$folder/$name.safetensors"
    local ours="$folder/$name-engram.safetensors" theirs="$folder/$name-torch.safetensors"
    echo "== $name"
    "$python" "$here/$name.py" "${shape[@]}" --repeats 0 --save "$weights" --outputs "$theirs"
    if [ -x "$program" ]; then
        "$program" --threads 1 --repeats 1 --weights "$weights" --outputs "$ours" > /dev/null
        "$python" "$here/compare.py" "$theirs" "$ours" --tolerance "$4"
    else
        echo "no program '$program': PyTorch alone"
    fi
    for ((round = 0; round < rounds; round++)); do
        for count in $threads; do
            if [ -x "$program" ]; then
                keep engram "$name" "$("$program" --threads "$count" --repeats "$repeats" \
                    --weights "$weights" | tail -n 1)"
            fi
            keep torch "$name" "$("$python" "$here/$name.py" --threads "$count" --repeats "$repeats" \
                --weights "$weights" | tail -n 1)"
        done
    done
}

# core_products: the core once more with products in bfloat16, beside PyTorch in float and in bfloat16, in turn with both
# in float. Rounding moves neighbours that are nearly as near as each other, which the gradients of keys and queries show
# most, so those in bfloat16 are held to CORE_ROUNDED_TOLERANCE (0.3): about twice what PyTorch's two precisions differ by.
core_products() {
    local weights="$folder/mra_core.safetensors" round count ours theirs
    "$python" "$here/mra_core.py" --repeats 0 --weights "$weights" --products bfloat16 \
        --outputs "$folder/mra_core-rounded.safetensors"
    "$core" --threads 1 --repeats 1 --products bfloat16 --weights "$weights" \
        --outputs "$folder/mra_core-ours.safetensors" > /dev/null
    for theirs in torch rounded; do
        echo "== mra_core in bfloat16 beside PyTorch in $([ $theirs = torch ] && echo float || echo bfloat16)"
        "$python" "$here/compare.py" "$folder/mra_core-$theirs.safetensors" "$folder/mra_core-ours.safetensors" \
            --tolerance "${CORE_ROUNDED_TOLERANCE:-0.3}"
    done
    for ((round = 0; round < rounds; round++)); do
        for count in $threads; do
            ours="$("$core" --threads "$count" --repeats "${CORE_REPEATS:-5}" --products bfloat16 --weights "$weights" |
                tail -n 1)"
            for theirs in float bfloat16; do
                keep engram "mra_core bfloat16 / $theirs" "$ours"
                keep torch "mra_core bfloat16 / $theirs" "$("$python" "$here/mra_core.py" --threads "$count" \
                    --repeats "${CORE_REPEATS:-5}" --products "$theirs" --weights "$weights" | tail -n 1)"
            done
        done
    done
}

# memup_models: as `one`, but the weights and the sequences come from the program
memup_models() {
    local model round count updates weights
    local models="${MEMUP_MODELS:-memup tbptt_lstm tbptt_transformer bptt_lstm bptt_srnn bptt_transformer}"
    if [ ! -x "$memup" ]; then
        echo "run.sh: no program '$memup', which writes the weights of memup" >&2
        return
    fi
    for model in $models; do
        echo "== $model"
        case "$model" in bptt_*) updates=2 ;; *) updates=28 ;; esac
        "$memup" --model "$model" --updates "$updates" --dropout 0 --repeats 0 --weights "$folder/$model.safetensors" \
            --outputs "$folder/$model-engram.safetensors" > /dev/null
        "$python" "$here/memup.py" --model "$model" --repeats 0 --dropout 0 --weights "$folder/$model.safetensors" \
            --outputs "$folder/$model-torch.safetensors"
        "$python" "$here/compare.py" "$folder/$model-torch.safetensors" "$folder/$model-engram.safetensors" \
            --tolerance "${TOLERANCE:-1e-3}"
    done
    for ((round = 0; round < rounds; round++)); do
        for model in $models; do
            weights="$folder/$model.safetensors"
            for count in $threads; do
                keep engram "$model" "$("$memup" --model "$model" --threads "$count" \
                    --repeats "${MEMUP_REPEATS:-1}" | tail -n 1)"
                keep torch "$model" "$("$python" "$here/memup.py" --model "$model" --threads "$count" --warmup 1 \
                    --repeats "${MEMUP_REPEATS:-1}" --weights "$weights" | tail -n 1)"
            done
        done
    done
}

# nearest: the k-NN memories of an agent beside FAISS's flat index, results compared before anything is timed
nearest() {
    local slots round count file
    for slots in ${KNN_SLOTS:-1024 16384}; do
        echo "== knn_$slots"
        file="$folder/knn_$slots"
        "$python" "$here/knn_read.py" --batch "${BATCH:-16}" --slots "$slots" --save "$file.safetensors" --repeats 0 \
            --outputs "$file-faiss.safetensors"
        if [ -x "$knn" ]; then
            "$knn" --weights "$file.safetensors" --outputs "$file-engram.safetensors" --repeats 0
            "$python" "$here/knn_read.py" --weights "$file.safetensors" \
                --compare "$file-faiss.safetensors" "$file-engram.safetensors"
        else
            echo "no program '$knn': FAISS alone"
        fi
        for ((round = 0; round < rounds; round++)); do
            for count in $threads; do
                if [ -x "$knn" ]; then
                    keep engram "knn_$slots" "$("$knn" --threads "$count" --repeats "${KNN_REPEATS:-5}" \
                        --weights "$file.safetensors")"
                fi
                keep faiss "knn_$slots" "$("$python" "$here/knn_read.py" --threads "$count" \
                    --repeats "${KNN_REPEATS:-5}" --weights "$file.safetensors")"
            done
        done
    done
}

# small_model NAME BATCH FORM...: as memup_models; every form is compared, timed, and has a row of its own
small_model() {
    local model="$1" batch="$2" name="$1" form round count line
    shift 2
    if [ ! -x "$small" ]; then
        echo "run.sh: no program '$small', which writes the weights of $model" >&2
        return
    fi
    if [ "$batch" = 1 ]; then name="${model}_1"; fi
    local file="$folder/$name"
    "$small" --model "$model" --batch "$batch" --repeats 0 --weights "$file.safetensors" \
        --outputs "$file-engram.safetensors"
    if [ "${COMPARE:-1}" = 1 ]; then
        for form in "$@"; do
            echo "== $name, $form"
            "$python" "$here/memory_step.py" --model "$model" --form "$form" --repeats 0 --weights "$file.safetensors" \
                --outputs "$file-torch.safetensors"
            "$python" "$here/compare.py" "$file-torch.safetensors" "$file-engram.safetensors" \
                --tolerance "${allowed:-1e-4}"
        done
    fi
    for ((round = 0; round < rounds; round++)); do
        for count in $threads; do
            # Rows of a batch are what threads share.
            line=""
            if [ $((batch % count)) = 0 ]; then
                line="$("$small" --model "$model" --batch "$batch" --threads "$count" \
                    --repeats "${SMALL_REPEATS:-10}")"
            fi
            for form in "$@"; do
                if [ -n "$line" ]; then keep engram "$name $form" "$line"; fi
                keep torch "$name $form" "$("$python" "$here/memory_step.py" --model "$model" --form "$form" \
                    --threads "$count" --repeats "${SMALL_REPEATS:-10}" --weights "$file.safetensors" | tail -n 1)"
            done
        done
    done
}

# small_models NAME: of lstm, torch.nn.LSTM is the only form
small_models() {
    # shellcheck disable=SC2086 # a list of words
    case "$1" in
        lstm) small_model lstm 16 eager; small_model lstm 1 eager ;;
        *) small_model "$1" 16 ${SMALL_FORMS:-eager unroll} ;;
    esac
}

# acting MODEL BATCH FORM...: single steps of time, whose answers are compared first; one thread
acting() {
    local model="$1" batch="$2" form round line file="$folder/$1_acting"
    shift 2
    if [ ! -x "$small" ]; then
        echo "run.sh: no program '$small', which writes the weights of $model" >&2
        return
    fi
    "$small" --model "$model" --batch "$batch" --repeats 0 --weights "$file.safetensors"
    if [ "${COMPARE:-1}" = 1 ]; then
        "$small" --model "$model" --batch "$batch" --acting 1 --repeats 0 --outputs "$file-engram.safetensors"
        for form in "$@"; do
            echo "== acting, $model, B = $batch, $form"
            "$python" "$here/memory_step.py" --model "$model" --acting --form "$form" --repeats 0 \
                --weights "$file.safetensors" --outputs "$file-torch.safetensors"
            "$python" "$here/compare.py" "$file-torch.safetensors" "$file-engram.safetensors" --tolerance 1e-4
        done
    fi
    for ((round = 0; round < rounds; round++)); do
        line="$("$small" --model "$model" --batch "$batch" --acting 1 --repeats "${SMALL_REPEATS:-10}")"
        for form in "$@"; do
            keep engram "acting_$batch $model $form" "$line"
            keep torch "acting_$batch $model $form" "$("$python" "$here/memory_step.py" --model "$model" --acting \
                --form "$form" --repeats "${SMALL_REPEATS:-10}" --weights "$file.safetensors" 2> /dev/null | tail -n 1)"
        done
    done
}

# of_today MODEL: acting with one row and with sixteen, then training
of_today() {
    local batch allowed=1e-4 forms="${TODAY_FORMS:-eager unroll scan scan_compile}"
    case "$1" in
        gru) forms="eager unroll" ;;  # torch.nn.GRU, and its equations
        # The loop of gated DeltaNet had not compiled after six minutes; what they are published with has none.
        mlstm | gated_delta_net) forms="${TODAY_FORMS:-eager scan scan_compile}" ;;
        # All steps at once. A rectified number of rounding's size is on either side of zero: with 15 rows, where none
        # is, all gradients agree to 2e-6.
        gtrxl) forms="scan scan_compile" allowed=3e-3 ;;
    esac
    # shellcheck disable=SC2086 # lists of words
    for batch in 1 16; do acting "$1" "$batch" ${ACTING_FORMS:-eager compile}; done
    # shellcheck disable=SC2086
    small_model "$1" 16 $forms
}

if [ "$what" = today ] || [ "$what" = all ]; then
    for model in $today; do of_today "$model"; done
fi
if [ "$what" = acting ] || [ "$what" = all ]; then
    for batch in 1 16; do
        # shellcheck disable=SC2086 # a list of words
        for model in dnc introspection; do acting "$model" "$batch" ${ACTING_FORMS:-eager compile}; done
        # shellcheck disable=SC2086
        acting lstm "$batch" ${ACTING_FORMS:-eager compile} cell
    done
fi
for model in dnc introspection lstm; do
    if [ "$what" = "$model" ] || [ "$what" = all ]; then small_models "$model"; fi
done
if [ "$what" = knn ] || [ "$what" = all ]; then nearest; fi
if [ "$what" = memup ] || [ "$what" = all ]; then memup_models; fi
if [ "$what" = core ] || [ "$what" = all ]; then
    one mra_core "$core" "${CORE_REPEATS:-5}" "${TOLERANCE:-1e-3}"
    if [ -x "$core" ]; then core_products; fi
fi
if [ "$what" = update ] || [ "$what" = all ]; then one mra_update "$update" "${UPDATE_REPEATS:-1}" "$(awk -v t="${TOLERANCE:-1e-3}" 'BEGIN { print 10 * t }')"; fi
"$python" "$here/ratios.py" "$results" ${TABLE:+"$TABLE"}
