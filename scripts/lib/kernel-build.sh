# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Guest kernels of our own: the distribution's source, configured by a file of
# tests/guest that begins with the kernel's name. They are arranged as those
# that the distribution built.

kernel_is_built() { [[ $(kernel_package "$1") = linux-source-* ]]; }
kernel_config() { printf '%s\n' "$KA_ROOT/tests/guest/${1%%-*}.config"; }

kernel_title() {
    kernel_is_built "$1" && echo "build guest kernel $1" ||
        echo "fetch guest kernel $1"
}

# kernel_variant NAME: stands for what it is made from beside the package.
kernel_variant() {
    ! kernel_is_built "$1" || printf -- '-%s\n' \
        "$(hash_files "$(kernel_config "$1")" \
                      "$KA_ROOT/scripts/lib/kernel-build.sh")"
}

# kernel_configure CONFIG: what it asks for is there, and nothing else.
kernel_configure() {
    local line
    make KCONFIG_ALLCONFIG="$1" allnoconfig
    grep '^CONFIG_' "$1" | while read -r line; do
        grep -qxF -- "$line" .config && continue
        echo "not to be had in this kernel: $line"
        return 1
    done
}

# kernel_keep FOLDER: the built kernel, and what builds modules for it.
kernel_keep() {
    local dir=$1 release headers
    release=$(make -s kernelrelease)
    headers=$dir/headers/usr/src/linux-headers-$release
    mkdir -p "$dir/modules" "$headers"
    cp arch/x86/boot/bzImage "$dir/vmlinuz-$release"
    ln -s "vmlinuz-$release" "$dir/vmlinuz"
    cp .config "$dir/config"
    echo "$release" >"$dir/release"
    make run-command \
        KBUILD_RUN_COMMAND="scripts/package/install-extmod-build $headers"
    printf 'ARCH = x86\nCC = gcc\n' >"$headers/.kernelvariables"
}

# kernel_build FOLDER PACKAGE CONFIG
kernel_build() {
    local dir=$1 config=$3
    apt_fetch "$dir" "$2"
    dpkg-deb -x "$dir/$2"_*.deb "$dir"
    mkdir "$dir/source"
    tar -C "$dir/source" --strip-components=1 -xf "$dir/usr/src/$2".tar.*
    rm -rf -- "$dir"/*.deb "$dir/usr"
    (
        cd "$dir/source"
        export KBUILD_BUILD_USER=ka KBUILD_BUILD_HOST=ka
        kernel_configure "$config"
        make -j"$(nproc)" bzImage modules
        kernel_keep "$dir"
    )
    rm -rf -- "$dir/source"
}
