# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Packages of the distribution that are installed on this machine, and meson.

# The releases of the distribution have different compilers.
case $(debian_codename) in
bookworm) gcc_version=12 llvm_version=16 ;;
*) gcc_version=14 llvm_version=19 ;;
esac

# Step -> the packages that it installs.
declare -A step_packages=(
    [packages]="
        build-essential ccache ninja-build pkg-config git ca-certificates
        dpkg-dev xz-utils bzip2 zstd debian-archive-keyring
        python3 python3-venv python3-setuptools python3-wheel python3-pip
        python3-yaml
        libglib2.0-dev libjson-glib-dev zlib1g-dev libsqlite3-dev
        libslirp-dev libattr1-dev libcap-ng-dev libcapstone-dev libfdt-dev
        libbpf-dev libelf-dev libdw-dev libzstd-dev liblzma-dev liblz4-dev
        libbz2-dev
        seabios qemu-system-data e2fsprogs gdb gcc-12 shellcheck bpftool
        pahole"
    [clang]="clang llvm libclang-rt-dev"
    [clang-tidy]="clang clang-tidy"
    [lldb]="lldb"
    [shells]="zsh fish"
    [drgn]="python3-drgn"
    [man]="mandoc man-db"
    [package]="debhelper dh-python fakeroot lintian debootstrap"
    [container]="buildah debootstrap"
    [heaptrack]="heaptrack"
    [openmetrics]="python3-prometheus-client"
    [findings]="python3-junitparser python3-jsonschema"
    [farm]="python3-zstandard parallel"
    [strace]="strace"
    [slurm]="munge slurmctld slurmd slurm-client"
    [viewers]="golang-go prometheus"
    [browser]="chromium chromium-driver"
    # A test module is built by the compiler that its kernel wanted, or by the
    # distribution's newest if that one is not available.
    [cross-arm64]="gcc-aarch64-linux-gnu gcc-12-aarch64-linux-gnu
        libc6-dev-arm64-cross gdb-multiarch"
    [cross-riscv64]="gcc-riscv64-linux-gnu libc6-dev-riscv64-cross
        gdb-multiarch"
    [kernel-tools]="flex bison bc libelf-dev kmod"
    [gcc-plugins]="gcc-$gcc_version-plugin-dev"
    [llvm]="clang-$llvm_version lld-$llvm_version llvm-$llvm_version"
)
# Steps that do more than install packages -> those that they install first.
declare -A other_packages=(
    [meson]="meson"
    [readers]="nodejs npm"
    [multitool]="nodejs npm"
    [vng]="file kmod udev"
)
meson_wanted=1.5
# The first version of Debian 12 that has the keys of Debian 13.
keyring_wanted=2023.3+deb12u2

apt_install() {
    DEBIAN_FRONTEND=noninteractive apt-get install -y \
        --no-install-recommends "$@"
}

package_version() {
    dpkg-query -W -f '${Version}' "$1" 2>/dev/null || true
}

# packages_of STEP: the packages of its row, one a line.
packages_of() {
    xargs -n 1 <<<"${step_packages[$1]-} ${other_packages[$1]-}"
}

# print_packages: print the packages of all steps, as lines STEP PACKAGE.
print_packages() {
    local step
    for step in "${!step_packages[@]}" "${!other_packages[@]}"; do
        packages_of "$step" | sed "s/^/$step /"
    done | sort
}

# do_packages STEP
do_packages() {
    local wanted
    mapfile -t wanted < <(packages_of "$1")
    apt-get update
    apt_install "${wanted[@]}"
}

