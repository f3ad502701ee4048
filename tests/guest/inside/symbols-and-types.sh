#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_slabs.py: files and processes. Then write what drgn needs to
# know of the kernel to /share/out.
sh /ka/work.sh "$1"
mkdir -p /share/out
/share/ka-out /share/out /proc/kallsyms /sys/kernel/btf/vmlinux
