#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_calls.py: probe the functions of /share/functions at entry
# and return, run files and processes $1 times, load and unload a module, then
# write the guest's own trace. $2...: the registers of arguments.
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
while read -r f; do
    if echo "p:ka/e_$f $f$args" >>$t/kprobe_events; then
        # A void function has no result.
        echo "r1000:ka/r_$f $f ret=\$retval:x64" >>$t/kprobe_events ||
            echo "r1000:ka/r_$f $f" >>$t/kprobe_events
    fi
done </share/functions 2>/dev/null
echo 1 >$t/events/ka/enable
echo 1 >$t/tracing_on
(
    sh /ka/procs.sh "$n"
    insmod /share/ka_life.ko
    rmmod ka_life
    cat /proc/self/maps /proc/meminfo /proc/slabinfo >/dev/null
)
echo 0 >$t/tracing_on
echo 0 >$t/events/ka/enable
mkdir -p /share/out
echo $$ >/share/out/pid
cat $t/trace >/share/out/trace
cat $t/kprobe_events >/share/out/events
cat $t/kprobe_profile >/share/out/profile
cat $t/per_cpu/cpu*/stats >/share/out/stats
echo >$t/kprobe_events
dev=$(sed -n 's/.*ka\.out=\([a-z0-9]*\).*/\1/p' /proc/cmdline)
tar -cf "/dev/$dev" -C / share/out && sync
