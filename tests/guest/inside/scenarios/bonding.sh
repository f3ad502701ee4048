#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Scenario: a bond of two network devices, one of which fails.
# modules: dummy bonding
# shellcheck source=tests/guest/inside/scenarios/steps.sh
. /share/steps.sh

use() {
    ip link add ka0 type dummy &&
        ip link add ka2 type dummy &&
        ip link add ka1 type bond &&
        ip link set ka0 master ka1 &&
        ip link set ka2 master ka1 &&
        echo 100 >/sys/class/net/ka1/bonding/miimon &&
        ip addr add 10.9.0.1/24 dev ka1 &&
        ip link set ka1 up &&
        arping -U -c 1 -I ka1 10.9.0.1 &&
        cat /proc/net/bonding/ka1 &&
        ip link set ka2 nomaster
}

undo() {
    twice ip link del ka1
    twice ip link del ka2
    twice ip link del ka0
}

load dummy numdummies=0 && load bonding max_bonds=1 && use
finish $?
