#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_derefs.py.
#
#   derefs.sh types    store the kernel's types
#   derefs.sh run N    make the probes of /share/events, one a line, run the
#                      workload of calls.sh N times, store the guest's own trace
#
# With a file /share/perf ka-perf reads the probes, see calls.sh.
store() {
    dev=$(sed -n 's/.*ka\.out=\([a-z0-9]*\).*/\1/p' /proc/cmdline)
    tar -cf "/dev/$dev" -C / share/out && sync
}
mkdir -p /share/out
if [ "$1" = types ]; then
    cat /sys/kernel/btf/vmlinux >/share/out/btf
    store
    rm /share/out/btf
    exit
fi
t=/sys/kernel/tracing
echo 0 >$t/tracing_on
echo mono >$t/trace_clock
echo 60000 >$t/buffer_size_kb
while read -r event; do
    echo "$event" >>$t/kprobe_events || echo "$event" >>/share/out/refused
done </share/events
if [ -e /share/perf ]; then
    sh -c 'echo $$ >/share/out/perf; exec /share/ka-perf "$@"' sh \
        $t/events/ka sh /share/calls.sh run "$2" >/tmp/trace
else
    echo 1 >$t/events/ka/enable
    echo 1 >$t/tracing_on
    sh /share/calls.sh run "$2"
    echo 0 >$t/tracing_on
    echo 0 >$t/events/ka/enable
    cat $t/trace >/tmp/trace
fi
echo $$ >/share/out/pid
mv /tmp/trace /share/out/trace
cat $t/kprobe_profile >/share/out/profile
echo >$t/kprobe_events
store
