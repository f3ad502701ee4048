# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Guest architectures: one name each, QEMU's, whatever else they are called.

declare -A arch_names=(
    [x86_64]=x86_64 [amd64]=x86_64
    [aarch64]=aarch64 [arm64]=aarch64
    [riscv64]=riscv64
)

# The disk of ka-run's --out: QEMU's device, the guest's name for it, and the
# module that drives it, should it not be built in. NVMe on riscv64's machine,
# which has no MSI, loses interrupts.
declare -A arch_disks=(
    [x86_64]="nvme nvme0n1 nvme"
    [aarch64]="nvme nvme0n1 nvme"
    [riscv64]="virtio-blk-pci vda virtio_blk"
)

# arch_name WORD: QEMU's name for it, empty when it is none.
arch_name() { printf '%s\n' "${arch_names[$1]:-}"; }
