#!/bin/sh
# Lists headers without a comment that says what they are, and public functions without a docstring; fails when there are
# any. What needs none: operators, the maths functions of numbers, packs and duals, the values of presets, and instances of
# templates that are declared again. Without Doxygen it ends with 77, which CTest calls skipped.
set -eu
cd "$(dirname "$0")/.."
command -v doxygen >/dev/null || { echo "docs: doxygen is not installed (./dev docs installs it)" >&2; exit 77; }
scratch=${1:-build/undocumented}
mkdir -p "$scratch"
{
    cat docs/Doxyfile
    printf '%s\n' 'EXTRACT_ALL = NO' 'WARN_IF_UNDOCUMENTED = YES' 'WARN_AS_ERROR = NO' 'GENERATE_HTML = NO' 'GENERATE_XML = YES'
} > "$scratch/Doxyfile"
ENGRAM_VERSION=0 ENGRAM_LAYOUT= ENGRAM_DOCS=$scratch doxygen "$scratch/Doxyfile" > "$scratch/warnings" 2>&1
# The list holds more than functions, so an empty one means that nothing was read.
grep -q 'is not documented' "$scratch/warnings" || { echo "docs: doxygen told nothing" >&2; cat "$scratch/warnings" >&2; exit 1; }
{
    for header in $(find include -name '*.hpp' | sort); do
        awk '/^\/\/ SPDX-License-Identifier: MIT$/ { licence = 1; next } /^\/\/ / { said = 1 } /^#include|^namespace/ { exit }
             END { if (!licence) print FILENAME ": no licence line"; if (!said) print FILENAME ": no comment that says what it is" }' "$header"
    done
    sed -n 's/.*\(include\/engram[^:]*\):[0-9]*: \(error\|warning\): Member \(.*\) (function) of namespace engram\(::initial\)\{0,1\} is not documented.*/\1: \3/p' \
        "$scratch/warnings" | grep -vE 'core/(dual|pack)\.hpp|: operator|_preset\(|program/compiled_tasks\.hpp' || true
} > "$scratch/list"
cat "$scratch/list"
[ ! -s "$scratch/list" ]
