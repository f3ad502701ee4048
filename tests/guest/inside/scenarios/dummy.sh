#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Scenario: a network device that drops all packets.
# modules: dummy
# shellcheck source=tests/guest/inside/scenarios/steps.sh
. /share/steps.sh

use() {
    ip link add ka0 type dummy &&
        ip addr add 10.9.0.1/24 dev ka0 &&
        ip link set ka0 up mtu 9000 &&
        cat /proc/net/dev
}

undo() {
    twice ip link del ka0
}

load dummy && use
finish $?
