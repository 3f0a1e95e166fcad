#!/bin/sh
# run.sh <executable of many tests> <executable of one> <source>: the test cases of one source, by the executable that was
# built last: a single test is built alone while it is worked on. ENGRAM_EMULATOR runs what another processor would.
if [ ! -e "$1" ] || [ "$2" -nt "$1" ]; then
    exec ${ENGRAM_EMULATOR:-} "$2"
fi
exec ${ENGRAM_EMULATOR:-} "$1" "--source-file=*/tests/$3"
