#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_learned.py: processes, files and threads.
sh /ka/work.sh "$1"
/share/ka-threads 20
