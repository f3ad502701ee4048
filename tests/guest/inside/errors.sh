#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of test_errors.py: commit the heap error $1, then run the usual work,
# unless $2 is "brief".
module=ka_errors
case $1 in
*-free-page | wrong-family-pages | wrong-order*) module=ka_page_errors ;;
esac
insmod /share/$module.ko kind="$1"
for file in "/sys/module/$module/sections"/.*text*; do
    echo "ka_section ${file##*/} $(cat "$file")"
done
# kfree_rcu() processes its queue after a grace period.
case $1 in
*-rcu) sleep 1 ;;
esac
[ "$2" = brief ] || sh /ka/work.sh 1
