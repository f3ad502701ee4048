#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_access_silence.py: $1 rounds of files, processes, data over
# the loopback device, a bridge and virtio-net, and modules that are loaded,
# used and unloaded. QEMU is the other end of the network: 10.0.2.100 sends back
# what it gets on port 7777, and 10.0.2.2 has the file "data" for TFTP.
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

# Ping through a bridge from another network namespace.
over_a_bridge() {
    unshare -n sleep 1000 &
    other=$!
    sleep 0.2
    ip link add ka0 type veth || return
    peer=$(find /sys/class/net -name 'veth*')
    peer=${peer##*/}
    brctl addbr ka1 && brctl addif ka1 "$peer"
    ip link set ka0 netns $other
    nsenter -t $other -n ifconfig ka0 10.9.0.2 netmask 255.255.255.0 up
    ifconfig "$peer" up
    ifconfig ka1 10.9.0.1 netmask 255.255.255.0 up
    ping -c 3 -w 9 10.9.0.2 >/dev/null && echo 'access-silence: ping over veth'
    kill $other
    wait $other 2>/dev/null
    ifconfig ka1 down
    brctl delbr ka1
}

# Make, read and remove files below the folder $1.
use_files() {
    mkdir -p "$1/a/b" && cp /tmp/data "$1/a/b/data" || return
    i=0
    while [ $i -lt 40 ]; do
        echo "line $i" >"$1/a/a file with a long name $i"
        i=$((i + 1))
    done
    cmp /tmp/data "$1/a/b/data" && mv "$1/a/b" "$1/b" && ls -lR "$1" >/dev/null
    sync
    rm -r "$1/a" "$1/b"
}

# Use the folder /tmp/mnt, on which a file system of the type $1 is mounted.
on_mount() {
    use_files /tmp/mnt && echo "access-silence: files on $1"
    umount /tmp/mnt
}

# $1: type of file system; $2: command that makes one
on_a_disk() {
    dd if=/dev/zero of=/tmp/disk bs=1M count=8 2>/dev/null
    losetup /dev/loop0 /tmp/disk
    $2 /dev/loop0 >/dev/null
    mount -t "$1" /dev/loop0 /tmp/mnt && on_mount "$1"
    losetup -d /dev/loop0
    rm /tmp/disk
}

on_overlay() {
    mkdir -p /tmp/o/lower/a /tmp/o/upper /tmp/o/work
    echo lower >/tmp/o/lower/a/file
    mount -t overlay -o \
        lowerdir=/tmp/o/lower,upperdir=/tmp/o/upper,workdir=/tmp/o/work \
        overlay /tmp/mnt && on_mount overlay
    rm -r /tmp/o
}

on_file_systems() {
    mkdir -p /tmp/mnt
    on_a_disk ext4 mke2fs
    on_a_disk vfat mkdosfs
    on_overlay
}

load_all() {
    n=0
    for module in /share/modules/*.ko; do
        insmod "$module" && loaded="${module##*/???-} $loaded" && n=$((n + 1))
    done
    echo "access-silence: loaded $n"
}

# A module may be in use for a moment.
unload_all() {
    n=0
    for module in $loaded; do
        tries=50
        while ! rmmod "${module%.ko}" 2>/dev/null && [ $tries -gt 0 ]; do
            sleep 0.1
            tries=$((tries - 1))
        done
        [ $tries = 0 ] || n=$((n + 1))
    done
    loaded=
    echo "access-silence: unloaded $n"
}

cp /share/data /tmp/data
round=0
while [ $round -lt "$1" ]; do
    sh /ka/work.sh 1 || exit 1
    transfer
    load_all
    over_the_card
    over_a_bridge
    on_file_systems
    unload_all
    echo 3 >/proc/sys/vm/drop_caches
    round=$((round + 1))
done
