#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# In the guest: wait for scripts/fault-sweep, run its scenario, say that it has
# ended. The state that is restored for each run is that of the wait.
#
#   KA-SWEEP-READY <pid>     process <pid> waits, and becomes the scenario
#   (a line is read)         the scenario may begin
#   KA-SWEEP-DONE <status>   it has ended, and the guest has been idle for 2 s
#   (lines are read)         names of modules, which are to be unloaded
#   KA-SWEEP-UNLOADED        that was tried, and the guest has been idle for 2 s
#
# This shell is no process of the scenario: a call of its own never fails.

cd /share || exit
sh -c 'printf "\nKA-SWEEP-READY %s\n" $$
       read -r _
       exec sh /share/scenario.sh </dev/null'
status=$?
# Frees by RCU and delayed work come after the end of their cause.
sleep 2
printf '\nKA-SWEEP-DONE %s\n' $status
while read -r names; do
    for name in $names; do
        rmmod "$name"
    done
    sleep 2
    printf '\nKA-SWEEP-UNLOADED\n'
done
while :; do sleep 1000; done
