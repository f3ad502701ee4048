#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_unloaded.py: a module whose objects are all lost after its
# unload. What waits for RCU is freed within some seconds.
insmod /share/ka_lost.ko || exit 1
rmmod ka_lost || exit 1
sleep 2
