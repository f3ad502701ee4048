#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Scenario: a bridge with a port, and a packet on it.
# modules: dummy bridge
# shellcheck source=tests/guest/inside/scenarios/steps.sh
. /share/steps.sh

use() {
    ip link add ka0 type dummy &&
        ip link add ka1 type bridge &&
        ip link set ka0 master ka1 &&
        ip link set ka0 up &&
        ip addr add 10.9.0.1/24 dev ka1 &&
        ip link set ka1 up &&
        arping -U -c 1 -I ka1 10.9.0.1
}

undo() {
    twice ip link del ka1
    twice ip link del ka0
}

load dummy numdummies=0 && load bridge && use
finish $?
