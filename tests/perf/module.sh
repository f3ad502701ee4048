#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload N:K of the metric access.one_module: that of sums.sh, with the module
# ka_life loaded.
insmod /share/ka_life.ko || exit 1
sh /ka/sums.sh "$1"
