#!/usr/bin/env bash
# On a machine with a GPU: builds, runs the tests labelled `gpu`, prints the tables. Numbers count only from a quiet
# device; the first lines say which one it was.
#
#   benchmarks/gpu/run.sh [build folder]            (default: build-gpu)
#   benchmarks/gpu/run.sh --sanitize [build folder]  the tests alone, under compute-sanitizer's memcheck and racecheck
#   benchmarks/gpu/run.sh --packed ARCHIVE           builds nothing: runs what pack.sh has packed elsewhere
#
# A step that fails says so and the rest goes on; the last line counts what failed and the exit status is 1 then.
# ENGRAM_PEERS_PYTHON: an interpreter with a PyTorch that finds the GPU (default python3); without one the PyTorch rows
# are left out. ENGRAM_GPU_LIMIT: seconds that one step may take (default 300).
set -u
cd "$(dirname "$0")/../.."
sanitize=no packed=
case "${1:-}" in
--sanitize)
    sanitize=yes
    shift
    ;;
--packed)
    packed=${2:-}
    if [ ! -f "$packed" ]; then
        echo "benchmarks/gpu: --packed needs the archive that pack.sh has made" >&2
        exit 1
    fi
    shift 2
    ;;
esac
build=${1:-build-gpu}
limit=${ENGRAM_GPU_LIMIT:-300}
failures=0

if ! command -v nvidia-smi > /dev/null || ! nvidia-smi -L > /dev/null 2>&1; then
    echo "benchmarks/gpu: no NVIDIA GPU answers on this machine; nothing was run" >&2
    exit 77
fi

if [ $sanitize = yes ] && ! command -v compute-sanitizer > /dev/null; then
    echo "benchmarks/gpu: compute-sanitizer is not installed (it comes with the CUDA toolkit)" >&2
    exit 1
fi

# step NAME COMMAND...: status 77 is a step that has said why it does not apply.
step() {
    local name=$1 status=0
    shift
    echo
    echo "== $name: $*"
    timeout "$limit" "$@" || status=$?
    if [ $status -ne 0 ] && [ $status -ne 77 ]; then
        echo "== $name: FAILED with status $status"
        failures=$((failures + 1))
    fi
    return 0
}

nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv
benchmarks="limits environments core recurrence updates training dnc generative"
if [ -n "$packed" ]; then
    build=$(mktemp -d)
    trap 'rm -rf "$build"' EXIT
    tar -C "$build" -xf "$packed" || exit 1
else
    step configure cmake -S . -B "$build" -G "Unix Makefiles" -DCMAKE_BUILD_TYPE=Release -DENGRAM_CUDA=ON \
        -DENGRAM_CUDA_PROGRAMS=ON -DENGRAM_CUDA_TEST_ARCHITECTURE=native -DCMAKE_CUDA_ARCHITECTURES=native -DENGRAM_BUILD_EXAMPLES=OFF
    # -k: what compiles is run though something else does not.
    limit=1200 step build cmake --build "$build" --target gpu_tests gpu_benchmarks -j "$(nproc)" -- -k
fi

if [ $sanitize = yes ]; then
    for test in "$build"/tests/bin/*on_a_gpu*; do
        [ -x "$test" ] || continue
        for tool in memcheck racecheck; do
            step "$tool $(basename "$test")" compute-sanitizer --tool "$tool" --error-exitcode 1 "$test"
        done
    done
else
    if [ -n "$packed" ]; then
        for test in "$build"/tests/bin/*; do step "$(basename "$test")" "$test"; done
        for script in program:lstm_mem sequence_program:dnc_gtmm; do
            program=$build/bin/engram-${script#*:}
            [ ! -x "$program" ] || step "device.${script%:*}" "tests/device/${script%:*}.sh" "$program" "$build/run-${script#*:}"
        done
    else
        step tests ctest --test-dir "$build" -L gpu --output-on-failure --timeout "$limit"
    fi
    for name in $benchmarks; do step "$name" "$build/bin/benchmark-gpu-$name"; done
    step peers "${ENGRAM_PEERS_PYTHON:-python3}" benchmarks/gpu/peers.py
    step "sequence peers" "${ENGRAM_PEERS_PYTHON:-python3}" benchmarks/gpu/sequence_peers.py
fi

echo
if [ $failures -gt 0 ]; then
    echo "benchmarks/gpu: $failures steps failed"
    exit 1
fi
echo "benchmarks/gpu: every step ran"
