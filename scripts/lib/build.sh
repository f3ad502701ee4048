# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# The build of ka itself, and those of its tests with sanitizers.

# build_folder: print KA_BUILD, or a folder for this work tree and QEMU build.
build_folder() {
    local qemu
    qemu=$(qemu_folder patched)
    printf '%s\n' "${KA_BUILD:-$KA_CACHE/build/$(
        printf '%s\n' "$KA_ROOT" "$qemu" | hash_of)}"
}

# do_build [TARGET...]: build the targets, or everything.
do_build() {
    local build
    build=$(build_folder)
    if [ ! -e "$build/build.ninja" ]; then
        meson setup "$build" "$KA_ROOT" \
            -Dqemu_include="$(qemu_folder patched)/include"
    fi
    ninja -C "$build" "$@"
}

# built FOLDER [TARGET...]: true if they are newer than their sources.
built() {
    [ -e "$1/build.ninja" ] &&
        ninja -C "$@" -n 2>&1 | grep -q 'no work to do'
}

missing_build() {
    built "$(build_folder)" "$@" && return 1
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
