#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Scenario: a pair of network devices, and packets from one to the other.
# modules: veth
# shellcheck source=tests/guest/inside/scenarios/steps.sh
. /share/steps.sh

use() {
    ip link add ka0 type veth &&
        ip link set veth0 up &&
        ip addr add 10.9.0.1/24 dev ka0 &&
        ip link set ka0 up &&
        arping -U -c 1 -I ka0 10.9.0.1
}

undo() {
    twice ip link del ka0
}

load veth && use
finish $?
