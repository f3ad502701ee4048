#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Scenario: a disk in memory; a second one is made when it is opened.
# modules: brd
# shellcheck source=tests/guest/inside/scenarios/steps.sh
. /share/steps.sh

use() {
    dd if=/dev/urandom of=/dev/ram0 bs=4k count=8 conv=fsync &&
        dd if=/dev/ram0 of=/dev/null bs=4k count=16 &&
        blockdev --rereadpt /dev/ram0 &&
        mknod /tmp/ram1 b 1 1 &&
        dd if=/dev/zero of=/tmp/ram1 bs=4k count=2 conv=fsync
}

undo() {
    rm -f /tmp/ram1
}

load brd rd_nr=1 rd_size=1024 && use
finish $?
