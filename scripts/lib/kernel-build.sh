# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Guest kernels that are built here, from the distribution's source. A file of
# tests/guest whose name begins as the kernel's name configures one. The result
# has the same files as a kernel that the distribution built.

kernel_is_built() { [[ $(kernel_package "$1") = linux-source-* ]]; }
kernel_config() { printf '%s\n' "$KA_ROOT/tests/guest/kernels/${1%%-*}.config"; }

kernel_title() {
    kernel_is_built "$1" && echo "build guest kernel $1" ||
        echo "fetch guest kernel $1"
}

# kernel_variant NAME: print a hash of what the kernel is made from, beside the
# package.
kernel_variant() {
    ! kernel_is_built "$1" || printf -- '-%s\n' \
        "$(hash_files "$(kernel_config "$1")" \
                      "$KA_ROOT/scripts/lib/kernel-build.sh")"
}

# kernel_configure CONFIG: configure the kernel with the options of the file and
# what they need; fail if one of them was not set.
kernel_configure() {
    local line
    make KCONFIG_ALLCONFIG="$1" allnoconfig
    grep '^CONFIG_' "$1" | while read -r line; do
        grep -qxF -- "$line" .config && continue
        echo "this kernel does not have: $line"
        return 1
    done
}

# kernel_keep FOLDER: copy the built kernel, and what builds modules for it.
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

# kernel_build FOLDER PACKAGE CONFIG: build a source package into the folder.
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
