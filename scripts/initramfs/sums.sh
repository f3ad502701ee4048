#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload N:K: N rounds of work.sh, and after each round K checksums of a file
# of 2 MB, which is work with files but with few slab events.
n=${1%:*} k=${1#*:}

while [ "$n" -gt 0 ]; do
    sh /ka/work.sh 1 || exit
    i=0
    while [ $i -lt "$k" ]; do
        sha256sum /bin/busybox >/dev/null
        i=$((i + 1))
    done
    n=$((n - 1))
done
