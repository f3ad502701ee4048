# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# QEMU: its source (the distribution's source package or a tarball), a patched
# build for each target, and the stock build.
#
# Two thirds of QEMU's files are the same for all targets. So the patched builds
# have one build folder, which is configured for all of them. A step makes the
# program of its target there; the others are made on demand. The folder is
# removed when the last target is there.

qemu_src_dir=$KA_CACHE/qemu-source
qemu_series=$(sed -n 's/^series=//p' "$KA_ROOT/qemu-patches/UPSTREAM")

# Build -> its target, and the source that it is made from.
declare -A qemu_targets=(
    [patched]="x86_64 patched"
    [aarch64]="aarch64 patched"
    [riscv64]="riscv64 patched"
    [stock]="x86_64 stock"
)
qemu_common_flags=(
    --python="$KA_PYTHON"
    --without-default-features
    --enable-tcg --enable-kvm --enable-plugins --enable-slirp --enable-virtfs
    --enable-attr --enable-cap-ng --enable-capstone --enable-fdt=system
    --disable-install-blobs --disable-docs --disable-download
    --disable-debug-info
)

qemu_target() { printf '%s\n' "${qemu_targets[$1]% *}"; }

# qemu_builds SOURCE: print the builds that are made from that source.
qemu_builds() {
    local build
    for build in patched aarch64 riscv64 stock; do
        [ "${qemu_targets[$build]#* }" != "$1" ] || echo "$build"
    done
}

# qemu_flags BUILD...: print the flags that configure one folder for these.
qemu_flags() {
    local build targets=''
    for build in "$@"; do
        targets+=,$(qemu_target "$build")-softmmu
    done
    printf '%s\n' "--target-list=${targets#,}" "${qemu_common_flags[@]}"
}

# qemu_source: print the folder of the source in use; nothing if there is none.
qemu_source() { readlink -e "$qemu_src_dir/current" || true; }

qemu_patch_files() {
    sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$KA_ROOT/qemu-patches/series" |
        sed "s|^|$KA_ROOT/qemu-patches/|"
}

