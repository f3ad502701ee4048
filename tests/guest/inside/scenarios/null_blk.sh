#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Scenario: a disk for measurements, made when the module is loaded; and another
# one by configfs.
# modules: null_blk
# shellcheck source=tests/guest/inside/scenarios/steps.sh
. /share/steps.sh
config=/sys/kernel/config

use() {
    dd if=/dev/urandom of=/dev/nullb0 bs=4k count=4 conv=fsync &&
        dd if=/dev/nullb0 of=/dev/null bs=4k count=8 &&
        mount -t configfs configfs $config &&
        mkdir $config/nullb/ka &&
        echo 1 >$config/nullb/ka/size &&
        echo 1 >$config/nullb/ka/power &&
        dd if=/dev/ka of=/dev/null bs=4k count=4
}

undo() {
    [ ! -d $config/nullb/ka ] || twice rmdir $config/nullb/ka
    [ ! -d $config/nullb ] || twice umount $config
}

load null_blk memory_backed=1 && use
finish $?
