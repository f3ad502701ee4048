#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_quarantine.py: $1 rounds of files and processes; then, as
# far as the kernel has it, each slab is validated.
round=0
while [ $round -lt "$1" ]; do
    sh /ka/work.sh 1 || exit 1
    round=$((round + 1))
done
for validate in /sys/kernel/slab/*/validate; do
    [ ! -e "$validate" ] || echo 1 >"$validate" 2>/dev/null
done
echo KA-SLABINFO
grep -v '^#' /proc/slabinfo
echo KA-SLABINFO-END
