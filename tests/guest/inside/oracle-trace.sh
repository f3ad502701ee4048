#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of the event and the stack oracle: files and processes, or what
# /share/load.sh does. Then write the guest's own trace of its allocators to
# /share/out.
t=/sys/kernel/tracing
load=/share/load.sh
[ -e $load ] || load=/ka/work.sh
sh $load "$1" || exit 1
echo 0 >$t/tracing_on
mkdir -p /share/out
for cpu in "$t"/per_cpu/cpu*; do
    /share/ka-out /share/out "$cpu/stats" || exit 1
    # A CPU that never started has no buffer to read.
    grep -q '^entries: 0' "$cpu/stats" ||
        /share/ka-out /share/out "$cpu/trace_pipe_raw" || exit 1
done
symbols=/proc/kallsyms
[ -e $symbols ] || symbols=
/share/ka-out /share/out "$t"/events/kmem/*/format "$t/events/header_page" \
    "$t"/events/initcall/*/format "$t/events/ftrace/kernel_stack/format" \
    $symbols
