#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Scenario: a compressed disk in memory, and one that is added and removed.
# modules: zram
# sweep: zram zsmalloc
# shellcheck source=tests/guest/inside/scenarios/steps.sh
. /share/steps.sh

use() {
    echo 1M >/sys/block/zram0/disksize &&
        dd if=/dev/urandom of=/dev/zram0 bs=4k count=4 conv=fsync &&
        dd if=/dev/zero of=/dev/zram0 bs=4k count=4 seek=8 conv=fsync &&
        dd if=/dev/zram0 of=/dev/null bs=4k count=16 &&
        added=$(cat /sys/class/zram-control/hot_add)
}

undo() {
    [ -z "$added" ] || echo "$added" >/sys/class/zram-control/hot_remove
    [ ! -d /sys/block/zram0 ] || echo 1 >/sys/block/zram0/reset
}

added=
load zram num_devices=1 && use
finish $?
