#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The storm of test_stress.py with access=on: ten minutes on 8 vCPUs, a savevm
and a loadvm each minute. No access is an error, the map of blocks agrees with
each access that is suspected, and wrong accesses after the storm are counted
one by one. What else test_stress.py compares is as right as without checks.

usage: test_access_storm.py [--kernel K]... [--cpus N] [--minutes M]
"""
import test_stress

if __name__ == '__main__':
    # programs.arguments() has --kernel
    test_stress.main(__doc__, access=True, savevm=True, cpus=8, minutes=10)
