#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Scenario of scripts/fault-sweep whose calls are no allocations: it loads a
# module that registers a device, writes to the device, and mounts.

use() {
    echo text >/dev/ka_chardev &&
        mkdir -p /tmp/mnt &&
        mount -t tmpfs none /tmp/mnt &&
        umount /tmp/mnt
}

# insmod would try again with another system call.
/share/ka-load /share/ka_chardev.ko || exit
use
status=$?
rmmod ka_chardev
exit $status
