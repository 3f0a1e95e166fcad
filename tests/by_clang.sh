#!/bin/bash
# by_clang.sh COMPILER CLANG COMMAND...: COMMAND with CLANG in COMPILER's place, silent about what only COMPILER knows.
compiler=$1 clang=$2
shift 2
command=()
for word; do
    if [[ $word == "$compiler" ]]; then
        command+=("$clang" -Qunused-arguments -Wno-unknown-warning-option)
    else
        command+=("$word")
    fi
done
exec "${command[@]}"
