#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Wait for the disk $1. Load its driver if it is not built in.
if [ ! -b "/dev/$1" ]; then
    for module in /ka/modules/*.ko; do
        [ ! -e "$module" ] || insmod "$module"
    done
fi
tries=50
while [ ! -b "/dev/$1" ] && [ $tries -gt 0 ]; do
    sleep 0.1
    tries=$((tries - 1))
done
[ -b "/dev/$1" ]
