#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_free_pairs.py: give a block $2 to the function $1.
insmod /share/ka_pairs.ko free="$1" block="$2"
# kfree_rcu() processes its queue after a grace period.
sleep 1
