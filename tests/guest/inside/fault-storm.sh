#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_fault_storm.py: N calls of a thread on each CPU, some of
# which fail; then files and processes, where none does.
insmod /share/kf_storm.ko calls="$1" && rmmod kf_storm &&
    sh /ka/work.sh 1
