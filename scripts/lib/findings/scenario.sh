# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh disable=SC2154
#
# In the guest: run the script of scripts/sweep --run and report how it ended.
# sweep puts a line token=... before this text: nothing else that a guest prints
# has this number.
#
#   KA-BEGIN <token>           the script begins
#   KA-DONE <status> <token>   it has ended
#
# The report is printed twice, because the kernel may print in the middle of it.

report() { (printf '\n%s %s\n' "$*" "$token"); }

cd /share || exit
report KA-BEGIN
sh /share/ka-scenario.sh </dev/null
status=$?
report "KA-DONE $status"
# Frees by RCU and delayed work come after the end of their cause.
sleep 2
report "KA-DONE $status"
exit $status
