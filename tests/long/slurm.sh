#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A Slurm of its own on this machine, controller and one node of two processors, and a campaign in it: preempted, queued
# again, at the end of its time, and one run as two processes; all checkpoints must be those of runs that nobody disturbed.
#
#     tests/long/slurm.sh <folder of the programs> [folder to keep what it wrote in]
#
# Needs slurmctld, slurmd, munge (packages.txt, group slurm); 77 where they are missing. Nothing is left running.
set -euo pipefail

[[ $# -ge 1 ]] || { echo "usage: slurm.sh <folder of the programs> [folder]" >&2; exit 2; }
bin=$(cd "$1" && pwd) source=$(cd "$(dirname "$0")/../.." && pwd)
PATH=$PATH:/usr/sbin:/sbin
for program in slurmctld slurmd munged sbatch srun; do
    command -v "$program" > /dev/null || { echo "skipped: there is no $program"; exit 77; }
done
work=${2:-$(mktemp -d "${TMPDIR:-/tmp}/engram-slurm-XXXXXX")}
mkdir -p "$work"
work=$(cd "$work" && pwd)
fail() { echo "slurm: $*" >&2; exit 1; }
say() { printf '%4d s  %s\n' "$SECONDS" "$*"; }

# --- a Slurm ------------------------------------------------------------------------------------------------------

# In sessions of their own: a Ctrl-C is for this script alone, which needs them to end the jobs.
daemons=()
take_down() {
    local code=$?
    set +e
    if [[ $code != 0 ]]; then
        tail -n 40 "$work"/*.log >&2
        squeue --array >&2
    fi
    scancel --user "$(id -un)" 2> /dev/null
    for ((i = 0; i < 100; ++i)); do
        [[ -n $(squeue --noheader 2> /dev/null) ]] || break
        sleep 0.3
    done
    [[ ${#daemons[@]} == 0 ]] || kill "${daemons[@]}" 2> /dev/null
    wait
    [[ $# -gt 0 ]] || rm -rf "$work"
    exit "$code"
}
trap 'take_down ${keep:-}' EXIT
keep=${2:+yes}

port() { # one that nobody listens on
    local number
    while :; do
        number=$((20000 + RANDOM % 10000))
        (exec 3<> "/dev/tcp/127.0.0.1/$number") 2> /dev/null || { echo $number; return; }
    done
}
me=$(id -un) host=$(hostname -s)
mkdir -p -m 755 "$work/munge" "$work/state" "$work/spool"
(umask 077; head -c 1024 /dev/urandom > "$work/munge/key")
setsid munged --foreground --force --key-file="$work/munge/key" --socket="$work/munge/socket" --pid-file="$work/munge/pid" \
    --log-file="$work/munge/log" --seed-file="$work/munge/seed" > "$work/munged.log" 2>&1 &
daemons+=($!)
cat > "$work/slurm.conf" <<END
ClusterName=engram
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$(port)
SlurmdPort=$(port)
SlurmUser=$me
SlurmdUser=$me
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket,cred_expire=5
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=2,bf_interval=2,sched_min_interval=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
ReturnToService=2
InactiveLimit=0
SlurmdParameters=config_overrides
NodeName=$host NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=low Nodes=ALL Default=YES PriorityTier=1
PartitionName=high Nodes=ALL PriorityTier=10 PreemptMode=OFF
END
echo "CgroupPlugin=cgroup/v1" > "$work/cgroup.conf"
export SLURM_CONF=$work/slurm.conf
for ((i = 0; i < 50; ++i)); do
    [[ ! -S $work/munge/socket ]] || break
    sleep 0.1
done
setsid slurmctld -D -f "$SLURM_CONF" > "$work/controller.log" 2>&1 &
daemons+=($!)
setsid slurmd -D -f "$SLURM_CONF" -N "$host" > "$work/node.log" 2>&1 &
daemons+=($!)
for ((i = 0; i < 100; ++i)); do
    [[ $(sinfo --noheader --partition=low --format=%T 2> /dev/null) != idle ]] || break
    sleep 0.3
done
[[ $(sinfo --noheader --partition=low --format=%T) == idle ]] || fail "the node does not come up"
say "Slurm $(sinfo --version | awk '{print $2}') with one node of two processors"

# --- an array, preempted and queued again --------------------------------------------------------------------------

cd "$work"
until_true() { # seconds, what it is waited for, a command
    local until=$((SECONDS + $1)) what=$2
    shift 2
    until "$@"; do
        ((SECONDS < until)) || fail "not in time: $what"
        sleep 0.2
    done
}
trains() { [[ -e $1/metrics.csv && $(wc -l < "$1/metrics.csv") -gt 5 ]]; }
has() { grep -q -- "$1" "$2"; }
starts() { grep -c '^+ .*engram-ff train ' "$1/log.txt"; }
same() { cmp "$1/checkpoint/latest.safetensors" "$2/checkpoint/latest.safetensors" || fail "$1 and $2 differ"; }
state() { squeue --noheader --array --states=all --format='%F_%K %T' | awk -v job="$1" '$1 == job {print $2}'; }
is_state() { [[ $(state "$1") == "$2" ]]; }

cat > some.campaign <<'END'
programs = ff
tasks = t_maze
seeds = 1 2 3
steps = 12000000
controller.hidden = 16
encoder.hidden = 16
rollout.environments = 16
evaluate = 2
checkpoint-every = 1000000
out = array/{seed}
results = array.csv
END
"$bin/engram-campaign" some.campaign out=whole/{seed} results=whole.csv --jobs 2 > whole.txt
say "three runs without Slurm"

"$bin/engram-campaign" some.campaign --slurm --jobs 2 > array.txt 2>&1 &
follower=$!
until_true 120 "two runs that train" trains array/1
until_true 120 "two runs that train" trains array/2
[[ $(squeue --noheader --array --states=running | wc -l) == 2 ]] || fail "--jobs 2 is not a limit of two"
"$bin/engram-campaign" some.campaign --status > status.txt
has "running   array/1" status.txt && has "queued    array/3: job" status.txt || fail "$(cat status.txt)"
# A second call starts nothing.
before=$(squeue --noheader --array | wc -l)
"$bin/engram-campaign" some.campaign --slurm --detach > second.txt
[[ $(squeue --noheader --array | wc -l) == "$before" ]] || fail "a second call queued something: $(cat second.txt)"
# Who is more important takes both processors.
job=$(cat array/1/slurm.txt)
sbatch --partition=high --ntasks=2 --output=/dev/null --wrap='sleep 5' > /dev/null
until_true 120 "$job is preempted" is_state "$job" PENDING
until_true 120 "$(cat array/2/slurm.txt) is preempted" is_state "$(cat array/2/slurm.txt)" PENDING
for run in array/1 array/2; do
    [[ -e $run/checkpoint/latest.safetensors ]] || fail "$run: no checkpoint after the preemption"
    has '"finished": false' $run/summary.json || fail "$run has not ended by itself when it was preempted"
done
say "preempted: both runs wrote a checkpoint and wait again"
until_true 120 "array/1 goes on" bash -c '[[ $(grep -c "^+ .*train " array/1/log.txt) -ge 2 ]]'
until_true 120 "$job runs" is_state "$job" RUNNING
sleep 1
is_state "$job" RUNNING && scontrol requeue "$job"
status=0
wait $follower || status=$?
[[ $status == 0 ]] || fail "the campaign ended with $status: $(cat array.txt)"
for seed in 1 2 3; do same whole/$seed array/$seed; done
[[ $(starts array/1) -ge 2 && $(starts array/2) -ge 2 ]] || fail "no run was resumed"
cmp <(cut -d, -f1-10 whole.csv) <(cut -d, -f1-10 array.csv) || fail "the tables of results differ"
say "an array of three, preempted, $(starts array/1), $(starts array/2) and $(starts array/3) starts: the checkpoints of undisturbed runs"

# --- the end of a job's time ---------------------------------------------------------------------------------------

"$bin/engram-campaign" some.campaign seeds=4 steps=50000000 out=whole/{seed} results=whole4.csv > whole.txt
"$bin/engram-campaign" some.campaign seeds=4 steps=50000000 results=array4.csv --slurm \
    'slurm=--time=1 --signal=B:USR1@50' > time.txt 2>&1 || fail "$(cat time.txt)"
[[ $(starts array/4) -ge 2 ]] || fail "its time was never up: $(cat array/4/log.txt)"
same whole/4 array/4
say "a run of more than its time, in $(starts array/4) parts: the same checkpoint"

# --- two processes -------------------------------------------------------------------------------------------------

two="train --task t_maze --seed 5 --steps 2000000 --rollout.shards 2 --threads 1 --evaluate 0 --quiet --checkpoint-every 200000"
two="$two --controller.hidden 16 --encoder.hidden 16 --rollout.environments 128"
# Processes that wait leave the processor to those that work; and whoever is root has to say that this is meant.
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
"$bin/engram-ff" $two --out one
failed=
if srun --ntasks=2 --mpi=pmix "$bin/engram-ff" $two --out srun-pmix > srun.txt 2>&1; then
    same one srun-pmix
    say "srun --mpi=pmix -n 2: the bits of one process"
else
    failed="$failed srun --mpi=pmix: $(tail -n 1 srun.txt);"
fi
if sbatch --wait --ntasks=2 --output=mpirun.txt --wrap="mpirun -n 2 $bin/engram-ff $two --out mpirun" > /dev/null; then
    same one mpirun
    say "mpirun -n 2 in a job of two tasks: the bits of one process"
else
    failed="$failed mpirun in a job: $(tail -n 1 mpirun.txt);"
fi
[[ -z $failed ]] || fail "$failed"

# A campaign whose runs are two processes each.
shape=(seeds=1 steps=2000000 rollout.shards=2 rollout.environments=128 checkpoint-every=200000)
for launch in 'srun --mpi=pmix -n 2' 'mpirun -n 2'; do
    name=${launch%% *}
    "$bin/engram-campaign" some.campaign "${shape[@]}" "out=two/$name" "results=two.csv" --slurm "launch=$launch" \
        slurm=--ntasks=2 > two.txt 2>&1 &
    follower=$!
    until_true 120 "two processes that train" trains "two/$name"
    sbatch --partition=high --ntasks=2 --output=/dev/null --wrap='sleep 2' > /dev/null
    status=0
    wait $follower || status=$?
    [[ $status == 0 ]] || fail "the campaign of $launch ended with $status: $(cat two.txt)"
    [[ $(starts "two/$name") -ge 2 ]] || fail "$launch: not preempted: $(cat "two/$name/log.txt")"
    if [[ ! -d two/one ]]; then
        "$bin/engram-campaign" some.campaign "${shape[@]}" out=two/one results=two.csv > /dev/null
    fi
    same two/one "two/$name"
    say "launch = $launch, preempted: the bits of one process"
done

# --- the script of docs/guide/machines.md ----------------------------------------------------------------------------

awk '/^```text/ {on = 1; next} /^```/ {on = 0} on' "$source/docs/guide/machines.md" > several_nodes.sh
has 'srun' several_nodes.sh || fail "docs/guide/machines.md shows no script"
sbatch --parsable --nodes=1 --ntasks-per-node=2 --cpus-per-task=1 --time=5 --output=script.txt \
    several_nodes.sh "$bin/engram-ff" $two --out script > script.job
job=$(cat script.job)
job_state() { squeue --noheader --states=all --jobs="$1" --format=%T; }
until_true 120 "the script trains" trains script
sbatch --partition=high --ntasks=2 --output=/dev/null --wrap='sleep 2' > /dev/null
until_true 120 "the script is preempted" bash -c "[[ \$(squeue --noheader --jobs=$job --format=%T) == PENDING ]]"
until_true 120 "the script's run ends" bash -c "[[ \$(squeue --noheader --states=all --jobs=$job --format=%T) == COMPLETED ]]"
same one script
say "the script of docs/guide/machines.md, preempted: the bits of one process"
