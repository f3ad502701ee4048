#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_changes.py: switch the function tracer on and off for the
# allocators, $1 times. This changes their first instructions, while all vCPUs
# allocate and free.
trace=/sys/kernel/tracing
[ -e $trace/current_tracer ] || mount -t tracefs tracefs $trace || exit 1
for f in kfree __kmalloc kmem_cache_alloc kmem_cache_free; do
    echo $f >> $trace/set_ftrace_filter || exit 1
done
for i in 1 2 3 4; do
    while :; do cat /proc/self/stat /proc/self/maps > /dev/null; done &
done
i=0
while [ "$i" -lt "$1" ]; do
    echo function > $trace/current_tracer || exit 1
    echo nop > $trace/current_tracer || exit 1
    i=$((i + 1))
done
kill %1 %2 %3 %4
