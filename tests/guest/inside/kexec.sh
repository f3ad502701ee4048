#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_kexec.py: start the same kernel again, without a reset.
sh /ka/files.sh 1
exec /share/ka-kexec /share/vmlinuz /share/initrd \
    "$(sed 's/ka.run=[^ ]*/ka.run=files/' /proc/cmdline) ka.second=1"
