#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_log.py: print N lines to the kernel's log, from four tasks at
# once, with some from the kernel itself: a list of tasks, the backtraces of all
# CPUs, which interrupts print, and what a module says. Then write what the
# guest says of its log to /share/out: kmsg is /dev/kmsg, dmesg is dmesg -r.
out=/share/out
mkdir -p $out

echo 'ka:begin' >/dev/kmsg
for w in 1 2 3 4; do
    # a process of its own: $$ of a subshell is that of the shell
    sh -c '
        exec 3>/dev/kmsg
        i=0
        while [ $i -lt '$(($1 / 4))' ]; do
            echo "<$((i % 8))>ka-test '$w' $i of $$" >&3
            i=$((i + 1))
        done' &
done
echo t >/proc/sysrq-trigger
echo l >/proc/sysrq-trigger
if [ -e /share/ka_life.ko ]; then
    insmod /share/ka_life.ko
    rmmod ka_life
fi
printf 'tab\there, back\\slash, \033[31mred\377\n' >/dev/kmsg
wait
echo 'ka:end' >/dev/kmsg

# A reader of /dev/kmsg waits for more at its end.
cat /dev/kmsg >$out/kmsg &
reader=$!
until grep -q ';ka:end' $out/kmsg; do
    sleep 1
done
kill $reader
dmesg -r >$out/dmesg
