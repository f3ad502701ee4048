#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_scribble.py: modules, BPF programs, files and processes,
# until the VM is ended.
for what in enable kallsyms; do
    echo 1 >/proc/sys/net/core/bpf_jit_$what
done
while true; do
    insmod /share/ka_life.ko && rmmod ka_life
    /share/ka-bpf >/dev/null 2>&1
    sh /ka/work.sh 1 >/dev/null 2>&1
    echo KA-ROUND
done
