#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_interrupts.py: begin $1 kernel threads, and half as many
# processes, while timer interrupts allocate.
insmod /share/ka_ticks.ko || exit 1
echo "$1" >/sys/module/ka_ticks/parameters/threads || exit 1
i=0
while [ "$i" -lt "$1" ]; do
    (:) || exit 1
    i=$((i + 2))
done
rmmod ka_ticks
