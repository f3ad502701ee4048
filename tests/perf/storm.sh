#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of the benchmark: $1 pairs of kmalloc and kfree of each size.
insmod /share/ka_storm.ko pairs="$1" && rmmod ka_storm
