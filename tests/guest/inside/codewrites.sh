#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_changes.py: switch a static key on and off $1 times. This
# changes the scheduler's code on all vCPUs, while one of them wakes up all the
# time and another one executes programs.
key=/proc/sys/kernel/sched_schedstats
while :; do sleep 0.001; done &
while :; do cat /proc/self/stat > /dev/null; done &
i=0
while [ "$i" -lt "$1" ]; do
    echo 1 > $key && echo 0 > $key || exit 1
    i=$((i + 1))
done
kill %1 %2
