#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload: files and processes, if the kernel has more memory than the 4 GiB
# that the firmware lists.
# shellcheck disable=SC2034
read -r name total unit </proc/meminfo
[ "$total" -gt $((4 << 20)) ] || exit 1
sh /ka/work.sh "$1"
