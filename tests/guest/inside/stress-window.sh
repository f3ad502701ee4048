#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Used by test_stress.py, in the guest's shell:
#   stress-window.sh load PACE LOW_MB   load the module, set up the trace
#   stress-window.sh begin N KB         rest; trace from mark N on; continue
#   stress-window.sh end N              rest; mark N; trace to the disk
#   stress-window.sh rest
# Each prints the live blocks, and at its end "ok".
t=/sys/kernel/tracing
p=/sys/module/ka_stress/parameters
set -e

# Write /share/out to the disk that the kernel command line names; if it names
# none, to the disk whose driver is in /share/modules.
send() {
    disk=$(sed -n 's/.*ka\.out=\([a-z0-9]*\).*/\1/p' /proc/cmdline)
    disk=${disk:-vda}
    sh /ka/disk.sh "$disk"
    tar -C /share/out -cf "/dev/$disk" .
    sync
    rm -r /share/out
}

mkdir -p /share/out
case $1 in
load)
    for module in /share/modules/*.ko; do
        [ ! -e "$module" ] || insmod "$module"
    done
    insmod /share/ka_stress.ko pace="$2" low_mb="$3"
    echo 0 >$t/tracing_on
    echo counter >$t/trace_clock
    for event in kmalloc kfree kmem_cache_alloc kmem_cache_free \
        kmalloc_node kmem_cache_alloc_node; do
        [ ! -d $t/events/kmem/$event ] || echo 1 >$t/events/kmem/$event/enable
    done
    /share/ka-out /share/out /proc/kallsyms
    send
    ;;
begin)
    echo 0 >$p/run
    echo "$3" >$t/buffer_size_kb
    echo >$t/trace
    echo 1 >$t/tracing_on
    echo "$2" >$p/mark
    echo 1 >$p/run
    ;;
end)
    echo 0 >$p/run
    echo "$2" >$p/mark
    echo 0 >$t/tracing_on
    for cpu in "$t"/per_cpu/cpu*; do
        /share/ka-out /share/out "$cpu/stats"
        grep -q '^entries: 0' "$cpu/stats" ||
            /share/ka-out /share/out "$cpu/trace_pipe_raw"
    done
    /share/ka-out /share/out "$t"/events/kmem/*/format \
        "$t/events/header_page" "$t/events/ftrace/kernel_stack/format" \
        /proc/kallsyms
    send
    ;;
rest)
    echo 0 >$p/run
    ;;
esac
cat $p/live
echo ok
