#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_recording.py: read the first disk, make a file system on it
# and use it; get numbers from the network that nobody knows before.
for module in /share/modules/*.ko; do
    insmod "$module"
done

find_disk() {
    for name in vda sda; do
        [ ! -b /dev/$name ] || echo /dev/$name
    done
}

find_card() {
    for at in /sys/class/net/*; do
        [ ! -e "$at/device" ] || echo "${at##*/}"
    done
}

checksum() {
    sha256sum <"$1" | cut -d ' ' -f 1
}

on_disk() {
    echo "recorded: disk $(checksum "$1")"
    mke2fs -F "$1" >/dev/null
    mkdir -p /tmp/disk
    mount -t ext4 "$1" /tmp/disk || return
    cp -r /bin/busybox /ka /tmp/disk
    sync
    rm /tmp/disk/ka/files.sh
    umount /tmp/disk
    echo "recorded: written $(checksum "$1")"
}

# 10.0.2.100 sends a random number to each client.
on_network() {
    ifconfig "$1" 10.0.2.15 netmask 255.255.255.0 up
    ping -c 2 -w 4 10.0.2.2
    i=0
    while [ $i -lt 3 ]; do
        echo "recorded: number $(nc -w 5 10.0.2.100 7777 </dev/null)"
        i=$((i + 1))
    done
    ifconfig "$1" down
}

disk=$(find_disk)
[ -z "$disk" ] || on_disk "$disk" || exit 1
card=$(find_card)
[ -z "$card" ] || on_network "$card"
sh /ka/files.sh "$1"
