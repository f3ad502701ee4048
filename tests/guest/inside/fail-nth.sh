#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_fail_nth.py: the kernel fails each allocation of some system
# calls. Its log goes to /share/out.
debug=/sys/kernel/debug
mount -t debugfs debugfs $debug 2>/dev/null
echo N >$debug/failslab/ignore-gfp-wait
echo N >$debug/fail_page_alloc/ignore-gfp-wait
echo N >$debug/fail_page_alloc/ignore-gfp-highmem
echo 0 >$debug/fail_page_alloc/min-order
for what in failslab fail_page_alloc; do
    echo 0 >$debug/$what/verbose_ratelimit_interval_ms
done
mkdir -p /share/out
for call in pipe epoll memfd mkdir open fork; do
    /share/ka-failnth $call >>/share/out/calls || echo "$call: failed"
done
dmesg >/share/out/dmesg
/share/ka-out /share/out /proc/kallsyms
