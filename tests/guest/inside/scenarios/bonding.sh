#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Scenario: a bond of two network devices.
# modules: dummy bonding
# shellcheck source=tests/guest/inside/scenarios/steps.sh
. /share/steps.sh

use() {
    ip link add ka0 type dummy &&
        ip link add ka1 type bond &&
        ip link set ka0 master ka1 &&
        ip link set ka1 up
}

undo() {
    twice ip link del ka1
    twice ip link del ka0
}

load dummy numdummies=0 && load bonding max_bonds=1 && use
finish $?
