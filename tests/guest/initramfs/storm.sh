#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload: a module from the host's share, /share/storm.ko, does it all while
# it is inserted; N is its parameter n.
insmod /share/storm.ko n="$1" && rmmod storm
