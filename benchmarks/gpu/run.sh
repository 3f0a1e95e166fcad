#!/bin/sh
# On a machine with a GPU: builds, runs the tests labelled `gpu`, prints the tables. Numbers count only from a quiet
# device; the first lines say which one it was.
#
#   benchmarks/gpu/run.sh [build folder]        (default: build-gpu)
set -e
cd "$(dirname "$0")/../.."
build=${1:-build-gpu}
if ! command -v nvidia-smi > /dev/null || ! nvidia-smi -L > /dev/null 2>&1; then
    echo "benchmarks/gpu: no NVIDIA GPU answers on this machine; nothing was run" >&2
    exit 77
fi
nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv
set -x
cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DENGRAM_CUDA=ON -DENGRAM_CUDA_PROGRAMS=ON \
    -DENGRAM_CUDA_TEST_ARCHITECTURE=native -DCMAKE_CUDA_ARCHITECTURES=native -DENGRAM_BUILD_EXAMPLES=OFF
cmake --build "$build" --target gpu_tests benchmark-gpu-updates -j "$(nproc)"
ctest --test-dir "$build" -L gpu --output-on-failure
"$build/bin/benchmark-gpu-updates"
