# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Guest kernels of the distribution, with their modules and the headers that
# test modules are built with; busybox; firmware; GRUB; the guest's initramfs.

# Name -> the view of the archive (see apt.sh), and a package: the one that
# depends on the newest build of the series. If a series has no such package,
# the row has a pattern, and the newest package that matches is the kernel.
declare -A kernel_rows=(
    [6.12]="amd64 linux-image-6.12-cloud-amd64"
    [6.1]="amd64 linux-image-cloud-amd64"
    [6.12-generic]="amd64 linux-image-6.12-amd64"
    [6.12-rt]="amd64 linux-image-6.12-rt-amd64"
    [6.1-generic]="amd64 linux-image-amd64"
    [6.1-rt]="amd64 linux-image-rt-amd64"
    [5.10]="amd64-older linux-image-cloud-amd64"
    [6.18]="amd64-newer linux-image-6[.]18[.].*-cloud-amd64"
    [7.3]="amd64-newer linux-image-7[.]3[.].*-cloud-amd64"
    [arm64-6.12]="arm64 linux-image-6.12-cloud-arm64"
    [arm64-6.1]="arm64 linux-image-cloud-arm64"
    [arm64-6.12-16k]="arm64 linux-image-6.12-arm64-16k"
    [riscv64-6.12]="riscv64 linux-image-riscv64"
)
kernel_names=(6.12 6.1 6.12-generic 6.12-rt 6.1-generic 6.1-rt 5.10 6.18
              7.3 arm64-6.12 arm64-6.1 arm64-6.12-16k riscv64-6.12)

# Kernels of the distribution's source, which are built here (see
# kernel-build.sh): name, view of the archive, package; a step of set-up that
# the build needs, if any.
declare -A kernel_needs=()
while read -r name view package needs; do
    kernel_rows[$name]="$view $package"
    kernel_needs[$name]=$needs
    kernel_names+=("$name")
done <<'END'
kmemleak-6.12       amd64        linux-source-6[.]12
allocinfo-6.12      amd64        linux-source-6[.]12
nobtf-6.12          amd64        linux-source-6[.]12
dwarf-6.12          amd64        linux-source-6[.]12
noall-6.12          amd64        linux-source-6[.]12
fp-6.12             amd64        linux-source-6[.]12
guess-6.12          amd64        linux-source-6[.]12
tiny-6.12           amd64        linux-source-6[.]12
up-6.12             amd64        linux-source-6[.]12
kasan-6.12          amd64        linux-source-6[.]12
kasan-6.1           amd64        linux-source-6[.]1
kfence-6.12         amd64        linux-source-6[.]12
checks-6.12         amd64        linux-source-6[.]12
notrace-6.1         amd64        linux-source-6[.]1
slab-6.1            amd64        linux-source-6[.]1
slob-6.1            amd64        linux-source-6[.]1
lockdep-6.12        amd64        linux-source-6[.]12
ownrt-6.12          amd64        linux-source-6[.]12
modsyms-6.12        amd64        linux-source-6[.]12
randstruct-6.12     amd64        linux-source-6[.]12  gcc-plugins
clang-6.12          amd64        linux-source-6[.]12  llvm
lto-6.12            amd64        linux-source-6[.]12  llvm
nobtf-5.10          amd64-older  linux-source-5[.]10
arm64-kasan-6.12    arm64        linux-source-6[.]12  cross-arm64
arm64-kasan-generic-6.12  arm64  linux-source-6[.]12  cross-arm64
arm64-mte-6.12      arm64        linux-source-6[.]12  cross-arm64
arm64-64k-6.12      arm64        linux-source-6[.]12  cross-arm64
riscv64-nobtf-6.12  riscv64      linux-source-6[.]12  cross-riscv64
riscv64-kasan-6.12  riscv64      linux-source-6[.]12  cross-riscv64
END

kernel_view() { printf '%s\n' "${kernel_rows[$1]% *}"; }
kernel_arch() { printf '%s\n' "${kernel_rows[$1]%%[- ]*}"; }
kernel_package() { printf '%s\n' "${kernel_rows[$1]#* }"; }

