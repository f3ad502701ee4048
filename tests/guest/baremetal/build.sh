#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Build the bare-metal kernels: ARCH-xnu.elf and ARCH-xv6.elf.
# Exit codes: 0 built, 1 the build failed, 2 usage, 77 no compiler.
set -eu

usage() {
    cat <<'END'
usage: build.sh ARCH OUTDIR
  ARCH    aarch64 or riscv64
  OUTDIR  where the kernels go
END
}

case "${1:-}" in
-h | --help)
    usage
    exit 0
    ;;
aarch64)
    start='start-arm64.S'
    set -- "$@" -march=armv8-a -mgeneral-regs-only
    ;;
riscv64)
    start='start-riscv64.S'
    set -- "$@" -march=rv64ima_zicsr -mabi=lp64 -mcmodel=medany
    ;;
*)
    usage >&2
    exit 2
    ;;
esac
[ $# -gt 3 ] || { usage >&2; exit 2; }

here=$(cd "$(dirname "$0")" && pwd)
arch=$1 out=$2 cc=$1-linux-gnu-gcc
shift 2
command -v "$cc" >/dev/null || {
    echo "build.sh: $cc is not installed" >&2
    exit 77
}
mkdir -p "$out"
set -- "$@" -std=gnu11 -O1 -g0 -Wall -Werror -ffreestanding -nostdlib \
    -static -fno-pie -no-pie -fno-stack-protector -fno-omit-frame-pointer \
    -fno-optimize-sibling-calls -Wl,--build-id=none -Wl,-z,max-page-size=4096 \
    -Wl,--no-warn-rwx-segments -Wl,--no-relax
for like in xnu xv6; do
    word=-DLIKE_$(echo $like | tr '[:lower:]' '[:upper:]')
    "$cc" "$word" -E -P -x assembler-with-cpp "$here/kernel.lds.S" \
        -o "$out/$arch-$like.lds"
    "$cc" "$@" "$word" -I"$here" -T"$out/$arch-$like.lds" \
        "$here/$start" "$here/kernel.c" -o "$out/$arch-$like.elf"
done
