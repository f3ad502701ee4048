#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Scenario of scripts/fault-sweep: load ka_planted, do the operations that the
# file /share/operations names, and unload it.

# insmod would try again with another system call.
/share/ka-load /share/ka_planted.ko || exit
status=0
mknod /tmp/planted c "$(sed -n 's/ ka_planted$//p' /proc/devices)" 0
while read -r operation; do
    # In a process of its own, which an oops kills.
    (echo "$operation" >/tmp/planted) || status=1
done </share/operations
rmmod ka_planted || status=1
# Whoever has forgotten a notifier is called now.
ifconfig lo up || status=1
exit $status