# kernel_steps NAME: print the steps of set-up that the kernel needs to boot.
kernel_steps() {
    local arch
    arch=$(kernel_arch "$1")
    echo qemu-source
    case $arch in
    amd64) echo qemu busybox ;;
    *) echo "qemu-$(arch_name "$arch") busybox-$arch" ;;
    esac
    [ "$arch" != riscv64 ] || echo opensbi
    ! kernel_is_built "$1" || echo "kernel-tools ${kernel_needs[$1]}"
    echo "kernel-$1 initramfs-$1"
}

# kernel_current NAME: print the path of the link to the folder in use.
kernel_current() {
    printf '%s\n' "$KA_CACHE/kernels/$1/current$(kernel_key "$1")"
}

# kernel_folder NAME: print the folder in use; nothing if there is none.
kernel_folder() { readlink -e "$(kernel_current "$1")" || true; }

# kernel_relocate_headers ROOT FINAL: the makefiles of the packages name each
# other by absolute paths of an installed system. Change these to paths below
# the artefact.
kernel_relocate_headers() {
    local root=$1 final=$2
    [ -d "$root/usr/src" ] || return 0
    grep -rIlE --include=Makefile --include='.kernelvariables' \
        -e '/usr/(src|lib)/linux-' "$root/usr/src" |
        while read -r f; do
            sed -i -E "s#/usr/(src|lib)/linux-#$final/headers/usr/\1/linux-#g" \
                "$f"
        done
}

# kernel_wrap_tools FOLDER FINAL: make the tools of a newer release of the
# distribution run on this machine, with the libraries of that release.
kernel_wrap_tools() {
    local dir=$1 lib=$2/headers/lib f
    apt_unpack "$dir" "$dir/libs" libc6 libelf1t64 libzstd1 zlib1g
    mv "$dir/libs/usr/lib/x86_64-linux-gnu" "$dir/headers/lib"
    rm -rf -- "$dir/libs"
    find "$dir/headers/usr/lib" -type f -perm -1 | while read -r f; do
        # Not "ldd | grep -q": grep may end first, and ldd then fails.
        [[ $(ldd "$f" 2>&1) = *'not found'* ]] || continue
        mv "$f" "$f.bin"
        printf '#!/bin/sh\nexec %s/ld-linux-x86-64.so.2 %s "%s.bin" "$@"\n' \
            "$lib" "--library-path $lib" "$2${f#"$dir"}" >"$f"
        chmod 755 "$f"
    done
}

# kernel_fetch_tools FOLDER HEADERS FINAL: fetch the programs that build
# modules. They run here, so they are those of amd64. If the archive does not
# have the version that a kernel of another architecture needs, use those of
# our 6.12.
kernel_fetch_tools() {
    local dir=$1 wanted tools
    wanted=$(apt_depends "$2" 'linux-kbuild-.*')
    if [[ $apt_name = amd64-* ]]; then
        apt_unpack "$dir" "$dir/headers" "$wanted"
        [ "$apt_name" != amd64-newer ] || kernel_wrap_tools "$dir" "$3"
        return
    fi
    apt_view amd64
    apt_refresh
    tools=$wanted
    if [ -z "$(apt_candidate "$tools")" ]; then
        tools=$(apt_depends "$(kernel_package 6.12)" 'linux-image-[0-9].*')
        tools=$(apt_depends "${tools/image/headers}" 'linux-kbuild-.*')
    fi
    apt_unpack "$dir" "$dir/headers" "$tools"
    [ "$tools" = "$wanted" ] ||
        ln -s "$tools" "$dir/headers/usr/lib/$wanted"
}

# kernel_fetch_headers FOLDER HEADERS FINAL: unpack the headers to
# FOLDER/headers. The archive keeps an image longer than its headers. A kernel
# without headers gets no test modules.
kernel_fetch_headers() {
    local dir=$1
    mkdir "$dir/headers"
    [ -n "$(apt_candidate "$2")" ] || return 0
    apt_unpack "$dir" "$dir/headers" "$2" \
        "$(apt_depends "$2" 'linux-headers-.*-common(-rt)?')"
    kernel_fetch_tools "$dir" "$2" "$3"
}

