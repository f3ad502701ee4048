#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_access.py: the cases of the module ka_access that the file
# "cases" of the share lists, all if it lists none.
insmod /share/ka_access.ko || exit 1
insmod /share/ka_access_gone.ko && rmmod ka_access_gone
grep '\[ka_access' /proc/kallsyms
# Of tmpfs: its inode has the text of a short link.
ln -s text /dev/ka_link
read -r cases </share/cases
for name in ${cases:-all}; do
    echo "$name" >/sys/module/ka_access/parameters/run
done
# What waits for RCU is freed.
sleep 1
