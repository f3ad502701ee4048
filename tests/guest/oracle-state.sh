#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of the state oracle: files and processes, then what the kernel
# counts itself goes to /share/out. /proc/slabinfo is read by a process of its
# own name: its events in the journal tell when that was.
sh /ka/work.sh "$1"
mkdir -p /share/out
ln -s ka-out /share/ka-slabinfo
/share/ka-slabinfo /share/out /proc/slabinfo || exit 1
/share/ka-out /share/out /sys/kernel/slab/*/cpu_slabs || exit 1
/share/ka-out /share/out /proc/kallsyms /sys/kernel/btf/vmlinux || exit 1
