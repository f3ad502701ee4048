#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_access_silence.py: $1 rounds of files, processes, data over
# the loopback device, and modules that are loaded and unloaded.
ifconfig lo 127.0.0.1 up

# Serve a file of 256 KiB to one client.
transfer() {
    nc -l -p 7777 -w 5 </tmp/data >/dev/null 2>&1 &
    server=$!
    sleep 0.2
    nc -w 5 127.0.0.1 7777 </dev/null >/tmp/got 2>/dev/null
    kill $server 2>/dev/null
    wait $server 2>/dev/null
    rm -f /tmp/got
}

load_all() {
    for module in /share/modules/*.ko; do
        insmod "$module" && loaded="${module##*/*-} $loaded"
    done
    for module in $loaded; do
        rmmod "${module%.ko}"
    done
    loaded=
}

dd if=/dev/urandom of=/tmp/data bs=4k count=64 2>/dev/null
round=0
while [ $round -lt "$1" ]; do
    sh /ka/work.sh 1 || exit 1
    transfer
    load_all
    echo 3 >/proc/sys/vm/drop_caches
    round=$((round + 1))
done