# missing_packages STEP
missing_packages() {
    local installed wanted missing=()
    mapfile -t wanted < <(packages_of "$1")
    installed=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' \
                "${wanted[@]}" 2>/dev/null | sed -n 's/^ii  *//p') || true
    mapfile -t missing < <(printf '%s\n' "${wanted[@]}" |
                           grep -vxF -- "$installed")
    if [ ${#missing[@]} -eq 0 ] && [ "$1" = packages ]; then
        dpkg --compare-versions "$keyring_wanted" le \
            "$(package_version debian-archive-keyring)" ||
            missing=("debian-archive-keyring >= $keyring_wanted")
    fi
    [ ${#missing[@]} -gt 0 ] && echo "packages: ${missing[*]}"
}

# The release's own meson if it is new enough, else that of the backports suite.
do_meson() {
    local have tmp
    have=$(apt-cache policy meson | sed -n 's/^  Candidate: //p')
    if dpkg --compare-versions "$have" ge "$meson_wanted"; then
        apt_install meson
        return
    fi
    apt_refresh
    tmp=$(new_tmp meson)
    apt_fetch "$tmp" "meson/$GUEST_SUITE-backports"
    apt_install "$tmp"/meson_*.deb
    rm -rf -- "$tmp"
}

missing_meson() {
    local have
    have=$(package_version meson)
    [ -n "$have" ] && dpkg --compare-versions "$have" ge "$meson_wanted" &&
        return 1
    echo "meson >= $meson_wanted${have:+ (found $have)}"
}

# The drgn of a newer release of the distribution, with the Python and the
# libraries of that release: this Python's path.
drgn_newer_python=$KA_CACHE/drgn/python3

do_drgn_newer() {
    local tmp final=$KA_CACHE/drgn usr lib
    apt_view amd64-newer
    apt_refresh
    tmp=$(new_tmp drgn)
    apt_unpack "$tmp" "$tmp/root" python3-drgn python3.13-minimal \
        libpython3.13-minimal libpython3.13-stdlib libc6 libdw1t64 \
        libelf1t64 libgomp1 zlib1g libbz2-1.0 liblzma5 libzstd1 libexpat1 \
        libssl3t64
    usr=$final/root/usr lib=$final/root/usr/lib/x86_64-linux-gnu
    printf '#!/bin/sh\nPYTHONHOME=%s PYTHONPATH=%s exec %s %s %s "$@"\n' \
        "$usr" "$usr/lib/python3/dist-packages" \
        "$lib/ld-linux-x86-64.so.2" "--library-path $lib" \
        "$usr/bin/python3.13" >"$tmp/python3"
    chmod 755 "$tmp/python3"
    publish "$tmp" "$final"
}

# Packages of npm that read exports, for the suite reports.
readers_folder=$KA_CACHE/readers
readers_wanted=(pprof-format@2.3.2 @microsoft/jest-sarif@1.0.0-beta.0
    speedscope@1.25.0 axe-core@4.14.0)

do_readers() {
    local tmp
    command -v npm >/dev/null || do_packages readers
    tmp=$(new_tmp readers)
    npm install --no-audit --no-fund --ignore-scripts --prefix "$tmp" \
        "${readers_wanted[@]}"
    publish "$tmp" "$readers_folder"
}

# Microsoft's checker of SARIF: 96 MB, so only for the long form of the tests.
multitool_folder=$KA_CACHE/multitool
multitool_wanted=@microsoft/sarif-multitool@5.7.0

do_multitool() {
    local tmp
    command -v npm >/dev/null || do_packages multitool
    tmp=$(new_tmp multitool)
    npm install --no-audit --no-fund --ignore-scripts --prefix "$tmp" \
        "$multitool_wanted"
    chmod 755 "$tmp"/node_modules/@microsoft/*/Sarif.Multitool
    publish "$tmp" "$multitool_folder"
}

missing_multitool() {
    compgen -G "$multitool_folder/node_modules/@microsoft/*/Sarif.Multitool" \
        >/dev/null && return 1
    echo "$multitool_wanted"
}

missing_readers() {
    local reader
    for reader in "${readers_wanted[@]}"; do
        if ! grep -qs "\"version\": \"${reader##*@}\"" \
            "$readers_folder/node_modules/${reader%@*}/package.json"; then
            echo "readers of exports: $reader"
            return
        fi
    done
    command -v node >/dev/null && return 1
    echo "node"
}

missing_drgn_newer() {
    "$drgn_newer_python" -c 'import drgn' 2>/dev/null && return 1
    echo "drgn of a newer release"
}
