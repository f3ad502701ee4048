# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# The distribution's packages, meson, and the build of ka itself.

packages=(
    build-essential ccache ninja-build pkg-config git ca-certificates
    dpkg-dev xz-utils bzip2 zstd debian-archive-keyring
    python3 python3-venv python3-setuptools python3-wheel python3-pip
    libglib2.0-dev libjson-glib-dev zlib1g-dev libslirp-dev libattr1-dev
    libcap-ng-dev libcapstone-dev libfdt-dev
    libbpf-dev libelf-dev libzstd-dev liblzma-dev liblz4-dev libbz2-dev
    seabios qemu-system-data gdb gcc-12 shellcheck bpftool pahole
)
meson_wanted=1.5
# The first one of Debian 12 that has the keys of Debian 13.
keyring_wanted=2023.3+deb12u2

do_packages() {
    apt-get update
    DEBIAN_FRONTEND=noninteractive apt-get install -y \
        --no-install-recommends "${packages[@]}"
}

package_version() {
    dpkg-query -W -f '${Version}' "$1" 2>/dev/null || true
}

missing_packages() {
    local installed p missing=()
    installed=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' \
                "${packages[@]}" 2>/dev/null | sed -n 's/^ii  *//p') || true
    for p in "${packages[@]}"; do
        grep -qx -- "$p" <<<"$installed" || missing+=("$p")
    done
    if [ ${#missing[@]} -eq 0 ]; then
        dpkg --compare-versions "$keyring_wanted" le \
            "$(package_version debian-archive-keyring)" && return 1
        missing=("debian-archive-keyring >= $keyring_wanted")
    fi
    echo "packages: ${missing[*]}"
}

# The release's own meson when it is new enough, else the backports suite's.
do_meson() {
    local have tmp
    export DEBIAN_FRONTEND=noninteractive
    have=$(apt-cache policy meson | sed -n 's/^  Candidate: //p')
    if dpkg --compare-versions "$have" ge "$meson_wanted"; then
        apt-get install -y --no-install-recommends meson
        return
    fi
    apt_refresh
    tmp=$(new_tmp meson)
    apt_fetch "$tmp" "meson/$GUEST_SUITE-backports"
    apt-get install -y --no-install-recommends "$tmp"/meson_*.deb
    rm -rf -- "$tmp"
}

missing_meson() {
    local have
    have=$(package_version meson)
    [ -n "$have" ] && dpkg --compare-versions "$have" ge "$meson_wanted" &&
        return 1
    echo "meson >= $meson_wanted${have:+ (found $have)}"
}

# --- ka ----------------------------------------------------------------------

# build_folder: KA_BUILD, or one folder for each work tree and QEMU build.
build_folder() {
    local qemu
    qemu=$(qemu_folder patched)
    printf '%s\n' "${KA_BUILD:-$KA_CACHE/build/$(
        printf '%s\n' "$KA_ROOT" "$qemu" | hash_of)}"
}

do_build() {
    local build
    build=$(build_folder)
    if [ ! -e "$build/build.ninja" ]; then
        meson setup "$build" "$KA_ROOT" \
            -Dqemu_include="$(qemu_folder patched)/include"
    fi
    ninja -C "$build"
}

# built FOLDER: everything in it is newer than its sources.
built() {
    [ -e "$1/build.ninja" ] &&
        ninja -C "$1" -n 2>&1 | grep -q 'no work to do'
}

missing_build() {
    built "$(build_folder)" && return 1
    echo "build of ka"
}

# Builds of the tests with sanitizers, without the plugin.
declare -A sanitizers=([asan]=address,undefined [tsan]=thread)

sanitized_folder() {
    printf '%s/build/%s-%s\n' "$KA_CACHE" "$1" \
        "$(printf '%s' "$KA_ROOT" | hash_of)"
}

do_sanitized() {
    local build
    build=$(sanitized_folder "$1")
    if [ ! -e "$build/build.ninja" ]; then
        meson setup "$build" "$KA_ROOT" -Db_lundef=false \
            -Db_sanitize="${sanitizers[$1]}"
    fi
    ninja -C "$build"
}

missing_sanitized() {
    built "$(sanitized_folder "$1")" && return 1
    echo "build of the tests with $1"
}
