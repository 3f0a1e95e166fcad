#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Seconds that the compiler takes, beside their budgets: a file that does nothing but include engram.hpp (3 s), what the
# programs of ablations have parsed once (10 s), and the main program of an ablation after it (10 s). CPU time (user and system) is what the budgets are for: other work on the
# machine lengthens the time on the clock. Exit status 1 when a budget is exceeded.
#   benchmarks/compile.sh [ABLATION...]          default: mra dnc_gtmm lstm_mem_rec
# CXX (g++), FLAGS (those of a release build for this machine), COLD (those that it gives the source of an ablation
# instead of -O3, for it runs once)
set -euo pipefail
cd "$(dirname "$0")/.."

compiler=${CXX:-g++}
flags=${FLAGS:--std=c++20 -O3 -march=native -ffp-contract=fast}
cold=${COLD:--O1}
includes=(-Iinclude)
for folder in /usr/include/eigen3 /usr/local/include/eigen3; do [[ ! -d $folder ]] || includes+=(-isystem "$folder"); done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

status=0
# measure NAME BUDGET SOURCE [FLAG...]
measure() {
    local clock cpu output=$folder/object.o
    [[ $3 != *.hpp ]] || output=$3.gch
    TIMEFORMAT='%R %U %S'
    # shellcheck disable=SC2086
    if ! { time "$compiler" $flags "${@:4}" "${includes[@]}" -c "$3" -o "$output" 2> "$folder/errors"; } 2> "$folder/times"; then
        cat "$folder/errors" >&2
        echo "compile: $1 does not compile" >&2
        status=1
        return
    fi
    read -r clock cpu < <(awk '{ print $1, $2 + $3 }' "$folder/times")
    printf '%-32s %6.1f s of CPU time, %6.1f s on the clock, budget %s s\n' "$1" "$cpu" "$clock" "$2"
    if [[ $(awk -v a="$cpu" -v b="$2" 'BEGIN { print (a > b) }') == 1 ]]; then
        printf 'compile: %s exceeds its budget\n' "$1" >&2
        status=1
    fi
}

echo '#include <engram/engram.hpp>' > "$folder/include.cpp"
measure engram.hpp 3 "$folder/include.cpp"
printf '#include <%s>\n' engram/catalogue.hpp engram/program/ablation.hpp > "$folder/shared.hpp"
# shellcheck disable=SC2086
measure "parsed once for all ablations" 10 "$folder/shared.hpp" $cold
[[ $# -gt 0 ]] || set -- mra dnc_gtmm lstm_mem_rec
for name; do
    sed -e 's|@HEADER@|engram/catalogue.hpp|' -e "s|@TYPE@|engram::catalogue::$name|" -e "s|@NAME@|$name|" -e 's|@[A-Z]*@||g' \
        cmake/ablation.cpp.in > "$folder/$name.cpp"
    # shellcheck disable=SC2086
    measure "engram-$name" 10 "$folder/$name.cpp" $cold -include "$folder/shared.hpp"
done
exit "$status"
