# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Guest kernels that are built here, from the distribution's source. Files of
# tests/guest/kernels configure one: base.config, the architecture's, and the
# kernel's own. A later file may change a line of an earlier one. The result has
# the same files as a kernel that the distribution built, and System.map; and
# vmlinux if that has debug information.

# Architecture -> its name in the source, the image, the cross compiler's prefix
declare -A kernel_makes=(
    [amd64]="x86 bzImage"
    [arm64]="arm64 Image aarch64-linux-gnu-"
    [riscv64]="riscv Image riscv64-linux-gnu-"
)

# File of the configurations -> digits of a hash; and this file. One process
# computes all: each ka-run asks for the paths of all kernels.
declare -A kernel_hash=()
while read -r hash file; do
    kernel_hash[${file##*/}]=${hash:0:6}
done < <(sha256sum "$KA_ROOT"/tests/guest/kernels/*.config \
                   "$KA_ROOT/scripts/lib/kernel-build.sh")

kernel_is_built() { [ -n "${kernel_needs[$1]+x}" ]; }

kernel_title() {
    kernel_is_built "$1" && echo "build guest kernel $1" ||
        echo "fetch guest kernel $1"
}

# kernel_fragments NAME: print the paths of the files that configure the kernel.
kernel_fragments() {
    printf "$KA_ROOT/tests/guest/kernels/%s.config\n" base \
        "$(kernel_arch "$1")" "${1%-*}"
}

# kernel_variant NAME: print hashes of what the kernel is made from, beside the
# package.
kernel_variant() {
    local file view=${kernel_rows[$1]% *}
    kernel_is_built "$1" || return 0
    printf -- -
    for file in "${1%-*}.config" base.config "${view%%-*}.config" \
                kernel-build.sh; do
        printf '%s' "${kernel_hash[$file]}"
    done
}

# kernel_source PACKAGE: print the folder of the unpacked source. All kernels of
# a source are built from one folder, and write nothing to it.
kernel_source() {
    local tmp folder
    folder=$KA_CACHE/kernel-sources/$1-$(apt_candidate "$1")
    if [ ! -d "$folder" ]; then
        tmp=$(new_tmp source)
        apt_fetch "$tmp" "$1" >&2
        dpkg-deb -x "$tmp/$1"_*.deb "$tmp"
        mkdir "$tmp/source"
        tar -C "$tmp/source" --strip-components=1 -xf "$tmp/usr/src/$1".tar.*
        publish "$tmp/source" "$folder"
        rm -rf -- "$tmp"
    fi
    echo "$folder"
}

# kernel_merge FILE...: print the last line of each option in the files.
kernel_merge() {
    cat -- "$@" | awk '
        { name = $1 == "#" ? $2 : $1; sub(/=.*/, "", name) }
        name ~ /^CONFIG_/ {
            if (!(name in line)) order[++n] = name
            line[name] = $0
        }
        END { for (i = 1; i <= n; i++) print line[order[i]] }'
}

# kernel_configure CONFIG MAKE...: configure the kernel in this folder with the
# options of the file and what they need; fail if one of them was not set so.
kernel_configure() {
    local config=$1 line
    shift
    "$@" KCONFIG_ALLCONFIG="$config" allnoconfig
    while read -r line; do
        case $line in
        '# CONFIG'*) ! grep "^${line:2:${#line}-13}=" .config ;;
        *) grep -qxF -- "$line" .config ;;
        esac && continue
        echo "this kernel does not have: $line"
        return 1
    done <"$config"
}

# kernel_keep FOLDER RELEASE IMAGE: copy the kernel that was built in this
# folder.
kernel_keep() {
    local dir=$1 release=$2
    cp "$3" "$dir/vmlinuz-$release"
    ln -s "vmlinuz-$release" "$dir/vmlinuz"
    cp System.map "$dir/"
    cp .config "$dir/config"
    ! grep -q '^CONFIG_DEBUG_INFO=y' .config || cp vmlinux "$dir/"
    mkdir "$dir/modules"
    echo "$release" >"$dir/release"
}

# kernel_keep_headers FOLDER RELEASE MAKE...: copy what builds modules for the
# kernel. An older source cannot say what that is.
kernel_keep_headers() {
    local dir=$1 release=$2 script=scripts/package/install-extmod-build
    shift 2
    local to=$dir/headers/usr/src/linux-headers-$release
    mkdir -p "$to"
    [ -e "source/$script" ] || return 0
    # Without compilers it does not build programs again for the guest.
    "$@" run-command \
        KBUILD_RUN_COMMAND="env CC= HOSTCC= $PWD/source/$script $to"
    cp variables "$to/.kernelvariables"
}

# kernel_objects SOURCE WORD: print the folder that kernels of a source, an
# architecture and a compiler are compiled in. The folder stays, and make then
# compiles only what another configuration changes. A build that was interrupted
# may have left half a file: then, make begins with an empty folder.
kernel_objects() {
    local folder=$KA_CACHE/kernel-objects/${1##*/}-$2
    [ -e "$folder/complete" ] || rm -rf -- "$folder"
    mkdir -p "$folder"
    rm -f -- "$folder/complete"
    echo "$folder"
}

# kernel_build FOLDER NAME SOURCE: build a kernel into the folder. The lock of
# the cache is held, so no other process uses the objects.
kernel_build() {
    local dir=$1 name=$2 source=$3 files arch image cross cc make release
    local objects
    read -r arch image cross <<<"${kernel_makes[$(kernel_arch "$name")]}"
    cc=gcc make=("ARCH=$arch" "CROSS_COMPILE=$cross")
    if [ "${kernel_needs[$name]}" = llvm ]; then
        cc=clang-$llvm_version make+=("LLVM=-$llvm_version")
    fi
    mapfile -t files < <(kernel_fragments "$name")
    objects=$(kernel_objects "$source" "$arch-$cc")
    kernel_merge "${files[@]}" >"$dir/wanted.config"
    (
        cd "$objects"
        rm -f .version      # the number of builds, which a kernel shows
        export KBUILD_BUILD_USER=ka KBUILD_BUILD_HOST=ka
        export CCACHE_DIR=$KA_CACHE/ccache
        printf '%s\n' "${make[@]}" "CC=$cc" | sed 's/=/ = /' >variables
        make -C "$source" O="$PWD" "${make[@]}" outputmakefile
        make=(make "${make[@]}" "CC=ccache $cross$cc")
        kernel_configure "$dir/wanted.config" "${make[@]}"
        nice "${make[@]}" -j"$(nproc)" "$image" modules
        release=$("${make[@]}" -s kernelrelease)
        kernel_keep "$dir" "$release" "arch/$arch/boot/$image"
        kernel_keep_headers "$dir" "$release" "${make[@]}"
    )
    touch "$objects/complete"
    rm -f -- "$dir/wanted.config"
}
