#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload: N rounds of trees of files in a tmpfs, made, written, read, moved
# and removed; symbolic links; a mount; names and contents are the same in
# each run.
n=${1:-1}
base=/tmp/files

one_tree() {
    mkdir -p "$1/a/b/c" "$1/d"
    i=0
    while [ $i -lt 24 ]; do
        echo "line $i of a file" >"$1/a/f$i"
        echo "more" >>"$1/a/f$i"
        i=$((i + 1))
    done
    ln -s ../a/f0 "$1/d/link"
    cat "$1"/a/f* >"$1/a/b/all"
    cp "$1/a/b/all" "$1/a/b/c/copy"
    mv "$1/a/b/c/copy" "$1/d/moved"
    dd if=/dev/zero of="$1/d/zero" bs=4k count=16 2>/dev/null
    ls -lR "$1" >/dev/null
    grep -r more "$1" >/dev/null
    rm -rf "$1"
}

round() {
    mkdir -p $base/mnt
    mount -t tmpfs tmpfs $base/mnt
    one_tree $base/mnt/tree
    umount $base/mnt
    one_tree $base/tree
    cat /proc/meminfo /proc/slabinfo /proc/self/maps >/dev/null
    find /sys/devices/virtual -name uevent >/dev/null
}

r=0
while [ $r -lt "$n" ]; do
    round
    r=$((r + 1))
done
rm -rf $base
