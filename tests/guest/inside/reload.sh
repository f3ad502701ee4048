#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_unloaded.py: three rounds, in which the last of
# /share/modules is loaded and unloaded $1 times; write the kernel's count of
# objects before, between and after them. The first loads fill what the kernel
# keeps. Some blocks are freed a while after the module is gone, others only
# when the kernel drops unused entries of file systems.
again() {
    rounds=$1
    while [ "$rounds" -gt 0 ]; do
        insmod "$last" && rmmod "$name" || exit 1
        rounds=$((rounds - 1))
    done
    sleep 2
    echo 2 > /proc/sys/vm/drop_caches
    sleep 2
}

for module in /share/modules/*.ko; do
    insmod "$module"
    last=$module
done
name=${last##*/*-}
name=${name%.ko}
rmmod "$name" || exit 1
again 4
for round in 0 1 2 3; do
    mkdir -p "/share/out/$round"
    [ "$round" = 0 ] || again "$1"
    /share/ka-slabs "/share/out/$round" || exit 1
done
