# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Guest kernels as the distribution ships them, their modules and the headers
# to build test modules with; busybox; the guest's initramfs.

# Name -> the package that depends on the newest build of that series.
declare -A kernel_packages=(
    [6.12]=linux-image-6.12-cloud-amd64
    [6.1]=linux-image-cloud-amd64
    [6.12-rt]=linux-image-6.12-rt-amd64
)
kernel_names=(6.12 6.1 6.12-rt)

# kernel_folder NAME: the folder of the kernel in use, empty when none.
kernel_folder() { readlink -e "$KA_CACHE/kernels/$1/current" || true; }

# The packages' makefiles name each other by absolute paths of an installed
# system; here they live below the artefact.
kernel_relocate_headers() {
    local root=$1 final=$2
    grep -rIlE --include=Makefile --include='.kernelvariables' \
        -e '/usr/(src|lib)/linux-' "$root/usr/src" |
        while read -r f; do
            sed -i -E "s#/usr/(src|lib)/linux-#$final/headers/usr/\1/linux-#g" \
                "$f"
        done
}

do_kernel() {
    local name=$1 image release version tmp deb
    apt_refresh
    image=$(apt_depends "${kernel_packages[$name]}" 'linux-image-[0-9].*')
    release=${image#linux-image-}
    version=$(apt_candidate "$image")
    tmp=$(new_tmp kernel)
    mkdir "$tmp/deb" "$tmp/root" "$tmp/headers"
    apt_fetch "$tmp/deb" "$image" "linux-headers-$release" \
        "$(apt_depends "linux-headers-$release" \
            'linux-headers-.*-common(-rt)?')" \
        "$(apt_depends "linux-headers-$release" 'linux-kbuild-.*')"
    dpkg-deb -x "$tmp/deb/${image}"_*.deb "$tmp/root"
    for deb in "$tmp"/deb/linux-{headers,kbuild}-*.deb; do
        dpkg-deb -x "$deb" "$tmp/headers"
    done
    kernel_relocate_headers "$tmp/headers" \
        "$KA_CACHE/kernels/$name/$version"
    mv "$tmp/root/boot/vmlinuz-$release" "$tmp/"
    ln -s "vmlinuz-$release" "$tmp/vmlinuz"
    mv "$tmp/root/boot/config-$release" "$tmp/config"
    if [ -d "$tmp/root/usr/lib/modules" ]; then
        mv "$tmp/root/usr/lib/modules/$release" "$tmp/modules"
    else
        mv "$tmp/root/lib/modules/$release" "$tmp/modules"
    fi
    rm -rf -- "$tmp/deb" "$tmp/root"
    echo "$release" >"$tmp/release"
    echo "$version" >"$tmp/id"
    publish "$tmp" "$KA_CACHE/kernels/$name/$version"
    ln -sfn "$version" "$KA_CACHE/kernels/$name/current"
}

missing_kernel() {
    [ -n "$(kernel_folder "$1")" ] && return 1
    echo "guest kernel $1"
}

do_busybox() {
    local tmp
    apt_refresh
    tmp=$(new_tmp busybox)
    apt_fetch "$tmp" busybox-static
    dpkg-deb -x "$tmp"/busybox-static_*.deb "$tmp/root"
    find "$tmp/root" -name busybox -type f -exec mv {} "$tmp/busybox" \;
    rm -rf -- "$tmp/root" "$tmp"/*.deb
    test -x "$tmp/busybox"
    publish "$tmp" "$KA_CACHE/busybox"
}

missing_busybox() {
    [ -x "$KA_CACHE/busybox/busybox" ] && return 1
    echo "busybox for the guest"
}

# --- GRUB --------------------------------------------------------------------
#
# Only what a disk begins with; the packages are not installed.

do_grub() {
    local tmp package
    apt_refresh
    tmp=$(new_tmp grub)
    apt_fetch "$tmp" grub-common grub-pc-bin libdevmapper1.02.1
    for package in "$tmp"/*.deb; do
        dpkg-deb -x "$package" "$tmp/root"
    done
    mv "$tmp/root/usr/lib/grub/i386-pc/boot.img" "$tmp/boot.img"
    LD_LIBRARY_PATH=$(dirname "$(find "$tmp/root" -name 'libdevmapper.so*' |
        head -n 1)") "$tmp/root/usr/bin/grub-mkimage" -O i386-pc \
        -d "$tmp/root/usr/lib/grub/i386-pc" -p '(hd0,msdos1)/boot/grub' \
        -o "$tmp/core.img" biosdisk part_msdos ext2 linux normal serial \
        terminal boot
    rm -rf -- "$tmp/root" "$tmp"/*.deb
    publish "$tmp" "$KA_CACHE/grub"
}

missing_grub() {
    [ -e "$KA_CACHE/grub/core.img" ] && return 1
    echo "GRUB for the tests' disks"
}

# --- initramfs ---------------------------------------------------------------

initramfs_src=$KA_ROOT/tests/guest/initramfs

initramfs_folder() {
    local files kernel
    kernel=$(kernel_folder "$1")
    mapfile -t files < <(find "$initramfs_src" -type f | sort)
    printf '%s/initramfs/%s-%s\n' "$KA_CACHE" "$1" "$({
        hash_files "${files[@]}" "$KA_ROOT/scripts/lib/mkinitramfs.py"
        stat -c %s "$KA_CACHE/busybox/busybox" 2>/dev/null
        cat "${kernel:-/nonexistent}/id" 2>/dev/null
    } | hash_of)"
}

do_initramfs() {
    local name=$1 tmp
    tmp=$(new_tmp initramfs)
    "$KA_PYTHON" "$KA_ROOT/scripts/lib/mkinitramfs.py" \
        --busybox "$KA_CACHE/busybox/busybox" \
        --tree "$initramfs_src" --output "$tmp/initrd"
    publish "$tmp" "$(initramfs_folder "$name")"
}

missing_initramfs() {
    [ -n "$(kernel_folder "$1")" ] &&
        [ -e "$(initramfs_folder "$1")/initrd" ] && return 1
    echo "initramfs for guest kernel $1"
}
