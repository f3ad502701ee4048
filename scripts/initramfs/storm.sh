#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload: insert the module ka_storm of the share. Its init function makes N
# pairs of kmalloc and kfree for each of its sizes.
insmod /share/ka_storm.ko pairs="$1" && rmmod ka_storm
