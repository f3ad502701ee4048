#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of tests that say in the guest's shell what it shall do.
exit 0
