#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Build the test modules of this folder, or others, for a prepared kernel,
# against its headers. Does nothing when they are up to date.
# Exit codes: 0 built, 1 the build failed, 2 usage, 77 no headers or compiler.
set -eu

usage() {
    cat <<'EOF'
usage: build.sh KERNELDIR OUTDIR [SOURCES]
  KERNELDIR  a kernel that scripts/setup prepared: its files "release" and
             "headers/usr/src/linux-headers-RELEASE" are used
  OUTDIR     where the modules (*.ko) go
  SOURCES    a folder with the sources and a Kbuild, instead of this one
EOF
}

fail() {
    echo "build.sh: $1" >&2
    exit "${2:-1}"
}

case "${1:-}" in
-h | --help)
    usage
    exit 0
    ;;
esac
[ $# -eq 2 ] || [ $# -eq 3 ] || { usage >&2; exit 2; }

here=$(cd "${3:-$(dirname "$0")}" && pwd)
release=$(cat "$1/release") || fail "$1 is not a prepared kernel" 2
headers=$(cd "$1" && pwd -P)/headers/usr/src/linux-headers-$release
[ -f "$headers/Makefile" ] || fail "no headers in $headers" 77
mkdir -p "$2"
out=$(cd "$2" && pwd)

# One process at a time; one that waited finds the modules built.
exec 9>>"$out/lock"
flock 9
key=$(cat "$here"/*.[ch] "$here"/Kbuild | sha256sum | cut -c1-32)
key="$key $release $(cat "$1/id")"
[ "$(cat "$out/key" 2>/dev/null)" != "$key" ] || exit 0

# The kernel names its architecture and the compiler that it was built with.
variable() {
    sed -n "s/^\(override \)\?$1 = \(.*[ )]\)\?//p" \
        "$headers/.kernelvariables"
}
case $(variable ARCH) in
arm64) cross=aarch64-linux-gnu- ;;
riscv) cross=riscv64-linux-gnu- ;;
*) cross='' ;;
esac
cc=$cross$(variable CC)
set -- ARCH="$(variable ARCH)" CROSS_COMPILE="$cross"
llvm=$(variable LLVM)
[ -z "$llvm" ] || set -- "$@" LLVM="$llvm"
# An older compiler will do where that one is not to be had. pahole is older
# then as well, and does not know how to make these modules' BTF.
if ! command -v "$cc" >/dev/null; then
    cc=${cross}gcc
    set -- "$@" CONFIG_DEBUG_INFO_BTF_MODULES= \
        CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT=
fi
command -v "$cc" >/dev/null ||
    fail "the kernel's compiler $cc is not installed" 77

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here"/*.[ch] "$here"/Kbuild "$work"
if ! make -C "$headers" M="$work" "$@" CC="$cc" modules \
    >"$out/build.log" 2>&1
then
    tail -n 20 "$out/build.log" >&2
    fail "the build failed, see $out/build.log"
fi
cp "$work"/*.ko "$out"
echo "$key" >"$out/key"
