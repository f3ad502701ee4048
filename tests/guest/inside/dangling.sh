#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_goto.py: a module that uses a stale pointer, among others who
# allocate.
sh /ka/files.sh "$1"
insmod /share/ka_dangling.ko || exit 1
sh /ka/files.sh "$1"
