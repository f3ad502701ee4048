#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_faults.py: N calls, some of which fail.
insmod /share/kf_calls.ko && echo "kmalloc 320 0 $1" >/proc/kf_calls
