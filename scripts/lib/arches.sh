# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2034  # scripts that source this use it
#
# Guest architectures.

# A guest architecture has one name, QEMU's, and other names for it.
declare -A arch_names=(
    [x86_64]=x86_64 [amd64]=x86_64
    [aarch64]=aarch64 [arm64]=aarch64
    [riscv64]=riscv64
)

# The disk of ka-run's --out: QEMU's device, the guest's name for the disk, and
# the module with its driver, which may be built in. riscv64 does not use NVMe:
# its machine has no MSI, and NVMe loses interrupts there.
declare -A arch_disks=(
    [x86_64]="nvme nvme0n1 nvme"
    [aarch64]="nvme nvme0n1 nvme"
    [riscv64]="virtio-blk-pci vda virtio_blk"
)

# arch_name WORD: QEMU's name for it; empty if WORD is no architecture.
arch_name() { printf '%s\n' "${arch_names[$1]:-}"; }
