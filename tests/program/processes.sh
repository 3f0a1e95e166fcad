#!/bin/sh
# processes.sh BIN FOLDER [WITHOUT_MPI | long]: programs that mpirun starts as several processes. Eight shards carried by
# 1 x 8, 2 x 4, 4 x 2 and 8 x 1 processes x threads, and taken up again by others, end in the same checkpoint and metrics;
# what is wrong, and what differs between processes, is one sentence; a process that is killed or hangs ends all of them,
# and the run goes on to the same bits. WITHOUT_MPI: a program that was compiled without it. long: more kinds of training,
# in all divisions. MPIRUN: another mpirun.
set -eu
bin=$(cd "$1" && pwd) folder=$2 form=${3:-} name=processes.sh
. "$(dirname "$0")/several_processes.sh"
job=
trap '[ -z "$job" ] || kill "$job" 2> /dev/null || true; rm -rf "$sessions"' EXIT

same() { # of two folders: the checkpoint
    cmp "$1/checkpoint/latest.safetensors" "$2/checkpoint/latest.safetensors" || fail "$1 and $2 differ in their checkpoints"
}
same_metrics() { # but for the speed
    for f in "$1" "$2"; do
        awk -F, 'NR == 1 {for (i = 1; i <= NF; ++i) if ($i == "steps_per_second") at = i} {$at = ""; print}' "$f/metrics.csv" > "$f/plain"
    done
    cmp "$1/plain" "$2/plain" || fail "$1 and $2 differ in their metrics"
}

same_scores() { # on the way, of agents, and at the end
    [ ! -e "$1/levels.csv" ] || cmp "$1/levels.csv" "$2/levels.csv" || fail "$1 and $2 differ in their scores on the way"
    for f in "$1" "$2"; do sed -n '/"levels": {/,$p' "$f/summary.json" | sed '/^  }/q' > "$f/scores"; done
    grep -q '"mean"' "$1/scores" || fail "$1 has no scores"
    cmp "$1/scores" "$2/scores" || fail "$1 and $2 differ in their scores"
}
same_runs() {
    same "$1" "$2"
    same_metrics "$1" "$2"
    [ "$judged" = 0 ] || same_scores "$1" "$2"
}

# Waits until a job has written a checkpoint into $cut, and looks every $1 seconds.
until_checkpoint() {
    begun=$(date +%s)
    until [ -e "$cut/checkpoint/latest.safetensors" ]; do
        sleep "$1"
        [ $(($(date +%s) - begun)) -lt 120 ] || fail "$kind: no checkpoint after two minutes: $(cat "$folder/said")"
    done
}
# The process of a rank that trains into $cut.
process_of() {
    for process in $(grep -lszE "^(OMPI_COMM_WORLD_RANK|PMI_RANK)=$1\$" /proc/[0-9]*/environ); do
        process=${process%/environ}
        ! tr '\0' ' ' 2> /dev/null < "$process/cmdline" | grep -q "^$bin/$program .*--out $cut" || echo "${process#/proc/}"
    done
}
# Starts $program as four processes, kills the third with SIGKILL and looks how the job ends; false: it was done before.
killed() {
    rm -rf "$cut"
    begin 4 2 "$cut" $steps --checkpoint-every $middle > "$folder/said" 2>&1 &
    job=$!
    until_checkpoint 0.01
    victim=$(process_of 2)
    [ -z "$victim" ] || kill -9 "$victim" 2> /dev/null || victim=
    began=$(date +%s) status=0
    wait $job || status=$?
    job=
    if [ "$status" = 0 ]; then
        [ -z "$victim" ] || grep -q '"finished": true' "$cut/summary.json" || fail "$kind: a job whose process was killed ended with 0"
        return 1
    fi
    [ -n "$victim" ] || fail "$kind: a job that nobody touched ended with $status: $(cat "$folder/said")"
    [ $(($(date +%s) - began)) -le 10 ] || fail "$kind: a job lived on for more than ten seconds"
    echo "$kind: a process killed, the job ended with $status"
}

