#!/bin/sh
# actors_apart.sh BIN FOLDER: mpirun starts one process that learns and others that act for it. Which weights act is a
# matter of time, so no bits are compared: what two actors began four take up, then one process by itself; a killed actor
# ends the job, SIGTERM stops it with a checkpoint, and either run goes on; what is wrong is one sentence.
set -eu
bin=$1 folder=$2 name=actors_apart.sh
. "$(dirname "$0")/several_processes.sh"

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
for signal in KILL TERM; do
    rm -rf "$apart"
    apart_until 3 2 400000 $together --checkpoint-every 800 > "$folder/said" 2>&1 &
    job=$! waited=0
    until [ -e "$apart/checkpoint/latest.safetensors" ]; do
        sleep 0.01
        waited=$((waited + 1))
        [ $waited -lt 6000 ] || fail "no checkpoint after a minute: $(cat "$folder/said")"
    done
    victim=
    for process in /proc/[0-9]*; do
        case $(tr '\0' ' ' 2> /dev/null < "$process/cmdline") in
            "mpirun "*"--out $apart "*) [ $signal = KILL ] || victim=${process#/proc/} ;;
            "$bin/$program "*"--out $apart "*)
                [ $signal = TERM ] || ! tr '\0' '\n' 2> /dev/null < "$process/environ" | grep -qx 'OMPI_COMM_WORLD_RANK=2\|PMI_RANK=2' ||
                    victim=${process#/proc/} ;;
        esac
    done
    [ -n "$victim" ] || fail "the process to end was not found"
    kill -$signal "$victim"
    status=0
    wait $job || status=$?
    [ "$status" != 0 ] || fail "a job ended with 0 after SIG$signal"
    [ $signal = KILL ] || [ "$(grep -c 'interrupted at step' "$folder/said")" = 1 ] || fail "SIGTERM: $(cat "$folder/said")"
    step=$(column "$apart" step)
    launch 3 "$bin/$program" train --resume --quiet --steps $((step + 800)) --out "$apart"
    grep -q '"finished": true' "$apart/summary.json" || fail "a run that was ended by SIG$signal is not taken up"
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
