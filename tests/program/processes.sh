#!/bin/sh
# processes.sh BIN FOLDER [long]: programs that mpirun starts as several processes. Eight shards carried by 1 x 8, 2 x 4,
# 4 x 2 and 8 x 1 processes x threads, and taken up again by others, end in the same checkpoint and metrics; what is
# wrong is one sentence; a process that is killed ends all of them, and the run goes on to the same bits.
set -eu
bin=$1 folder=$2
command -v mpirun > /dev/null || { echo "skipped: there is no mpirun"; exit 77; }
rm -rf "$folder"
mkdir -p "$folder"
fail() { echo "processes.sh: $*" >&2; exit 1; }

# Open MPI wants to be told that root and few cores are meant; MPICH knows no such words.
if mpirun --version 2>&1 | grep -q 'Open MPI'; then
    launch() { n=$1; shift; mpirun --allow-run-as-root --oversubscribe -n "$n" "$@"; }
else
    launch() { n=$1; shift; mpirun -n "$n" "$@"; }
fi

status=0
said=$(launch 2 "$bin/engram-ff_mem" train --task t_maze --dry-run 2>&1) || status=$?
case $said in
    *"compiled without MPI"*)
        [ "$(echo "$said" | grep -c 'compiled without MPI')" = 1 ] || fail "said more than once: $said"
        echo "skipped: the programs were compiled without MPI"
        exit 77 ;;
esac
[ "$status" = 0 ] || fail "a dry run of two processes ended with $status: $said"

same() { # of two folders: the checkpoint
    cmp "$1/checkpoint/latest.safetensors" "$2/checkpoint/latest.safetensors" || fail "$1 and $2 differ in their checkpoints"
}
same_metrics() { # but for the speed
    for f in "$1" "$2"; do
        awk -F, 'NR == 1 {for (i = 1; i <= NF; ++i) if ($i == "steps_per_second") at = i} {$at = ""; print}' "$f/metrics.csv" > "$f/plain"
    done
    cmp "$1/plain" "$2/plain" || fail "$1 and $2 differ in their metrics"
}

# Starts $program as four processes, kills the third with SIGKILL and looks how the job ends; false: it was done before.
killed() {
    rm -rf "$cut"
    begin 4 2 "$cut" $steps --checkpoint-every $middle > "$folder/said" 2>&1 &
    job=$! waited=0
    until [ -e "$cut/checkpoint/latest.safetensors" ]; do
        sleep 0.01
        waited=$((waited + 1))
        [ $waited -lt 6000 ] || fail "$kind: no checkpoint after a minute: $(cat "$folder/said")"
    done
    victim= found=0
    for process in /proc/[0-9]*; do
        tr '\0' ' ' 2> /dev/null < "$process/cmdline" | grep -q "^$bin/$program .*--out $cut" || continue
        found=$((found + 1))
        [ $found != 3 ] || victim=${process#/proc/}
    done
    [ -z "$victim" ] || kill -9 "$victim" 2> /dev/null || victim=
    began=$(date +%s) status=0
    wait $job || status=$?
    if [ "$status" = 0 ]; then
        [ -z "$victim" ] || grep -q '"finished": true' "$cut/summary.json" || fail "$kind: a job whose process was killed ended with 0"
        return 1
    fi
    [ -n "$victim" ] || fail "$kind: a job that nobody touched ended with $status: $(cat "$folder/said")"
    [ $(($(date +%s) - began)) -le 10 ] || fail "$kind: a job lived on for more than ten seconds"
    echo "$kind: a process killed, the job ended with $status"
}

for kind in vtrace variational memup phases; do
    case $kind in
        vtrace) program=engram-ff_mem steps=9600 middle=960
            more="--task t_maze --set task.length=10 --set rollout.environments=16 --set rollout.shards=8" ;;
        variational) program=engram-vrnn steps=4000 middle=800
            more="--task perfect_recall --set sequence.batch=8 --set sequence.shards=8 --evaluate 0" ;;
        memup) program=engram-memup steps=6000 middle=1200
            more="--task copy --set sequence.batch=8 --set sequence.shards=8 --evaluate 0" ;;
        phases) program=engram-ppo_memup steps=12000 middle=2400
            more="--task t_maze --set rollout.shards=8 --set task.length=12 --set controller.hidden=12"
            more="$more --set rollout.environments=32 --set phases.detector_steps=3200 --set phases.detector.environments=16"
            more="$more --set phases.detector.batch=16 --set phases.detector.start=320"
            more="$more --set phases.memory.steps=3200 --set phases.memory.batch=16" ;;
    esac
    "$bin/$program" train --dry-run $more > /dev/null 2>&1 || { "$bin/$program" train --dry-run $more || true; fail "$kind: the arguments are refused"; }
    begin() { # processes threads folder steps, further arguments
        n=$1 threads=$2 out=$3 until=$4
        shift 4
        launch "$n" "$bin/$program" train $more --evaluate 0 --quiet --seed 3 --threads "$threads" --steps "$until" "$@" --out "$out"
    }
    go_on() { launch "$1" "$bin/$program" train --resume --quiet --threads "$2" --steps "$4" --out "$3"; }
    "$bin/$program" train $more --evaluate 0 --quiet --seed 3 --threads 8 --steps $steps --out "$folder/$kind-1x8"
    begin 2 4 "$folder/$kind-2x4" $steps
    same "$folder/$kind-1x8" "$folder/$kind-2x4"
    same_metrics "$folder/$kind-1x8" "$folder/$kind-2x4"
    # A process is killed as soon as there is a checkpoint, unless the job was faster; others go on from there.
    cut="$folder/$kind-cut" tries=0
    until killed; do
        tries=$((tries + 1))
        [ $tries -lt 5 ] || fail "$kind: the job ended before a process could be killed, five times"
    done
    go_on 8 1 "$cut" $steps
    same "$folder/$kind-1x8" "$cut"
done

# One sentence, once, and exit code 2.
refused() { # part of the sentence, arguments
    part=$1
    shift
    status=0
    launch 2 "$@" > "$folder/said" 2>&1 || status=$?
    [ "$status" = 2 ] || fail "ended with $status instead of 2: $(cat "$folder/said")"
    [ "$(grep -c "$part" "$folder/said")" = 1 ] || fail "'$part' is not said once: $(cat "$folder/said")"
}
refused "2 processes, but the run has 1 shards" "$bin/engram-ff_mem" train --task t_maze --set rollout.shards=1 --out "$folder/no"
refused "no such task\|task 'nothing'" "$bin/engram-ff_mem" train --task nothing --out "$folder/no"
refused "asynchronous training is one process" "$bin/engram-ff_mem" train --task t_maze --mode asynchronous --threads 2 --out "$folder/no"
refused "evaluate: one process does that" "$bin/engram-ff_mem" evaluate --from "$folder/vtrace-2x4"
refused "already holds a run" "$bin/engram-ff_mem" train --task t_maze --out "$folder/vtrace-2x4"
[ ! -e "$folder/no/checkpoint/latest.safetensors" ] || fail "a refused run has left a checkpoint"
echo "the same bits for 1 x 8, 2 x 4 and 4 x 2 gone on as 8 x 1"
