#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_changes.py: change the machine's memory map $1 times, by
# switching the memory decoding of a PCI device on and off, while timers expire
# on all vCPUs. Then print twice how often the timers expired.
for i in 1 2 3 4 5 6; do
    while :; do sleep 0.001; done &
done
for device in /sys/bus/pci/devices/*; do
    [ "$(cat "$device/class")" = 0x010601 ] && break    # AHCI
done
command_byte() { dd of="$device/config" bs=1 seek=4 conv=notrunc 2>/dev/null; }
i=0
while [ "$i" -lt "$1" ]; do
    printf '\001' | command_byte || exit 1   # I/O
    printf '\003' | command_byte || exit 1   # I/O and memory
    i=$((i + 1))
done
grep LOC: /proc/interrupts
sleep 3
grep LOC: /proc/interrupts
kill %1 %2 %3 %4 %5 %6
