#!/bin/sh
# SPDX-License-Identifier: MIT
# machines.sh BIN MPICH_BIN [kills (50)]: what takes minutes of several processes that train one model. The same bits in
# all divisions of eight shards (tests/program/processes.sh, its long form) with the programs of BIN and the system's MPI,
# and with those of MPICH_BIN and MPICH; the same bits of both; and random kills (process_kills.sh), a fifth as many of
# MPICH.
set -eu
bin=$1 mpich=$2 kills=${3:-50}
here=$(dirname "$0")
work=$(mktemp -d "${TMPDIR:-/tmp}/engram-machines-XXXXXX")
trap 'rm -rf "$work"' EXIT
sh "$here/../program/processes.sh" "$bin" "$work/one" long
MPIRUN=mpirun.mpich sh "$here/../program/processes.sh" "$mpich" "$work/other" long
compared=0
for run in "$work"/one/*-1x8 "$work"/one/*-8x1; do
    cmp "$run/checkpoint/latest.safetensors" "$work/other/${run##*/}/checkpoint/latest.safetensors"
    compared=$((compared + 1))
done
[ "$compared" = 24 ] || { echo "machines.sh: $compared runs were compared, expected 24" >&2; exit 1; }
echo "the same checkpoints under both: $compared runs"
bash "$here/process_kills.sh" "$bin" "$kills"
MPIRUN=mpirun.mpich bash "$here/process_kills.sh" "$mpich" $(((kills + 4) / 5))