# kernel_fetch FOLDER IMAGE RELEASE FINAL: unpack a kernel to root/ and
# headers/. A newer image package is empty and depends on packages with the
# parts.
kernel_fetch() {
    local dir=$1 parts=("$2") part
    for part in "linux-binary-$3" "linux-modules-$3" "linux-base-$3"; do
        [ -z "$(apt_candidate "$part")" ] || parts+=("$part")
    done
    apt_unpack "$dir" "$dir/root" "${parts[@]}"
    kernel_fetch_headers "$dir" "linux-headers-$3" "$4"
}

# kernel_image NAME: print the package of its newest build.
kernel_image() {
    local package
    package=$(kernel_package "$1")
    case $package in
    *\[*) apt_newest "$package" ;;
    *) apt_depends "$package" 'linux-image-[0-9].*' ;;
    esac
}

# kernel_arrange FOLDER RELEASE: move the files from the distribution's places
# in root/ to ours. riscv64's image is named vmlinux, but is no ELF file.
kernel_arrange() {
    local dir=$1 release=$2 modules=$1/root/lib/modules/$2
    [ -d "$modules" ] || modules=$dir/root/usr/lib/modules/$release
    if [ -e "$modules/vmlinuz" ]; then
        mv "$modules/vmlinuz" "$dir/vmlinuz-$release"
        mv "$modules/config" "$dir/config"
    else
        mv "$dir/root/boot"/vmlinu[xz]-"$release" "$dir/vmlinuz-$release"
        mv "$dir/root/boot/config-$release" "$dir/config"
    fi
    mv "$modules" "$dir/modules"
    ln -s "vmlinuz-$release" "$dir/vmlinuz"
    rm -rf -- "$dir/root"
}

