#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Build a guest: OUT/ARCH-N.elf, and for x86_64 its firmware OUT/ARCH-N.rom.
# With the word "plugin" for ARCH: OUT/force.so.
# Exit codes: 0 built, 1 the build failed, 2 usage, 77 no compiler.
set -eu

usage() {
    cat <<'END'
usage: build.sh ARCH OUT NAME CPUS ROUNDS TIMER
       build.sh plugin OUT INCLUDE
  ARCH     x86_64, aarch64 or riscv64
  OUT      where the files go
  NAME     of this guest
  CPUS, ROUNDS, TIMER  see guest.c
  INCLUDE  folder of qemu-plugin.h
END
}

here=$(cd "$(dirname "$0")" && pwd)
case "${1:-}:$#" in
plugin:3)
    # shellcheck disable=SC2046 # words
    exec gcc -std=gnu11 -O1 -Wall -Werror -shared -fPIC -I"$3" \
        $(pkg-config --cflags glib-2.0) "$here/force.c" -o "$2/force.so"
    ;;
*:6) ;;
--help:* | -h:*) usage; exit 0 ;;
*) usage >&2; exit 2 ;;
esac

arch=$1 out=$2 name=$3
words="-DCPUS=$4 -DROUNDS=$5 -DTIMER=$6"
cc=$arch-linux-gnu-gcc lds=$here/rom.lds
case $arch in
x86_64)
    set -- "$here/start-x86_64.S" -mno-red-zone -mgeneral-regs-only \
        -fcf-protection
    ;;
aarch64)
    ram=0x40200000
    set -- "$here/start-arm64.S" -march=armv8.5-a -mgeneral-regs-only \
        -mbranch-protection=bti
    ;;
riscv64)
    ram=0x80000000
    set -- "$here/start-riscv64.S" -march=rv64ima_zicsr -mabi=lp64 \
        -mcmodel=medany
    ;;
*) usage >&2; exit 2 ;;
esac
command -v "$cc" >/dev/null || {
    echo "build.sh: $cc is not installed" >&2
    exit 77
}
mkdir -p "$out"
if [ "$arch" != x86_64 ]; then
    lds=$out/$arch.lds
    "$cc" "-DRAM=$ram" -E -P -x assembler-with-cpp "$here/ram.lds.S" -o "$lds"
fi
# shellcheck disable=SC2086 # words
"$cc" "$@" $words -std=gnu11 -O1 -g0 -Wall -Werror -ffreestanding -nostdlib \
    -static -fno-pie -no-pie -fno-stack-protector -fno-builtin \
    -fno-tree-loop-distribute-patterns -I"$here" -T"$lds" \
    -Wl,--build-id=none -Wl,-z,max-page-size=4096 -Wl,-z,noexecstack \
    -Wl,--no-warn-rwx-segments \
    "$here/guest.c" -o "$out/$arch-$name.elf"
[ "$arch" != x86_64 ] || "${cc%gcc}objcopy" -O binary -j .text -j .reset \
    --pad-to 0x100000 "$out/$arch-$name.elf" "$out/$arch-$name.rom"
