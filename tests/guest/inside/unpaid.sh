#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_pages.py: a module in a memory cgroup of 4 MiB.
group=/tmp/cgroup
mkdir $group && mount -t cgroup2 none $group &&
    echo +memory >$group/cgroup.subtree_control &&
    mkdir $group/small && echo 4M >$group/small/memory.max &&
    echo 0 >$group/small/cgroup.procs &&
    insmod /share/ka_unpaid.ko
