#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_rules.py: each rule once, by the module.
insmod /share/ka_rules.ko || exit 1
grep '\[ka_rules\]' /proc/kallsyms
# What kfree_rcu queued is worked off within five seconds (KFREE_DRAIN_JIFFIES).
sleep 7
