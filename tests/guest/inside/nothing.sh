#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Workload of tests that run commands in the guest's shell: do nothing.
exit 0
