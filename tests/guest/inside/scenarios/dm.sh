#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Scenario: a device of device mapper, above a disk in memory.
# modules: brd dm_mod
# shellcheck source=tests/guest/inside/scenarios/steps.sh
. /share/steps.sh

use() {
    /share/ka-use dm ka_linear linear '/dev/ram0 0' &&
        wait_for /dev/dm-0 &&
        dd if=/dev/urandom of=/dev/dm-0 bs=4k count=4 conv=fsync &&
        dd if=/dev/dm-0 of=/dev/null bs=4k count=8 &&
        cat /sys/block/dm-0/dm/name
}

undo() {
    twice /share/ka-use dm-remove ka_linear
}

load brd rd_nr=1 rd_size=4096 && load dm_mod && use
finish $?
