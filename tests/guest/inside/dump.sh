#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_dump.py: make the kernel report its vmcoreinfo to QEMU, then
# write what the test needs to know of its layout to /share/out.
insmod /share/qemu_fw_cfg.ko || exit 1
sh /ka/work.sh "$1"
mkdir -p /share/out
/share/ka-out /share/out /proc/kallsyms /sys/kernel/btf/vmlinux
