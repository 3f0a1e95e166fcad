#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds the fuzzer with clang and feeds every target, or one, with mutated inputs.
#
#     tests/fuzz/run.sh <build folder> [target|all] [inputs (1000000)]
#
# The build folder holds programs/libengram_program.a; what is instrumented is compiled here. New inputs that reach
# further are kept in <build folder>/fuzz/<target>, and one that breaks something in <build folder>/fuzz/<target>-*: copy
# it to tests/fuzz/corpus/<target>, where the test fuzz.corpus replays it. Everything that libFuzzer said is in
# <build folder>/fuzz/<target>.log.
set -euo pipefail

[[ $# -ge 1 ]] || { echo "usage: run.sh <build folder> [target|all] [inputs (1000000)]" >&2; exit 2; }
build=$1 chosen=${2:-all} inputs=${3:-1000000}
cd "$(dirname "$0")/../.."
known=(tests/fuzz/corpus/*/)
known=("${known[@]%/}")
known=("${known[@]##*/}")
# What clients send and worlds answer is read where gRPC is.
wire=()
if [[ -e $build/programs/libengram_wire.a ]]; then
    wire=(-DENGRAM_RPC -isystem "$build/programs/wire" programs/tasks/served/worlds.cpp "$build/programs/libengram_wire.a" -lprotobuf)
else
    echo "fuzz: no requests and answers are read; this build has no gRPC" >&2
    for i in "${!known[@]}"; do [[ ${known[i]} != @(requests|answers) ]] || unset "known[i]"; done
fi
# What engram_program was built with.
mapfile -t mpi < <(sed -n 's/^MPI_[a-z+_]*_LIBRARY:FILEPATH=//p' "$build/CMakeCache.txt")
targets=("$chosen")
[[ $chosen != all ]] || targets=("${known[@]}")
for target in "${targets[@]}"; do
    [[ " ${known[*]} " == *" $target "* ]] || { echo "fuzz: no target '$target'; expected ${known[*]}" >&2; exit 2; }
done

mkdir -p "$build/fuzz"
fuzzer=$build/fuzz/engram-fuzz
# The library's objects are of several sources each: of what is defined twice, the first, which is instrumented, counts.
if [[ ! -x $fuzzer || -n $(find include programs tests/fuzz -name '*.[ch]pp' -newer "$fuzzer" -print -quit) ]]; then
    "${ENGRAM_CLANG:-clang++}" -std=c++20 -O1 -g -DBOOST_ALL_NO_LIB -DFMT_SHARED \
        -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer \
        -I include -isystem /usr/include/eigen3 tests/fuzz/libfuzzer.cpp programs/arguments.cpp programs/configuration.cpp \
        "${wire[@]}" \
        -Wl,--allow-multiple-definition "$build/programs/libengram_program.a" "$build/programs/libengram_compiled.a" "${mpi[@]}" -lfmt -lz -lpthread -o "$fuzzer"
fi
# Stacks of every allocation cost a third of the time, and the input that is kept gives them again. What was given back
# stays forbidden for 32 MB of it: longer than an input lasts, and a quarter of the pages of the default.
export ASAN_OPTIONS=${ASAN_OPTIONS:-malloc_context_size=0:quarantine_size_mb=32}
for target in "${targets[@]}"; do
    mkdir -p "$build/fuzz/$target"
    echo "+ $target, $inputs inputs" >&2
    log=$build/fuzz/$target.log begin=$SECONDS
    ENGRAM_FUZZ=$target "$fuzzer" -runs="$inputs" -max_len=4096 -timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=256 \
        -close_fd_mask=1 -print_final_stats=1 -artifact_prefix="$build/fuzz/$target-" \
        "$build/fuzz/$target" "tests/fuzz/corpus/$target" 2> "$log" ||
        { tail -n 40 "$log" >&2
          echo "fuzz: $target broke; the input is $build/fuzz/$target-*, the rest of the report is $log" >&2; exit 1; }
    # Of the line "#1000000 DONE cov: 1234 ft: 5678 corp: 400/120Kb ...": edges of the program and features of inputs.
    awk -v target="$target" -v seconds=$((SECONDS - begin)) '
        $2 == "DONE" { for (i = 1; i < NF; ++i) value[$i] = $(i + 1); runs = substr($1, 2) }
        /^stat::peak_rss_mb/ { most = $2 }
        END { printf "%s: %d inputs in %d s, coverage %d edges and %d features, %s kept, %d MB at most\n", target, runs,
                     seconds, value["cov:"], value["ft:"], value["corp:"], most }' "$log"
done