kinds="vtrace variational memup phases"
[ "$form" != long ] || kinds="vtrace ppo variational dnc memup contexts phases joint"
for kind in $kinds; do
    judged=0 # episodes a level at the end
    case $kind in
        vtrace) program=engram-ff_mem steps=9600 middle=960
            more="--task t_maze --set task.length=10 --set rollout.environments=16 --set rollout.shards=8"
            more="$more --evaluate-every 2400 --evaluate-episodes 7" judged=9 ;;
        ppo) program=engram-ppo_lstm steps=9600 middle=960
            more="--task t_maze --set task.length=10 --set rollout.environments=32 --set rollout.shards=8"
            more="$more --set rollout.minibatches=2 --set rollout.epochs=2" ;;
        dnc) program=engram-dnc_gtmm steps=1600 middle=400
            more="--task perfect_recall --set sequence.batch=8 --set sequence.shards=8 --set memory.slots=8" ;;
        variational) program=engram-vrnn steps=4000 middle=800
            more="--task perfect_recall --set sequence.batch=8 --set sequence.shards=8" judged=9 ;;
        memup) program=engram-memup steps=6000 middle=1200
            more="--task copy --set sequence.batch=8 --set sequence.shards=8" judged=9 ;;
        contexts) program=engram-memup steps=6000 middle=1200
            more="--task copy --set sequence.batch=8 --set sequence.shards=8 --set learner.context.layers=1"
            more="$more --set learner.context.hidden=16 --set learner.context.retraced=true" ;;
        phases) program=engram-ppo_memup steps=12000 middle=2400
            more="--task t_maze --set rollout.shards=8 --set task.length=12 --set controller.hidden=12"
            more="$more --set rollout.environments=32 --set phases.detector_steps=3200 --set phases.detector.environments=16"
            more="$more --set phases.detector.batch=16 --set phases.detector.start=320"
            more="$more --set phases.memory.steps=3200 --set phases.memory.batch=16" ;;
        joint) program=engram-ppo_memup steps=9600 middle=1920
            more="--task t_maze --set rollout.shards=8 --set task.length=12 --set controller.hidden=12"
            more="$more --set rollout.environments=32 --set phases.joint=true --set phases.detector.batch=16"
            more="$more --set phases.detector.start=320 --set phases.detector.replay.capacity=3200 --set phases.memory.batch=16" ;;
    esac
    "$bin/$program" train --dry-run $more > /dev/null 2>&1 || { "$bin/$program" train --dry-run $more || true; fail "$kind: the arguments are refused"; }
    begin() { # processes threads folder steps, further arguments
        n=$1 threads=$2 out=$3 until=$4
        shift 4
        launch "$n" "$bin/$program" train $more --evaluate $judged --quiet --seed 3 --threads "$threads" --steps "$until" "$@" --out "$out"
    }
    go_on() { launch "$1" "$bin/$program" train --resume --quiet --threads "$2" --steps "$4" --out "$3"; }
    "$bin/$program" train $more --evaluate $judged --quiet --seed 3 --threads 8 --steps $steps --out "$folder/$kind-1x8"
    divisions="2x4"
    [ "$form" != long ] || divisions="2x4 4x2 8x1 3x1"
    for division in $divisions; do
        begin ${division%x*} ${division#*x} "$folder/$kind-$division" $steps
        same_runs "$folder/$kind-1x8" "$folder/$kind-$division"
    done
    # A process is killed as soon as there is a checkpoint, unless the job was faster; others go on from there.
    cut="$folder/$kind-cut" tries=0
    until killed; do
        tries=$((tries + 1))
        [ $tries -lt 5 ] || fail "$kind: the job ended before a process could be killed, five times"
    done
    if [ "$form" = long ]; then
        for division in 1x8 2x4 5x1; do
            rm -rf "$cut-$division"
            cp -r "$cut" "$cut-$division"
            go_on ${division%x*} ${division#*x} "$cut-$division" $steps
            same_runs "$folder/$kind-1x8" "$cut-$division"
        done
    fi
    go_on 8 1 "$cut" $steps
    same_runs "$folder/$kind-1x8" "$cut"
done
if [ "$form" = long ]; then
    echo "$mpirun: the same bits for 1 x 8, 2 x 4, 4 x 2, 8 x 1 and 3 x 1, and for 4 x 2 gone on as 8 x 1, 5 x 1, 2 x 4 and 1 x 8: $kinds"
    exit 0
fi

# What hangs, and what asks it to end. Each of them is a run of its own that would go on for long.
kind=signals program=engram-ff_mem cut="$folder/signals"
more="--task t_maze --set task.length=10 --set rollout.environments=16 --set rollout.shards=8"
begin_long() {
    rm -rf "$cut"
    # No function in the background: signals are for mpirun, not for a shell.
    "$mpirun" $rooms -n "$1" "$bin/$program" train $more --evaluate 0 --quiet --seed 3 --threads 1 --steps 100000000 \
        --checkpoint-every 960 --patience 4 --out "$cut" > "$folder/said" 2>&1 &
    job=$!
    until_checkpoint 0.1
}
for rank in 0 2; do
    begin_long 4
    victim=$(process_of $rank)
    kill -STOP "$victim" || fail "process $rank was not found"
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
# One that was stopped for less goes on; so does a job that was stopped as a whole for more.
begin_long 2
kill -STOP "$(process_of 1)"
sleep 2
kill -CONT "$(process_of 1)"
sleep 1
both="$(process_of 0) $(process_of 1)"
kill -STOP $both
sleep 6
kill -CONT $both || fail "a job that was stopped as a whole is gone: $(cat "$folder/said")"
sleep 1
kill -0 $both 2> /dev/null || fail "a job that was stopped as a whole ended: $(cat "$folder/said")"
# Signals to mpirun: all end at the same step, with a checkpoint. MPICH's launcher now and then says 0 of programs that
# say 130.
asked_to_end() {
    kill -"$1" $job
    status=0
    wait $job || status=$?
    job=
    [ "$status" != 0 ] || [ -z "$rooms" ] || fail "a job that SIG$1 ended says 0"
    [ "$(grep -c "interrupted at step" "$folder/said")" = 1 ] || fail "SIG$1: $(cat "$folder/said")"
}
asked_to_end USR1
begin_long 2
asked_to_end TERM
echo "SIGUSR1 and SIGTERM end a job with a checkpoint, a pause does not end it"

# One sentence, once, and exit code 2.
refused() { # part of the sentence, arguments
    part=$1
    shift
    refused_of 2 "$part" "$@"
}
refused_of() { # processes, part of the sentence, arguments
    n=$1 part=$2
    shift 2
    status=0
    launch $n "$@" > "$folder/said" 2>&1 || status=$?
    [ "$status" = 2 ] || fail "ended with $status instead of 2: $(cat "$folder/said")"
    [ "$(grep -c "$part" "$folder/said")" = 1 ] || fail "'$part' is not said once: $(cat "$folder/said")"
}
refused "2 processes, but the run has 1 shards" "$bin/engram-ff_mem" train --task t_maze --set rollout.shards=1 --out "$folder/no"
refused "no such task\|task 'nothing'" "$bin/engram-ff_mem" train --task nothing --out "$folder/no"
refused "asynchronous training is one process" "$bin/engram-ff_mem" train --task t_maze --mode asynchronous --threads 2 --out "$folder/no"
refused "evaluate: one process does that" "$bin/engram-ff_mem" evaluate --from "$folder/vtrace-2x4"
refused "already holds a run" "$bin/engram-ff_mem" train --task t_maze --out "$folder/vtrace-2x4"
refused_of 4 "4 processes of 1 threads, but the run has 2 rows" "$bin/engram-ff_mem" train --task t_maze --set rollout.environments=2 --out "$folder/no"
touch "$folder/file"
refused "cannot make the folder $folder/file/no" "$bin/engram-ff_mem" train --task t_maze --out "$folder/file/no"
refused "patience: expected 1 or more, got 0" "$bin/engram-ff_mem" train --task t_maze --patience 0 --out "$folder/no"

# What differs between processes.
maze="train --task t_maze --out $folder/no"
cp "$bin/engram-ff_mem" "$folder/another_build"
echo >> "$folder/another_build"
refused_of 1 "process 1 has another build than process 0: checksum" "$bin/engram-ff_mem" $maze : -n 1 "$folder/another_build" $maze
refused_of 1 "process 1 has another program than process 0: engram-vrnn, expected engram-ff_mem" "$bin/engram-ff_mem" $maze : -n 1 "$bin/engram-vrnn" $maze
refused_of 2 "process 2 has another command line than process 0: train" "$bin/engram-ff_mem" $maze --seed 1 : -n 1 "$bin/engram-ff_mem" $maze --seed 2
# Digits in a folder of each process's own: 100 images of 28 x 28 bytes, and their classes.
for rank in 0 1; do
    mkdir -p "$folder/at$rank/data/mnist"
    for part in train t10k; do
        { printf '\000\000\010\003\000\000\000\144\000\000\000\034\000\000\000\034'
          seq $((rank + ${#part})) 20000 | tr '0-9' '\000\377\010\300\100\377\000\200\377\000' | head -c 78400; } > "$folder/at$rank/data/mnist/$part-images-idx3-ubyte"
        { printf '\000\000\010\001\000\000\000\144'
          printf '\000\001\002\003\004\005\006\007\010\011%.0s' 0 1 2 3 4 5 6 7 8 9; } > "$folder/at$rank/data/mnist/$part-labels-idx1-ubyte"
    done
done
cat > "$folder/at_home" << 'END'
cd "$1/at${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"
shift
exec "$@"
END
digits="--data data --stimuli mnist --out $folder/no"
refused "process 1 has another data set than process 0: mnist, 160 images, checksum" sh "$folder/at_home" "$folder" \
    "$bin/engram-ff_mem" train --task arbitrary_visuomotor_mapping --set task.stimulus_count=80 $digits
refused "process 1 has another data set than process 0: perfect_recall, 256 sequences a level, checksum" sh "$folder/at_home" "$folder" \
    "$bin/engram-vrnn" train --task perfect_recall $digits
rm -r "$folder/at1/data"
refused "process 1: .*data" sh "$folder/at_home" "$folder" \
    "$bin/engram-ff_mem" train --task arbitrary_visuomotor_mapping --set task.stimulus_count=80 $digits
# One that never comes.
status=0
launch 1 "$bin/engram-ff_mem" $maze --patience 3 : -n 1 sleep 60 > "$folder/said" 2>&1 || status=$?
[ "$status" = 1 ] && [ "$(grep -c "MPI neither connects nor parts all processes in time" "$folder/said")" = 1 ] ||
    fail "a process that never comes: $status, $(cat "$folder/said")"
[ -z "$form" ] || refused "compiled without MPI" "$form" $maze
[ ! -e "$folder/no/checkpoint/latest.safetensors" ] || fail "a refused run has left a checkpoint"
echo "the same bits for 1 x 8, 2 x 4 and 4 x 2 gone on as 8 x 1"
