#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload: the module ka_storm of the host's share; N pairs of kmalloc and
# kfree for each of its sizes, all of them while it is inserted.
insmod /share/ka_storm.ko pairs="$1" && rmmod ka_storm
