#!/bin/bash
# run.sh [sum|train] [BIN]: two hosts made of two network namespaces with a link between them, one process of a training on each. The
# checkpoint has to be that of one process, byte for byte; then updates a second for each delay and rate of the link, and
# how well a model of the link predicts them (model.py, which makes the tables). Needs root, iproute2, Open MPI and
# Python; skips (77) where it may not make namespaces or links. A few minutes.
#
# The link is a veth pair shaped by tc's netem where the kernel has netem; otherwise two TUN devices and link.cpp between
# them. Nothing else joins the two: no shared memory (btl tcp,self), no loopback, host names of their own.
#
# ROUNDS (3), RATES (Mbit/s), DELAYS (microseconds, one way), SIZES (MB of the sums); TUNED=1 sets tcp_slow_start_after_idle=0.
# OMPI_MCA_<parameter> in the environment reaches both hosts.
set -eu
cd "$(dirname "$0")/../.."
here=benchmarks/hosts
skip() { echo "skipped: $*"; exit 77; }
[ "$(id -u)" = 0 ] || skip "only root makes network namespaces"
for tool in ip tc mpirun unshare python3; do command -v $tool > /dev/null || skip "there is no $tool"; done
mpirun --version 2>&1 | grep -q 'Open MPI' || skip "the agent here is one of Open MPI"
what=all
case ${1:-} in sum | train) what=$1; shift ;; esac
bin=$(cd "${1:-build/bin}" && pwd)
program=$bin/engram-ff_mem
for needed in "$program" "$bin/benchmark-processes_sum"; do
    [ -x "$needed" ] || { echo "run.sh: $needed is not built (./dev bench hosts)" >&2; exit 1; }
done

a=engram-a-$$ b=engram-b-$$ relay= tuned=${TUNED:-}
folder=$(mktemp -d)
finish() {
    [ -z "$relay" ] || kill "$relay" 2> /dev/null || true
    for ns in $a $b; do ip netns del $ns 2> /dev/null || true; done
    rm -rf "$folder"
}
trap finish EXIT
{ ip netns add $a && ip netns add $b; } 2> "$folder/why" || skip "no network namespaces here: $(cat "$folder/why")"
for ns in $a $b; do
    ip -n $ns link set lo up
    [ -z "$tuned" ] || ip netns exec $ns sh -c 'echo 0 > /proc/sys/net/ipv4/tcp_slow_start_after_idle'
done
veth() { ip link add wire netns $a type veth peer name wire netns $b; }
veth 2> "$folder/why" || skip "no veth here: $(cat "$folder/why")"
netem=yes
tc -n $a qdisc add dev wire root netem delay 1ms 2> "$folder/why" || netem=no
ip -n $a link del wire
if [ $netem = no ]; then
    [ -c /dev/net/tun ] || skip "tc has no netem here, and there is no /dev/net/tun: $(cat "$folder/why")"
    ${CXX:-g++} -std=c++20 -O2 -pthread -o "$folder/link" $here/link.cpp
fi

# A link with a delay (microseconds, one way) and a rate (Mbit/s).
connect() {
    if [ $netem = yes ]; then
        veth
    else
        "$folder/link" $a $b "$1" "$2" &
        relay=$!
        for ns in $a $b; do until ip -n $ns link show wire > /dev/null 2>&1; do sleep 0.05; done; done
    fi
    for ns in $a $b; do
        ip -n $ns link set wire mtu 9000 up
        [ $netem = no ] || tc -n $ns qdisc replace dev wire root netem delay "$1us" rate "$2mbit" limit 100000
    done
    ip -n $a addr add 10.77.0.1/24 dev wire
    ip -n $b addr add 10.77.0.2/24 dev wire
}
disconnect() {
    [ $netem = no ] || ip -n $a link del wire
    [ -z "$relay" ] || { kill "$relay"; wait "$relay" 2> /dev/null || true; }
    relay=
}
carried() { ip netns exec $a cat /sys/class/net/wire/statistics/tx_bytes; }

