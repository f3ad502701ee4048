#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of the comparison with a debugger: print the address of kfree, then
# work with files and processes for longer than the measurement takes.
grep ' T kfree$' /proc/kallsyms | while read -r va _; do
    printf '\nKA-KFREE %s\n' "$va"
done
sh /ka/work.sh "$1"
