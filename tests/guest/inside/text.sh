#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_text_unchanged.py, which reads the kernel's text afterwards.
sh /ka/work.sh 1
grep -E ' (_stext|_etext)$' /proc/kallsyms
