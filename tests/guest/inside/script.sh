#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_script.py: load and unload two modules $1 times. One leaves
# blocks behind that its init code allocated.
i=0
while [ "$i" -lt "$1" ]; do
    insmod /share/ka_leaky.ko plant=0x03 || exit 1
    insmod /share/ka_life.ko || exit 1
    rmmod ka_leaky || exit 1
    rmmod ka_life || exit 1
    i=$((i + 1))
done
exit 0