# qemu_key SOURCE FLAG...: print a hash of what QEMU is made from.
qemu_key() {
    local src files=() source=$1
    shift
    src=$(qemu_source)
    [ "$source" = stock ] || mapfile -t files < <(qemu_patch_files)
    {
        cat "${src:-/nonexistent}/id" 2>/dev/null
        printf '%s\n' "$@" "$(debian_codename)" "$(uname -m)"
        [ ${#files[@]} -eq 0 ] || cat "${files[@]}"
    } | hash_of
}

# qemu_build_key SOURCE: print the key of its builds. They share a folder.
qemu_build_key() {
    local builds flags
    mapfile -t builds < <(qemu_builds "$1")
    mapfile -t flags < <(qemu_flags "${builds[@]}")
    qemu_key "$1" "${flags[@]}"
}

# qemu_folder BUILD [KEY]: print the folder where the build is or will be.
qemu_folder() {
    printf '%s/qemu/%s-%s\n' "$KA_CACHE" "$1" \
        "${2:-$(qemu_build_key "${qemu_targets[$1]#* }")}"
}

# qemu_binary BUILD: print the path of its program.
qemu_binary() {
    printf '%s/qemu-system-%s\n' "$(qemu_folder "$1")" "$(qemu_target "$1")"
}

# --- source ------------------------------------------------------------------

# qemu_versions: print the versions of the series in the source lists, newest
# first. All of them, because an index may list files that are not there yet.
qemu_versions() {
    apt-cache "${apt_private[@]}" showsrc --only-source qemu |
        sed -n 's/^Version: //p' | grep -E "^1:${qemu_series//./\\.}\." |
        sort -Vru
}

qemu_fetch_package() {
    local tmp version
    apt_refresh "$@"
    tmp=$(new_tmp qemu-source)
    for version in $(qemu_versions); do
        echo "trying $version"
        if (cd "$tmp" && apt-get "${apt_private[@]}" source --download-only \
                --only-source "qemu=$version"); then
            echo "$version" >"$tmp/id"
            publish "$tmp" "$qemu_src_dir/${version//[^A-Za-z0-9.+~-]/_}"
            ln -sfn "${version//[^A-Za-z0-9.+~-]/_}" "$qemu_src_dir/current"
            return 0
        fi
        rm -rf -- "${tmp:?}"/*
    done
    echo "no source package of QEMU $qemu_series.y could be fetched"
    return 1
}

qemu_fetch_tarball() {
    local tarball=$1 version tmp id
    version=$(tar -xOf "$tarball" --wildcards --no-wildcards-match-slash \
              '*/VERSION')
    case $version in
    "$qemu_series".*) ;;
    *) echo "$tarball is QEMU '$version', not $qemu_series.y"; return 1 ;;
    esac
    id=$version-$(sha256sum <"$tarball" | cut -c1-16)
    tmp=$(new_tmp qemu-source)
    cp "$tarball" "$tmp/upstream.tarball"
    echo "$id" >"$tmp/id"
    publish "$tmp" "$qemu_src_dir/$id"
    ln -sfn "$id" "$qemu_src_dir/current"
}

do_qemu_source() {
    if [ -n "$opt_tarball" ]; then
        qemu_fetch_tarball "$opt_tarball"
    else
        qemu_fetch_package || qemu_fetch_package force
    fi
}

# missing_qemu_source: print what is missing; fail if nothing is missing.
missing_qemu_source() {
    local src
    src=$(qemu_source)
    if [ -n "$opt_tarball" ]; then
        local want
        want=$(sha256sum <"$opt_tarball" | cut -c1-16)
        [ -n "$src" ] && [[ $(cat "$src/id") == *-"$want" ]] && return 1
        echo "QEMU source from $opt_tarball"
        return 0
    fi
    [ -n "$src" ] && return 1
    echo "QEMU $qemu_series.y source"
}

# --- build -------------------------------------------------------------------

# qemu_unpack SOURCE FOLDER: unpack without the firmware's sources, which are
# larger than all the rest.
qemu_unpack() {
    local src=$1 to=$2 dsc
    rm -rf -- "$to"
    if [ -e "$src/upstream.tarball" ]; then
        mkdir -p "$to"
        tar -xf "$src/upstream.tarball" -C "$to" --strip-components=1 \
            --exclude='*/roms/*'
        return
    fi
    dsc=("$src"/*.dsc)
    # apt has compared the files with its signed index.
    dpkg-source --no-check --no-copy -x "${dsc[0]}" "$to"
    rm -rf -- "${to:?}"/roms/*
}

qemu_git() {
    git -c user.name=ka -c user.email=ka@localhost -c core.autocrlf=false \
        -c gc.auto=0 -c commit.gpgsign=false -c core.hooksPath=/dev/null \
        -c init.defaultBranch=main "$@"
}

# Apply the patches with git am, which allows no fuzz: a patch that does not
# apply exactly ends the step.
qemu_patch() {
    local files
    mapfile -t files < <(qemu_patch_files)
    cd "$1" || return
    qemu_git init -q
    qemu_git add -A -f
    qemu_git commit -q -m "source as unpacked"
    [ ${#files[@]} -eq 0 ] || qemu_git am --keep-non-patch "${files[@]}"
}

# qemu_configure FOLDER SOURCE KEY FLAG...: prepare qemu/ and build/ in FOLDER,
# unless they were prepared with this key.
qemu_configure() {
    local work=$1 source=$2 key=$3
    shift 3
    [ "$(cat "$work/key" 2>/dev/null)" != "$key" ] || return 0
    rm -rf -- "$work"
    mkdir -p "$work/build"
    qemu_unpack "$(qemu_source)" "$work/qemu"
    if [ "$source" != stock ]; then
        (qemu_patch "$work/qemu")
        rm -rf -- "$work/qemu/.git"
    fi
    (
        cd "$work/build" || exit
        ../qemu/configure --cc="ccache gcc" "$@"
    )
    echo "$key" >"$work/key"
}

# qemu_publish BUILD WORK KEY: copy the build's program to its place.
qemu_publish() {
    local tmp program
    program=qemu-system-$(qemu_target "$1")
    tmp=$(new_tmp qemu)
    mkdir -p "$tmp/include"
    cp "$2/build/$program" "$tmp/"
    strip --strip-debug "$tmp/$program"
    cp "$2/qemu/include/qemu/qemu-plugin.h" "$tmp/include/"
    "$tmp/$program" --version >"$tmp/version"
    publish "$tmp" "$(qemu_folder "$1" "$3")"
}

# do_qemu_build BUILD. The folder's name is always the same, so that ccache
# finds its results after a change of the patches. CCACHE_DEPEND: it reads the
# files that the compiler read, and starts no preprocessor.
do_qemu_build() {
    local source=${qemu_targets[$1]#* } work key build builds flags
    work=$KA_CACHE/work/$source
    export CCACHE_DIR=$KA_CACHE/ccache CCACHE_BASEDIR=$work CCACHE_DEPEND=1
    mapfile -t builds < <(qemu_builds "$source")
    mapfile -t flags < <(qemu_flags "${builds[@]}")
    # Name the build by the patches as they are now: they may change meanwhile.
    key=$(qemu_key "$source" "${flags[@]}")
    qemu_configure "$work" "$source" "$key" "${flags[@]}"
    ninja -C "$work/build" "qemu-system-$(qemu_target "$1")"
    qemu_publish "$1" "$work" "$key"
    for build in "${builds[@]}"; do
        [ -e "$(qemu_folder "$build" "$key")/version" ] || return 0
    done
    rm -rf -- "$work"
}

missing_qemu_build() {
    [ -n "$(qemu_source)" ] && [ -z "$opt_tarball" ] &&
        [ -e "$(qemu_folder "$1")/version" ] && return 1
    [ -n "$opt_tarball" ] && ! missing_qemu_source >/dev/null &&
        [ -e "$(qemu_folder "$1")/version" ] && return 1
    echo "QEMU $qemu_series.y build ($1)"
}
