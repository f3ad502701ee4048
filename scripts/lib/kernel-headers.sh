# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# What builds modules for a kernel that is built here from an older source.
# Newer sources have a script that keeps it, which kernel-build.sh runs. This is
# a file of its own so that a change of it does not build the other kernels
# again.

# Packages of sources without that script whose headers are kept.
kernel_headers_old=" linux-source-6[.]1 "
kernel_headers_hash=$(sha256sum "$KA_ROOT/scripts/lib/kernel-headers.sh")
kernel_headers_hash=${kernel_headers_hash:0:6}

# kernel_headers_are_old NAME: true if this file keeps the kernel's headers.
kernel_headers_are_old() {
    kernel_is_built "$1" &&
        [[ $kernel_headers_old = *" ${kernel_rows[$1]#* } "* ]]
}

# kernel_key NAME: print hashes of what a kernel is made from, beside the
# package.
kernel_key() {
    kernel_variant "$1"
    ! kernel_headers_are_old "$1" || printf '%s' "$kernel_headers_hash"
}

# kernel_headers_copy FROM TO PATH...: copy files and folders, without what the
# compiler made.
kernel_headers_copy() {
    local from=$1 to=$2
    shift 2
    tar -C "$from" --exclude='*.o' --exclude='.*.cmd' -cf - -- "$@" |
        tar -C "$to" -xf -
}

# kernel_headers_of_source ARCH: print what of the source in this folder builds
# modules.
kernel_headers_of_source() {
    printf '%s\n' Makefile include scripts
    find "arch/$1" -maxdepth 1 -type f -name 'Makefile*'
    find "arch/$1" -type d -name include -prune
}

# kernel_headers_of_build ARCH: print what the build in this folder made for
# modules: configuration, headers, symbols, and programs.
kernel_headers_of_build() {
    printf '%s\n' .config Module.symvers include scripts "arch/$1/include"
    find tools/objtool -maxdepth 1 -type f -name objtool
}

# kernel_headers_keep FOLDER NAME SOURCE: copy what builds modules for a kernel
# that was just built from the source into the folder.
kernel_headers_keep() {
    local dir=$1 source=$3 arch objects to list
    read -r arch _ <<<"${kernel_makes[$(kernel_arch "$2")]}"
    to=$dir/headers/usr/src/linux-headers-$(cat "$dir/release")
    objects=$(kernel_objects "$source" "$arch-gcc")
    mapfile -t list < <(cd "$source" && kernel_headers_of_source "$arch")
    kernel_headers_copy "$source" "$to" "${list[@]}"
    mapfile -t list < <(cd "$objects" && kernel_headers_of_build "$arch")
    kernel_headers_copy "$objects" "$to" "${list[@]}"
    cp "$objects/variables" "$to/.kernelvariables"
    touch "$objects/complete"
}
