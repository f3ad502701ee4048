#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Scenario of scripts/fault-sweep: load and unload the modules of test_faults.py
# that break if a call fails. The status tells whether a load failed.

status=0
for module in good late name loop swallow errptr double put null retry; do
    /share/ka-load "/share/kf_$module.ko" || status=1
    rmmod "kf_$module"
done 2>/dev/null
exit $status
