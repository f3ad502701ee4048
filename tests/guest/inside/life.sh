#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_modules.py: load and unload a module $1 times. The BPF
# program is loaded later: it may get the addresses of the module.
i=0
while [ "$i" -lt "$1" ]; do
    insmod /share/ka_life.ko || exit 1
    rmmod ka_life || exit 1
    i=$((i + 1))
done
