#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Scenario: a bridge with a port, packets on it, and a change of its settings.
# modules: dummy bridge
# shellcheck source=tests/guest/inside/scenarios/steps.sh
. /share/steps.sh

settings=/sys/class/net/ka1/bridge

use() {
    ip link add ka0 type dummy &&
        brctl addbr ka1 &&
        brctl addif ka1 ka0 &&
        echo 1 >$settings/stp_state &&
        echo 0 >$settings/stp_state &&
        echo 200 >$settings/forward_delay &&
        ip link set ka0 up &&
        ip addr add 10.9.0.1/24 dev ka1 &&
        ip link set ka1 up &&
        arping -U -c 1 -I ka1 10.9.0.1 &&
        cat /sys/class/net/ka1/brforward >/dev/null &&
        brctl delif ka1 ka0
}

undo() {
    twice ip link del ka1
    twice ip link del ka0
}

load dummy numdummies=0 && load bridge && use
finish $?
