#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of the benchmark: $1 rounds of data that is read from the page cache,
# written to it, and sent over the loopback device.
set -e

ifconfig lo 127.0.0.1 up
dd if=/dev/urandom of=/tmp/data bs=64k count=64 2>/dev/null
# The client's input must not end: it would hang up.
mkfifo /tmp/open
exec 3<>/tmp/open

send() {
    nc -l -p 7777 </tmp/data >/dev/null 2>&1 &
    server=$!
    sleep 0.1
    nc 127.0.0.1 7777 <&3 >/tmp/got
    wait $server
    cmp /tmp/data /tmp/got
}

round=0
while [ $round -lt "$1" ]; do
    cat /tmp/data /tmp/data /tmp/data /tmp/data >/dev/null
    dd if=/tmp/data of=/tmp/copy bs=512 2>/dev/null
    cp /tmp/data /tmp/copy2
    send
    rm -f /tmp/copy /tmp/copy2 /tmp/got
    round=$((round + 1))
done
