#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_allocinfo.py: files and processes, and a module that keeps
# blocks of each allocator. Then write the kernel's sums to /share/out.
run=/sys/module/ka_flood/parameters
sh /ka/work.sh "$1"
mkdir -p /share/out
insmod /share/ka_flood.ko size=262144 bits=2 || exit 1
echo "keep 8" >$run/run
echo 1000 >$run/size
echo "keep 100" >$run/run
echo 40000 >$run/size
echo Y >$run/areas
echo "keep 8" >$run/run
echo 8192 >$run/size
echo Y >$run/percpu
echo "keep 40" >$run/run
/share/ka-out /share/out /proc/kallsyms || exit 1
/share/ka-allocinfo /share/out
