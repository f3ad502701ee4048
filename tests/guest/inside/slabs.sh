#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_slabs.py: files and processes. Then the kernel's own numbers
# to /share/out, after the reader stood still for $1 seconds. A kernel without
# /sys/kernel/slab only stands still.
sh /ka/work.sh 1
# Objects that wait for kfree_rcu() are freed within 5 seconds
# (KFREE_DRAIN_JIFFIES in the kernel's sources).
sleep 6
mkdir -p /share/out
if [ -d /sys/kernel/slab ]; then
    /share/ka-slabs /share/out "$1"
else
    sleep 1
    echo KA-STILL
    sleep "$1"
fi
