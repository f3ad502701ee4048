#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload: N rounds of short processes: forks and execs, serial and parallel,
# pipes, sockets on the loopback device, signals, process listings.
n=${1:-1}

ifconfig lo 127.0.0.1 up

in_a_row() {
    i=0
    while [ $i -lt 16 ]; do
        /bin/busybox true
        (:)
        i=$((i + 1))
    done
}

at_once() {
    i=0
    while [ $i -lt 8 ]; do
        /bin/busybox sleep 0.01 &
        i=$((i + 1))
    done
    wait
}

pipes() {
    i=0
    while [ $i -lt 4 ]; do
        seq 200 | sed 's/1/one/' | sort -r | uniq | wc -l >/dev/null
        i=$((i + 1))
    done
}

signals() {
    sleep 100 &
    kill $!
    wait $! 2>/dev/null
}

# Connect to a port that nobody listens on: sockets are created, refused,
# released.
sockets() {
    i=0
    while [ $i -lt 4 ]; do
        nc -w 1 127.0.0.1 9 </dev/null 2>/dev/null
        i=$((i + 1))
    done
}

round() {
    in_a_row
    at_once
    pipes
    signals
    sockets
    ps >/dev/null
    cat /proc/[0-9]*/stat /proc/net/tcp >/dev/null 2>&1
}

r=0
while [ $r -lt "$n" ]; do
    round
    r=$((r + 1))
done
true
