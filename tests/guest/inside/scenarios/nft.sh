#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Scenario: rules of nf_tables with sets of three kinds, and a packet that they
# match.
# modules: nf_tables
# sweep: nf_tables nfnetlink
# shellcheck source=tests/guest/inside/scenarios/steps.sh
. /share/steps.sh

use() {
    ifconfig lo 127.0.0.1 up &&
        /share/ka-nft add &&
        ping -c 1 -W 1 127.0.0.1 &&
        /share/ka-nft list
}

undo() {
    twice /share/ka-nft delete
    twice ifconfig lo down
}

load nf_tables && use
finish $?
