#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_module_leaks.py: load and unload a module $1 times, with
# leaks and without. The last load frees a block that the first one leaked.
i=0
first=
while [ "$i" -lt "$1" ]; do
    case $((i % 5)) in
    0) plant=0x03 ;;
    1) plant=0 ;;
    2) plant=0x7f ;;
    3) plant=0 ;;
    4) plant=$((1 << (i / 5 % 7))) ;;
    esac
    insmod /share/ka_leaky.ko plant="$plant" || exit 1
    rmmod ka_leaky || exit 1
    [ -n "$first" ] || first=$(dmesg |
        sed -n 's/.*ka_leaky_init_site=\([0-9a-f]*\).*/0x\1/p' | head -n 1)
    i=$((i + 1))
done
# Load two modules at once. The first one that is unloaded leaks nothing.
insmod /share/ka_life.ko || exit 1
insmod /share/ka_leaky.ko plant=1 release="$first" || exit 1
rmmod ka_life || exit 1
rmmod ka_leaky || exit 1
grep '\[ka_leaky\]' /proc/kallsyms
exit 0
