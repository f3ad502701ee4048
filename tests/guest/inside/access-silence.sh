#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_access_silence.py: $1 rounds of files, processes, data over
# the loopback device and over virtio-net, and modules that are loaded and
# unloaded. QEMU is the other end of the network: 10.0.2.100 sends back what it
# gets on port 7777, and 10.0.2.2 has the file "data" for TFTP.
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

# Print the name of the network interface that virtio-net made.
find_card() {
    for at in /sys/class/net/*; do
        case $(readlink "$at/device/driver") in
        */virtio_net) echo "${at##*/}" ;;
        esac
    done
}

over_the_card() {
    card=$(find_card)
    if [ -z "$card" ]; then
        echo 'access-silence: no card'
        return
    fi
    ifconfig "$card" 10.0.2.15 netmask 255.255.255.0 up
    ping -c 2 -w 4 10.0.2.2 >/dev/null
    tftp -g -r data -l /tmp/fetched 10.0.2.2 2>/dev/null
    cmp /tmp/fetched /tmp/data && echo 'access-silence: fetched'
    nc -w 2 10.0.2.100 7777 </tmp/data >/tmp/echoed 2>/dev/null
    echo "access-silence: echoed $(wc -c </tmp/echoed)"
    rm -f /tmp/fetched /tmp/echoed
    cat /proc/net/dev /proc/net/arp >/dev/null
    ifconfig "$card" down
}

load_all() {
    for module in /share/modules/*.ko; do
        insmod "$module" && loaded="${module##*/*-} $loaded"
    done
}

unload_all() {
    for module in $loaded; do
        rmmod "${module%.ko}"
    done
    loaded=
}

cp /share/data /tmp/data
round=0
while [ $round -lt "$1" ]; do
    sh /ka/work.sh 1 || exit 1
    transfer
    load_all
    over_the_card
    unload_all
    echo 3 >/proc/sys/vm/drop_caches
    round=$((round + 1))
done
