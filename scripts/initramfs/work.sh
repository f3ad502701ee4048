#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload: files and processes, N rounds each.
sh /ka/files.sh "$1" && sh /ka/procs.sh "$1"
