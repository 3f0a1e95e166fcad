#!/bin/sh
# actors_apart.sh BIN FOLDER: mpirun starts one process that learns and others that act for it. Which weights act is a
# matter of time, so no bits are compared: what two actors began four take up, then one process by itself; a killed actor
# ends the job, SIGTERM stops it with a checkpoint, and either run goes on; one that hangs ends the job by name, whether it
# learns or acts; what is wrong is one sentence.
set -eu
bin=$1 folder=$2 name=actors_apart.sh
. "$(dirname "$0")/several_processes.sh"
job=
trap '[ -z "$job" ] || kill "$job" 2> /dev/null || true; rm -rf "$sessions"' EXIT

apart="$folder/apart" program=engram-ff_mem
together="--task t_maze --set task.length=10 --set rollout.environments=16 --set asynchronous.groups=4 --mode asynchronous"
column() { # folder name: the largest number in a column of metrics.csv
    awk -F, -v name="$2" 'NR == 1 {for (i = 1; i <= NF; ++i) if ($i == name) at = i} NR > 1 && $at > most {most = $at} END {print most + 0}' "$1/metrics.csv"
}
apart_until() { # processes actors steps, further arguments
    n=$1 actors=$2 until=$3
    shift 3
    launch "$n" "$bin/$program" train "$@" --evaluate 0 --quiet --actors "$actors" --steps "$until" --out "$apart"
}
apart_until 3 2 4800 $together --seed 3
grep -q '"finished": true' "$apart/summary.json" || fail "the run has not finished"
[ "$(column "$apart" lag)" != 0 ] || fail "no lag was measured"
[ "$(column "$apart" update)" = 120 ] || fail "$(column "$apart" update) updates instead of 120"
apart_until 5 4 6400 --resume
"$bin/$program" train --resume --quiet --actors 0 --threads 3 --steps 8000 --out "$apart"
[ "$(column "$apart" step)" = 8000 ] || fail "a run that was taken up ended at step $(column "$apart" step)"
# Begins a run of two actors, and waits until there is a checkpoint.
begin_long() { # steps, further arguments
    rm -rf "$apart"
    apart_until 3 2 "$@" $together --checkpoint-every 800 > "$folder/said" 2>&1 &
    job=$! waited=0
    until [ -e "$apart/checkpoint/latest.safetensors" ]; do
        sleep 0.01
        waited=$((waited + 1))
        [ $waited -lt 6000 ] || fail "no checkpoint after a minute: $(cat "$folder/said")"
    done
}
# The process of a rank that trains into $apart; mpirun's for a rank of -1.
process_of() {
    for process in /proc/[0-9]*; do
        case $(tr '\0' ' ' 2> /dev/null < "$process/cmdline") in
            "$mpirun "*"--out $apart "*) [ "$1" != -1 ] || echo "${process#/proc/}" ;;
            "$bin/$program "*"--out $apart "*)
                ! tr '\0' '\n' 2> /dev/null < "$process/environ" | grep -qx "OMPI_COMM_WORLD_RANK=$1\|PMI_RANK=$1" ||
                    echo "${process#/proc/}" ;;
        esac
    done
}
for signal in KILL TERM; do
    begin_long 400000
    if [ $signal = KILL ]; then victim=$(process_of 2); else victim=$(process_of -1); fi
    [ -n "$victim" ] || fail "the process to end was not found"
    kill -$signal "$victim"
    status=0
    wait $job || status=$?
    job=
    [ "$status" != 0 ] || fail "a job ended with 0 after SIG$signal"
    [ $signal = KILL ] || [ "$(grep -c 'interrupted at step' "$folder/said")" = 1 ] || fail "SIGTERM: $(cat "$folder/said")"
    step=$(column "$apart" step)
    launch 3 "$bin/$program" train --resume --quiet --steps $((step + 800)) --out "$apart"
    grep -q '"finished": true' "$apart/summary.json" || fail "a run that was ended by SIG$signal is not taken up"
done

# All wait for letters, of the one that learns or of one that acts.
for rank in 0 2; do
    begin_long 100000000 --patience 4
    kill -STOP "$(process_of $rank)" || fail "process $rank was not found"
    began=$(date +%s) status=0
    wait $job || status=$?
    job=
    took=$(($(date +%s) - began))
    [ "$status" != 0 ] || fail "a job whose process $rank hangs ended with 0"
    [ "$took" -ge 3 ] && [ "$took" -le 20 ] || fail "a job whose process $rank hangs ended after $took seconds: $(cat "$folder/said")"
    [ "$(grep -c "engram: process $rank .*no sign of life for 4 seconds" "$folder/said")" = 1 ] ||
        fail "that process $rank hangs is not said once: $(cat "$folder/said")"
    echo "process $rank hangs: the job ended with $status after $took seconds"
done

# One sentence, once, and exit code 2.
refused() { # processes, part of the sentence, arguments
    count=$1 part=$2
    shift 2
    status=0
    if [ "$count" = 1 ]; then "$@" > "$folder/said" 2>&1; else launch "$count" "$@" > "$folder/said" 2>&1; fi || status=$?
    [ "$status" = 2 ] || fail "ended with $status instead of 2: $(cat "$folder/said")"
    [ "$(grep -c "$part" "$folder/said")" = 1 ] || fail "'$part' is not said once: $(cat "$folder/said")"
}
train="$bin/$program train --task t_maze --out $folder/no"
refused 2 "processes act apart in asynchronous training alone" $train --actors 1
refused 2 "asynchronous training is one process that learns" $train --mode asynchronous
refused 2 "one of which learns; expected --actors 1" $train --mode asynchronous --actors 2
refused 3 "of which 2 would learn, but one learns alone" $train --mode asynchronous --actors 1
refused 1 "started as one process, with nobody to act for it" $train --mode asynchronous --actors 1
[ ! -e "$folder/no/checkpoint/latest.safetensors" ] || fail "a refused run has left a checkpoint"
echo "two actors, then four, then one process; a killed one and a stopped one went on"