# kernel_unpack FOLDER IMAGE FINAL: fetch a kernel that the distribution built.
kernel_unpack() {
    local dir=$1 release=${2#linux-image-}
    kernel_fetch "$dir" "$2" "$release" "$3"
    kernel_relocate_headers "$dir/headers" "$3"
    kernel_arrange "$dir" "$release"
    echo "$release" >"$dir/release"
}

do_kernel() {
    local name=$1 image version tmp final source
    apt_view "$(kernel_view "$name")"
    apt_refresh
    image=$(kernel_image "$name") || true
    if [ -z "$image" ]; then
        echo "the archive has no $(kernel_package "$name") (any more)"
        return 1
    fi
    version=$(apt_candidate "$image")$(kernel_key "$name")
    final=$KA_CACHE/kernels/$name/$version
    tmp=$(new_tmp kernel)
    if kernel_is_built "$name"; then
        source=$(kernel_source "$image")
        kernel_build "$tmp" "$name" "$source"
        ! kernel_headers_are_old "$name" ||
            kernel_headers_keep "$tmp" "$name" "$source"
    else
        kernel_unpack "$tmp" "$image" "$final"
    fi
    kernel_arch "$name" >"$tmp/arch"
    echo "$version" >"$tmp/id"
    publish "$tmp" "$final"
    ln -sfn "$version" "$(kernel_current "$name")"
}

missing_kernel() {
    [ -n "$(kernel_folder "$1")" ] && return 1
    echo "guest kernel $1"
}

# busybox_folder ARCH: print the folder of that busybox.
busybox_folder() {
    [ "$1" = amd64 ] && echo "$KA_CACHE/busybox" || echo "$KA_CACHE/busybox-$1"
}

do_busybox() {
    local tmp
    apt_view "$1"
    apt_refresh
    tmp=$(new_tmp busybox)
    apt_unpack "$tmp" "$tmp/root" busybox-static
    find "$tmp/root" -name busybox -type f -exec mv {} "$tmp/busybox" \;
    rm -rf -- "$tmp/root"
    test -x "$tmp/busybox"
    publish "$tmp" "$(busybox_folder "$1")"
}

missing_busybox() {
    [ -x "$(busybox_folder "$1")/busybox" ] && return 1
    echo "busybox for the guest ($1)"
}

# --- OpenSBI -----------------------------------------------------------------
#
# The firmware that a riscv64 machine starts.

opensbi_file=$KA_CACHE/opensbi/fw_dynamic.bin

do_opensbi() {
    local tmp
    apt_view riscv64
    apt_refresh
    tmp=$(new_tmp opensbi)
    apt_unpack "$tmp" "$tmp/root" opensbi
    mv "$tmp"/root/usr/lib/riscv64-linux-gnu/opensbi/generic/fw_dynamic.bin \
        "$tmp/"
    rm -rf -- "$tmp/root"
    publish "$tmp" "$KA_CACHE/opensbi"
}

missing_opensbi() {
    [ -e "$opensbi_file" ] && return 1
    echo "firmware of riscv64 guests"
}

# --- GRUB --------------------------------------------------------------------
#
# The first sectors of a disk that boots. The packages are only unpacked.

do_grub() {
    local tmp
    apt_refresh
    tmp=$(new_tmp grub)
    apt_unpack "$tmp" "$tmp/root" grub-common grub-pc-bin libdevmapper1.02.1
    mv "$tmp/root/usr/lib/grub/i386-pc/boot.img" "$tmp/boot.img"
    LD_LIBRARY_PATH=$(dirname "$(find "$tmp/root" -name 'libdevmapper.so*' |
        head -n 1)") "$tmp/root/usr/bin/grub-mkimage" -O i386-pc \
        -d "$tmp/root/usr/lib/grub/i386-pc" -p '(hd0,msdos1)/boot/grub' \
        -o "$tmp/core.img" biosdisk part_msdos ext2 linux normal serial \
        terminal boot
    rm -rf -- "$tmp/root"
    publish "$tmp" "$KA_CACHE/grub"
}

missing_grub() {
    [ -e "$KA_CACHE/grub/core.img" ] && return 1
    echo "GRUB for the tests' disks"
}

# --- EFI firmware ------------------------------------------------------------

do_efi() {
    local tmp
    apt_refresh
    tmp=$(new_tmp efi)
    apt_unpack "$tmp" "$tmp/root" ovmf qemu-efi-aarch64
    cp -L "$tmp/root/usr/share/ovmf/OVMF.fd" "$tmp/x86_64.fd"
    cp -L "$tmp/root/usr/share/qemu-efi-aarch64/QEMU_EFI.fd" \
        "$tmp/aarch64.fd"
    rm -rf -- "$tmp/root"
    publish "$tmp" "$KA_CACHE/efi"
}

missing_efi() {
    [ -e "$KA_CACHE/efi/x86_64.fd" ] && return 1
    echo "EFI firmware for the tests' guests"
}

# --- initramfs ---------------------------------------------------------------

initramfs_src=$KA_ROOT/scripts/initramfs

# initramfs_hash: print the hash of what is the same in each initramfs.
initramfs_hash() {
    local files
    mapfile -t files < <(find "$initramfs_src" -type f | sort)
    hash_files "${files[@]}" "$KA_ROOT/scripts/lib/mkinitramfs.py"
}

# initramfs_folder NAME: print its folder. The variable initramfs_common may
# have the output of initramfs_hash.
initramfs_folder() {
    local kernel busybox
    kernel=$(kernel_folder "$1")
    if [ -z "$kernel" ]; then
        echo "$KA_CACHE/initramfs/$1-none"
        return
    fi
    busybox=$(busybox_folder "$(kernel_arch "$1")")/busybox
    printf '%s/initramfs/%s-%s\n' "$KA_CACHE" "$1" "$({
        echo "${initramfs_common:-$(initramfs_hash)}"
        stat -c %s "$busybox" 2>/dev/null
        cat "$kernel/id"
        echo "${arch_disks[$(arch_name "$(kernel_arch "$1")")]}"
    } | hash_of)"
}

do_initramfs() {
    local name=$1 tmp arch driver
    arch=$(kernel_arch "$name")
    read -r _ _ driver <<<"${arch_disks[$(arch_name "$arch")]}"
    tmp=$(new_tmp initramfs)
    "$KA_PYTHON" "$KA_ROOT/scripts/lib/mkinitramfs.py" \
        --busybox "$(busybox_folder "$arch")/busybox" \
        --modules "$(kernel_folder "$name")/modules" --module "$driver" \
        --tree "$initramfs_src" --output "$tmp/initrd"
    publish "$tmp" "$(initramfs_folder "$name")"
}

missing_initramfs() {
    [ -n "$(kernel_folder "$1")" ] &&
        [ -e "$(initramfs_folder "$1")/initrd" ] && return 1
    echo "initramfs for guest kernel $1"
}
