#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_rules.py: each rule once, by the module.
insmod /share/ka_rules.ko || exit 1
grep '\[ka_rules\]' /proc/kallsyms
grep '^kmalloc-[0-9]' /proc/slabinfo
# Blocks of kfree_rcu() may wait in a sheaf (since 6.18) until the sheaf is full
# or flushed.
for cache in /sys/kernel/slab/kmalloc-*; do
    echo 1 >"$cache/shrink"
done
# Other blocks in its queue are freed within five seconds (KFREE_DRAIN_JIFFIES).
sleep 7
