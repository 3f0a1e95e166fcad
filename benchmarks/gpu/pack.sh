#!/usr/bin/env bash
# Packs what run.sh --packed needs on a machine with a GPU but without compilers or a network: the tests labelled `gpu`,
# the benchmarks and the programs of a build for CUDA, without their symbols.
#
#   benchmarks/gpu/pack.sh [build folder] [archive]   (default: build/cuda build/gpu.tar.xz)
set -eu
cd "$(dirname "$0")/../.."
build=${1:-build/cuda}
archive=${2:-build/gpu.tar.xz}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/tests/bin" "$folder/bin"
for program in "$build"/tests/bin/device.*on_a_gpu* "$build"/bin/benchmark-gpu-* "$build"/bin/engram-*; do
    [ -x "$program" ] || continue
    strip -o "$folder/${program#"$build"/}" "$program"
done
if ! ls "$folder"/tests/bin/* > /dev/null 2>&1; then
    echo "benchmarks/gpu: $build has no tests; build its targets gpu_tests and gpu_benchmarks first" >&2
    exit 1
fi
set -o pipefail
tar -C "$folder" -c . | xz -T0 -2 > "$archive.part"
mv "$archive.part" "$archive"
ls "$folder"/tests/bin "$folder"/bin
echo "benchmarks/gpu: $archive, $(du -h "$archive" | cut -f1)"
