#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Scenario: a file as a disk, which then grows; and a second disk that is asked
# for.
# modules: loop
# shellcheck source=tests/guest/inside/scenarios/steps.sh
. /share/steps.sh

use() {
    dd if=/dev/zero of=/tmp/disk bs=64k count=4 &&
        losetup -o 4096 /dev/loop0 /tmp/disk &&
        dd if=/dev/urandom of=/dev/loop0 bs=4k count=4 conv=fsync &&
        dd if=/dev/loop0 of=/dev/null bs=4k count=8 &&
        dd if=/dev/zero of=/tmp/disk bs=64k count=1 seek=4 conv=notrunc &&
        losetup -c /dev/loop0 &&
        losetup -f &&
        losetup -a
}

undo() {
    twice losetup -d /dev/loop0
    rm -f /tmp/disk
}

load loop max_loop=1 && use
finish $?
