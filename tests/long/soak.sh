#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Trains asynchronously for an hour and watches: memory and the lag of the policy must be at the end what they were after
# five minutes. Needs two cores.
#
#     tests/long/soak.sh <folder of the programs> [minutes (60)] [folder for the run (a temporary one)]
#
# Leaves memory.csv (seconds, KiB) beside metrics.csv.
set -euo pipefail

[[ $# -ge 1 ]] || { echo "usage: soak.sh <folder of the programs> [minutes (60)] [folder]" >&2; exit 2; }
minutes=${2:-60}
out=${3:-$(mktemp -d "${TMPDIR:-/tmp}/engram-soak-XXXXXX")}
[[ ! -e $out/checkpoint ]] || { echo "soak: $out already holds a run" >&2; exit 2; }
mkdir -p "$out"
seconds=$((minutes * 60))
settled=$((seconds / 2 < 300 ? seconds / 2 : 300))

# Rows of metrics.csv come every steps / 400 or oftener: more steps than the machine will do, but not much more.
"$1/engram-lstm_mem" train --task arbitrary_visuomotor_mapping --mode asynchronous --threads 2 --evaluate 0 --quiet \
    --steps $((seconds * 50000)) --checkpoint-every 1000000 --out "$out/run" 2> "$out/error" &
program=$!
trap 'kill "$program" 2>/dev/null || true' EXIT
echo "seconds,kib" > "$out/memory.csv"
begin=$SECONDS
while ((SECONDS - begin < seconds)); do
    sleep 5
    kill -0 "$program" 2>/dev/null || { echo "soak: the run ended by itself: $(cat "$out/error")" >&2; exit 1; }
    echo "$((SECONDS - begin)),$(awk '/^VmRSS/ { print $2 }' "/proc/$program/status")" >> "$out/memory.csv"
done
kill -INT "$program"
code=0
wait "$program" || code=$?
trap - EXIT
[[ $code == 130 ]] || { echo "soak: exit code $code after Ctrl-C, expected 130: $(cat "$out/error")" >&2; exit 1; }

# Means over a tenth of the time behind `settled`, and over the last tenth.
memory=$(awk -F, -v from="$settled" -v end="$seconds" 'NR > 1 && $1 >= from {
             if ($1 <= from + end / 10) { a += $2; ++n }
             if ($1 >= end - end / 10) { b += $2; ++m } }
         END { printf "%d %d", a / n, b / m }' "$out/memory.csv")
# Half of the rows, and the other half; the first tenth is left out.
lag=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == "lag") column = i }
               NR > 1 { value[NR - 1] = $column }
               END { n = NR - 1; if (n < 8) exit 1
                     for (i = int(n / 10) + 1; i <= n; ++i)
                         if (i <= n / 2) { a += value[i]; ++p } else { b += value[i]; ++q }
                     printf "%.3f %.3f", a / p, b / q }' "$out/run/metrics.csv") ||
    { echo "soak: fewer than eight rows of metrics.csv; the machine is too slow or the time too short" >&2; exit 1; }
read -r kib_then kib_now <<< "$memory"
read -r lag_then lag_now <<< "$lag"
steps=$(tail -n 1 "$out/run/metrics.csv" | cut -d, -f1)
echo "$minutes minutes, $steps steps: memory $kib_then KiB after $settled s, $kib_now KiB at the end;" \
    "lag $lag_then in the first half, $lag_now in the second"
# A page or two of allocator noise is 1 %; a lag that drifts would grow with the number of updates.
awk -v a="$kib_then" -v b="$kib_now" 'BEGIN { exit !(b <= 1.01 * a + 1024) }' ||
    { echo "soak: memory grows" >&2; exit 1; }
awk -v a="$lag_then" -v b="$lag_now" 'BEGIN { exit !(b <= 1.2 * a + 0.2) }' ||
    { echo "soak: the lag drifts" >&2; exit 1; }
