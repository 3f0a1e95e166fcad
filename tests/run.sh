#!/bin/sh
# run.sh <executable of many tests> <executable of one> <source>: the test cases of one source. ENGRAM_TESTS_ALONE=1 takes
# the small executable, the one to build while a single test is worked on.
if [ -n "${ENGRAM_TESTS_ALONE:-}" ]; then
    exec "$2"
fi
exec "$1" "--source-file=*/tests/$3"
