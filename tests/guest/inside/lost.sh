#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_unloaded.py: load and unload modules whose objects are all
# lost then, and one that leaves a cache; load the kernel's own modules, use
# them a little by the functions of /share/uses.sh, and unload them. What waits
# for RCU is freed within some seconds.

# A device whose queue is of this kind.
queue() {
    was=$(cat /proc/sys/net/core/default_qdisc)
    echo "$1" > /proc/sys/net/core/default_qdisc || return
    ip link add kaq type ifb && ip link set kaq up && ip link del kaq
    result=$?
    echo "$was" > /proc/sys/net/core/default_qdisc
    return $result
}

# shellcheck source=/dev/null
. /share/uses.sh
cp /share/ka-use /bin
cd /tmp && mkdir ram0 vfat over pipes nfsd binfmt config
ip link set lo up
insmod /share/ka_lost.ko || exit 1
rmmod ka_lost || exit 1
insmod /share/ka_cache.ko keep=1 && rmmod ka_cache || exit 1
if [ -e /share/kmemleak-test.ko ]; then
    insmod /share/kmemleak-test.ko && rmmod kmemleak_test || exit 1
fi
# Some need hardware that is not there.
last_first=''
for module in /share/modules/*.ko; do
    insmod "$module"
    last_first="$module $last_first"
done
use > /tmp/log 2>&1
undo >> /tmp/log 2>&1
cat /tmp/log
# A module may be in use by one that came later, or for a moment.
rounds=4
while [ "$rounds" -gt 0 ]; do
    for module in $last_first; do
        name=${module##*/*-}
        rmmod "${name%.ko}" 2>/dev/null
    done
    rounds=$((rounds - 1))
done
sleep 2
