#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_leaks.py: objects that are referred to in each possible way,
# and leaks. Objects that wait for RCU are freed within some seconds.
insmod /share/ka_leaks.ko objects="$1" || exit 1
sleep 2
