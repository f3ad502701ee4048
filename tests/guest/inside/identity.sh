#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_identity.py: leaks, an access to freed memory, and an error
# in a call, in this order: the kernel may not survive the last one.
insmod /share/ka_leaky.ko plant=3
rmmod ka_leaky
insmod /share/ka_access.ko
echo uaf_load >/sys/module/ka_access/parameters/run
insmod /share/ka_errors.ko kind=double-free
