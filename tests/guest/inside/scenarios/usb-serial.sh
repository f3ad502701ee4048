#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Scenario: a serial line on USB, with the driver of FTDI's chips.
# modules: xhci_pci ftdi_sio
# sweep: ftdi_sio usbserial
# kernel: 6.12-rt
# qemu: -device qemu-xhci -chardev null,id=ka-serial
# plug: usb-serial,chardev=ka-serial,always-plugged=on,port=1
# shellcheck source=tests/guest/inside/scenarios/steps.sh
. /share/steps.sh

use() {
    wait_for /dev/ttyUSB0 &&
        stty -F /dev/ttyUSB0 9600 raw &&
        echo 'some words' >/dev/ttyUSB0 &&
        cat /sys/class/tty/ttyUSB0/device/latency_timer
}

undo() {
    :
}

load xhci_pci && load ftdi_sio && use
finish $?
