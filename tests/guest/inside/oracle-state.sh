#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of the state oracle: files and processes. Then write the
# kernel's own counts to /share/out.
sh /ka/work.sh "$1"
mkdir -p /share/out
/share/ka-out /share/out /proc/kallsyms /sys/kernel/btf/vmlinux || exit 1
/share/ka-slabs /share/out
