#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Scenario: a file system with a journal, on a disk in memory.
# modules: crc32c_generic brd ext4
# sweep: ext4 jbd2 mbcache
# kernel: 6.12-rt
# files: ext4.img
# shellcheck source=tests/guest/inside/scenarios/steps.sh
. /share/steps.sh

use() {
    mkdir -p /tmp/mnt &&
        cat /share/ext4.img >/dev/ram0 &&
        mount -t ext4 /dev/ram0 /tmp/mnt &&
        mkdir /tmp/mnt/folder &&
        dd if=/dev/zero of=/tmp/mnt/folder/file bs=4k count=8 &&
        ln -s file /tmp/mnt/folder/link &&
        mv /tmp/mnt/folder/file /tmp/mnt/file &&
        ls -lR /tmp/mnt &&
        sync &&
        rm -r /tmp/mnt/folder
}

undo() {
    twice umount /tmp/mnt
}

load brd rd_nr=1 rd_size=4096 && load ext4 && use
finish $?
