#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_calls.py: probe the functions of /share/functions at entry
# and return, run files and processes $1 times, load and unload a module, then
# write the guest's own trace. $2...: the registers of arguments.
#
# A kernel without KPROBES_ON_FTRACE (riscv64) allows no probe at an entry that
# ftrace can patch. There the second of the instructions that ftrace patches,
# all of them nops, is probed instead, and the addresses that the calls return
# to, which a first run of the workload finds. ka-perf reads these probes.
if [ "$1" = run ]; then
    sh /ka/procs.sh "$2"
    insmod /share/ka_life.ko
    rmmod ka_life
    cat /proc/self/maps /proc/meminfo /proc/slabinfo >/dev/null
    exit
fi
n=$1
shift
t=/sys/kernel/tracing
args='' i=0
for reg in "$@"; do
    args="$args a$i=%$reg:x64"
    i=$((i + 1))
done
echo 0 >$t/tracing_on
echo mono >$t/trace_clock
echo 60000 >$t/buffer_size_kb
probe() {
    echo "$1" >>$t/kprobe_events
} 2>/dev/null
returns=functions
while read -r f; do
    if probe "p:ka/e_$f $f$args"; then
        # A void function has no result.
        probe "r1000:ka/r_$f $f ret=\$retval:x64" ||
            probe "r1000:ka/r_$f $f"
    elif probe "p:ka/e_$f $f+4$args ra=%ra:x64 sp=%sp:x64"; then
        returns=addresses
    fi
done </share/functions
mkdir -p /share/out
if [ $returns = addresses ]; then
    /share/ka-perf $t/events/ka sh "$0" run "$n" >/tmp/trace
    sed -n 's/.* ra=0x\([0-9a-f]*\) .*/\1/p' /tmp/trace | sort -u |
        while read -r a; do
            probe "p:ka/r_$a 0x$a ret=%a0:x64 sp=%sp:x64"
        done
    sh -c 'echo $$ >/share/out/perf; exec /share/ka-perf "$@"' sh \
        $t/events/ka sh "$0" run "$n" >/tmp/trace
else
    echo 1 >$t/events/ka/enable
    echo 1 >$t/tracing_on
    sh "$0" run "$n"
    echo 0 >$t/tracing_on
    echo 0 >$t/events/ka/enable
    cat $t/trace >/tmp/trace
fi
echo $$ >/share/out/pid
mv /tmp/trace /share/out/trace
cat $t/kprobe_events >/share/out/events
cat $t/kprobe_profile >/share/out/profile
cat $t/per_cpu/cpu*/stats >/share/out/stats
echo >$t/kprobe_events
dev=$(sed -n 's/.*ka\.out=\([a-z0-9]*\).*/\1/p' /proc/cmdline)
tar -cf "/dev/$dev" -C / share/out && sync
