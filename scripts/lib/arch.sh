# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Guest architectures: one name each, QEMU's, whatever else they are called.

declare -A arch_names=(
    [x86_64]=x86_64 [amd64]=x86_64
    [aarch64]=aarch64 [arm64]=aarch64
    [riscv64]=riscv64
)

# arch_name WORD: QEMU's name for it, empty when it is none.
arch_name() { printf '%s\n' "${arch_names[$1]:-}"; }