# mpirun starts the daemon of the other host by this: in its namespace, with a name of its own.
cat > "$folder/agent" << AGENT
#!/bin/sh
shift
exec ip netns exec $b unshare --uts sh -c 'hostname engram-b; exec sh -c "\$*"' sh "\$@"
AGENT
chmod +x "$folder/agent"
printf '10.77.0.1 slots=1\n10.77.0.2 slots=1\n' > "$folder/hosts"
on_two_hosts() {
    ip netns exec $a unshare --uts sh -c 'hostname engram-a; exec "$@"' sh \
        mpirun --allow-run-as-root --hostfile "$folder/hosts" -n 2 --map-by node --bind-to none \
        --mca plm rsh --mca plm_rsh_agent "$folder/agent" --mca pml ob1 --mca btl tcp,self --mca coll ^sm \
        --mca btl_tcp_if_include wire --mca oob_tcp_if_include wire --mca mpi_yield_when_idle 1 "$@"
}

steps_of() { case $1 in small) echo "${SMALL_STEPS:-16000}" ;; larger) echo "${LARGER_STEPS:-3200}" ;; esac; }
train() { # model, launcher, threads, folder
    local more=
    [ "$1" = small ] || more="--set encoder.hidden=1024 --set encoder.output=1024"
    rm -rf "$4"
    # shellcheck disable=SC2086
    $2 "$program" train --task change_detection $more --set rollout.shards=2 --evaluate 0 --quiet --seed 3 --threads "$3" \
        --steps "$(steps_of "$1")" --checkpoint-every 100000000 --out "$4" > "$folder/said" 2>&1 ||
        { cat "$folder/said" >&2; exit 1; }
}
number() { sed -n "s/.*\"$2\": \([0-9.]*\).*/\1/p" "$1/summary.json" | head -n 1; }

echo "link: $([ $netem = yes ] && echo "veth, netem" || echo "TUN devices and link.cpp; this kernel has no netem")"
rounds=${ROUNDS:-3} rates=${RATES:-1000 10000} delays=${DELAYS:-0 50 300 1000}
if [ "$what" != train ]; then
    printf '\nThe sum of a gradient alone over this link, %s:\n\n' "$([ -n "$tuned" ] && echo "TCP told not to begin anew after a pause" || echo "TCP as it is")"
    echo "| delay, us | Gbit/s | MB | by halves, us | from shards, us | MPI_Allreduce, us | copy, us | halves / Allreduce | halves / copy |"
    echo "|---|---|---|---|---|---|---|---|---|"
    for rate in $rates; do
        for delay in $delays; do
            connect "$delay" "$rate"
            # shellcheck disable=SC2086
            on_two_hosts "$bin/benchmark-processes_sum" ${SIZES:-0.2 1 10} | sed -n "s/^| 2 /| $delay | $((rate / 1000)) /p"
            disconnect
        done
    done
fi
[ "$what" != sum ] || exit 0
for model in small larger; do train $model "" 2 "$folder/alone-$model"; done
for round in $(seq "$rounds"); do
    for model in small larger; do
        train $model "" 1 "$folder/one"  # both shards, one core: twice what a host computes
        echo "alone $model $(number "$folder/one" updates) $(number "$folder/one" wall_seconds) $(number "$folder/one" parameters) $(number "$folder/one" cpu_seconds)" >> "$folder/figures"
    done
    for rate in $rates; do
        for delay in $delays; do
            connect "$delay" "$rate"
            for model in small larger; do
                before=$(carried)
                train $model on_two_hosts 1 "$folder/two"
                bytes=$(($(carried) - before))
                cmp "$folder/alone-$model/checkpoint/latest.safetensors" "$folder/two/checkpoint/latest.safetensors"
                updates=$(number "$folder/two" updates) parameters=$(number "$folder/two" parameters)
                # Each host sends at least one gradient an update: two halves of it.
                [ "$bytes" -ge $((updates * parameters * 4)) ] ||
                    { echo "run.sh: $bytes bytes went over the link, expected at least $((updates * parameters * 4))" >&2; exit 1; }
                echo "two $model $delay $rate $updates $(number "$folder/two" wall_seconds) $parameters $bytes" >> "$folder/figures"
            done
            disconnect
        done
    done
done
echo "every checkpoint of two hosts is that of one process"
python3 $here/model.py "$folder/figures"
