#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_pages.py, N rounds of what moves pages inside the page
# allocator: files and processes, then reclaim, compaction and huge pages (which
# need contiguous ranges), all with memory in use. Then write the guest's own
# trace of its page allocator to /share/out.
t=/sys/kernel/tracing
vm=/proc/sys/vm
disk=$(sed -n 's/.*ka\.out=\([^ ]*\).*/\1/p' /proc/cmdline)
huge=/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages

fill() {
    i=0
    while [ $i -lt 24 ]; do
        dd if=/dev/zero of="$1/f$i" bs=64k count=24 2>/dev/null
        i=$((i + 1))
    done
}

# Remove every other file: the rest is scattered in memory.
thin() {
    i=0
    while [ $i -lt 24 ]; do
        rm "$1/f$i"
        i=$((i + 2))
    done
}

# Files of huge pages. Truncating one inside a huge page splits the page and
# frees a part.
cut_huge() {
    mkdir -p /tmp/huge
    mount -t tmpfs -o huge=always tmpfs /tmp/huge || return 0
    i=0
    while [ $i -lt 6 ]; do
        dd if=/dev/zero of=/tmp/huge/f$i bs=1M count=6 2>/dev/null
        truncate -s 3000k /tmp/huge/f$i
        i=$((i + 1))
    done
    umount /tmp/huge
}

round() {
    cut_huge
    mkdir -p /tmp/pages
    fill /tmp/pages
    thin /tmp/pages
    # Reclaim: read a disk that is larger than memory into the page cache.
    [ -z "$disk" ] || ! sh /ka/disk.sh "$disk" ||
        dd if="/dev/$disk" of=/dev/null bs=1M count=300 2>/dev/null
    echo 1 >$vm/compact_memory
    echo "$1" >$vm/nr_hugepages
    echo 3 >$vm/drop_caches
    echo 0 >$vm/nr_hugepages
    echo 1 >$vm/compact_memory
    rm -r /tmp/pages
}

# A page of 1 GiB is a contiguous range. With little memory this fails.
gigantic() {
    [ -e $huge ] || return 0
    echo 1 >$huge
    cat $huge
    echo 0 >$huge
}

sh /ka/work.sh 1
r=0
while [ $r -lt "$1" ]; do
    round 400
    r=$((r + 1))
done
gigantic
cat /proc/vmstat >/tmp/vmstat
grep -E '^(compact|pgmigrate|pgsteal|thp)' /tmp/vmstat
[ -e /share/ka-out ] || exit 0
echo 0 >$t/tracing_on
mkdir -p /share/out
for cpu in "$t"/per_cpu/cpu*; do
    /share/ka-out /share/out "$cpu/stats" || exit 1
    grep -q '^entries: 0' "$cpu/stats" ||
        /share/ka-out /share/out "$cpu/trace_pipe_raw" || exit 1
done
/share/ka-out /share/out "$t"/events/kmem/*/format "$t/events/header_page" \
    "$t"/events/initcall/*/format "$t/events/ftrace/kernel_stack/format" \
    /proc/kallsyms
