#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_identity.py: leaks, an access to freed memory, and an error
# in a call, in this order: the kernel may not survive the last one.
hexdump -v -e '16/1 "%02x" "\n"' /sys/kernel/notes | while read -r line; do
    echo "KA-NOTES $line"
done
insmod /share/ka_leaky.ko plant=3
rmmod ka_leaky
insmod /share/ka_access.ko
echo uaf_load >/sys/module/ka_access/parameters/run
insmod /share/ka_errors.ko kind=double-free
