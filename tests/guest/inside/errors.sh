#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_errors.py: commit the heap error $1, then run the usual work,
# unless $2 is "brief".
insmod /share/ka_errors.ko kind="$1"
grep '\[ka_errors\]' /proc/kallsyms
# kfree_rcu() processes its queue after a grace period.
sleep 1
[ "$2" = brief ] || sh /ka/work.sh 1
