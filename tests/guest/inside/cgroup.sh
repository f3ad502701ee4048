#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload: files and processes in a control group whose limit of memory is so
# small that its pages are reclaimed, and that a large file ends its writer.
group=/tmp/cgroup
mkdir -p $group
mount -t cgroup2 none $group || exit 1
echo +memory +pids >$group/cgroup.subtree_control || exit 1
mkdir $group/small
echo 24M >$group/small/memory.max
(
    # shellcheck disable=SC3028 # busybox sets it
    echo 0 >$group/small/cgroup.procs
    sh /ka/work.sh "$1"
)
(
    echo 0 >$group/small/cgroup.procs
    dd if=/dev/zero of=/tmp/large bs=1M count=64 2>/dev/null
)
rm -f /tmp/large
grep -q '^oom_kill [1-9]' $group/small/memory.events || exit 1
rmdir $group/small
umount $group
