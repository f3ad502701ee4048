#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_unloaded.py: load and unload a module whose objects are all
# lost then; load the kernel's own modules, use some a little, and unload them.
# What waits for RCU is freed within some seconds.
insmod /share/ka_lost.ko || exit 1
rmmod ka_lost || exit 1
for module in /share/modules/*.ko; do
    insmod "$module"
done
ip link add ka0 type dummy && ip link set ka0 up
ip link add link ka0 name ka1 type vlan id 5
ip link add ka2 type bridge && ip link set ka0 master ka2
ip link add ka3 type veth
[ ! -e /sys/block/zram0 ] || echo 1M > /sys/block/zram0/disksize
[ ! -b /dev/nullb0 ] || dd if=/dev/nullb0 of=/dev/null bs=4k count=4
mount -t xfs /dev/nullb0 /mnt
for link in ka3 ka2 ka1 ka0; do
    ip link del "$link"
done
# A module may be in use by one that comes later.
rounds=6
while [ "$rounds" -gt 0 ]; do
    for module in /share/modules/*.ko; do
        name=${module##*/[0-9][0-9]-}
        rmmod "${name%.ko}" 2>/dev/null
    done
    rounds=$((rounds - 1))
done
sleep 2
