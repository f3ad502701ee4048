#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Build the test modules against the distribution's headers of a kernel.
#
# The headers' packages are downloaded and unpacked into a cache, not
# installed. Prints nothing when the modules are up to date.
# Exit codes: 0 built, 77 the headers or the compiler are not to be had,
# 1 the build failed, 2 usage.
set -eu

usage() {
    cat <<'EOF'
usage: build-kmod.sh KERNELDIR OUTDIR
  KERNELDIR  an unpacked linux-image package (has lib/modules/VERSION), or
             the VERSION itself, as in 6.12.117+deb12-cloud-amd64
  OUTDIR     where ka_errors.ko, ka_storm.ko and ka_rules.ko go
The cache is $KA_CACHE (default ~/.cache/ka), folder headers/VERSION.
EOF
}

fail() {
    echo "build-kmod.sh: $1" >&2
    exit "${2:-1}"
}

kernel_version() {
    if [ -d "$1/lib/modules" ]; then
        for d in "$1"/lib/modules/*/; do
            basename "$d"
            return
        done
    fi
    case "$1" in
    */* | .*) fail "$1: no lib/modules in there" 2 ;;
    esac
    echo "$1"
}

# The packages that the headers' own package depends on, without versions.
headers_packages() {
    apt-cache show --no-all-versions "linux-headers-$1" 2>/dev/null |
        sed -n 's/^Depends: //p' | tr ',' '\n' |
        sed -n 's/^ *\(linux-headers-[^ ]*-common\|linux-kbuild-[^ ]*\).*/\1/p'
}

fetch_headers() {
    tmp=$headers.tmp.$$
    rm -rf "$tmp"
    mkdir -p "$tmp/debs"
    deps=$(headers_packages "$version")
    [ -n "$deps" ] || fail "apt knows no linux-headers-$version" 77
    # shellcheck disable=SC2086 # a list of package names
    (cd "$tmp/debs" && apt-get download -qq -o APT::Sandbox::User=root \
        "linux-headers-$version" $deps) >"$tmp/log" 2>&1 ||
        fail "cannot download linux-headers-$version, see $tmp/log" 77
    for deb in "$tmp"/debs/*.deb; do
        dpkg-deb -x "$deb" "$tmp"
    done
    rm -rf "$tmp/debs"
    rm -rf "$headers"
    mv "$tmp" "$headers"
    # The package's makefile names the common part by its installed path.
    sed -i "s#^include /usr/src/#include $headers/usr/src/#" \
        "$headers/usr/src/linux-headers-$version/Makefile"
}

case "${1:-}" in
-h | --help)
    usage
    exit 0
    ;;
esac
[ $# -eq 2 ] || { usage >&2; exit 2; }

here=$(cd "$(dirname "$0")" && pwd)
version=$(kernel_version "$1")
mkdir -p "$2"
out=$(cd "$2" && pwd)
headers=${KA_CACHE:-$HOME/.cache/ka}/headers/$version

key=$(cat "$here"/kmod/*.[ch] "$here"/kmod/Kbuild | sha256sum | cut -c1-32)
key="$key $version"
[ "$(cat "$out/.key" 2>/dev/null)" != "$key" ] || exit 0

build=$headers/usr/src/linux-headers-$version
[ -f "$build/Makefile" ] || fetch_headers
cc=$(sed -n 's/^CC = .*\(gcc-[0-9]*\)$/\1/p' "$build/.kernelvariables")
command -v "${cc:-gcc}" >/dev/null ||
    fail "the kernel's compiler $cc is not installed" 77

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here"/kmod/*.[ch] "$here"/kmod/Kbuild "$work"
if ! make -C "$build" M="$work" modules >"$out/build.log" 2>&1; then
    tail -n 20 "$out/build.log" >&2
    fail "the build failed, see $out/build.log"
fi
cp "$work"/*.ko "$out"
echo "$key" >"$out/.key"
