# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# QEMU: its source (the distribution's source package or a tarball), a patched
# build for each target, and the stock build.

qemu_src_dir=$KA_CACHE/qemu-source
qemu_series=$(sed -n 's/^series=//p' "$KA_ROOT/qemu-patches/UPSTREAM")

# Build -> its target. All but "stock" have the patches.
declare -A qemu_targets=(
    [patched]=x86_64
    [stock]=x86_64
    [aarch64]=aarch64
    [riscv64]=riscv64
)
qemu_common_flags=(
    --python="$KA_PYTHON"
    --without-default-features
    --enable-tcg --enable-plugins --enable-slirp --enable-virtfs
    --enable-attr --enable-cap-ng --enable-capstone --enable-fdt=system
    --disable-install-blobs --disable-docs --disable-download
)

# qemu_flags BUILD: print the flags of configure, one a line.
qemu_flags() {
    printf '%s\n' "--target-list=${qemu_targets[$1]}-softmmu" \
        "${qemu_common_flags[@]}"
}

# qemu_source: print the folder of the source in use; nothing if there is none.
qemu_source() { readlink -e "$qemu_src_dir/current" || true; }

qemu_patch_files() {
    sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$KA_ROOT/qemu-patches/series" |
        sed "s|^|$KA_ROOT/qemu-patches/|"
}

# qemu_folder BUILD: print the folder where the build is or will be.
qemu_folder() {
    local src files=()
    src=$(qemu_source)
    [ "$1" = stock ] || mapfile -t files < <(qemu_patch_files)
    printf '%s/qemu/%s-%s\n' "$KA_CACHE" "$1" "$({
        cat "${src:-/nonexistent}/id" 2>/dev/null
        qemu_flags "$1"
        printf '%s\n' "$(debian_codename)" "$(uname -m)"
        [ ${#files[@]} -eq 0 ] || cat "${files[@]}"
    } | hash_of)"
}

# qemu_binary BUILD: print the path of its program.
qemu_binary() {
    printf '%s/qemu-system-%s\n' "$(qemu_folder "$1")" "${qemu_targets[$1]}"
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

# A build always uses the same folders, so that ccache finds its results.
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
    dpkg-source --no-check -x "${dsc[0]}" "$to"
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

do_qemu_build() {
    local kind=$1 src work=$KA_CACHE/work tmp binary flags folder
    src=$(qemu_source)
    # Name the build by the patches as they are now: they may change meanwhile.
    folder=$(qemu_folder "$kind")
    binary=qemu-system-${qemu_targets[$kind]}
    mapfile -t flags < <(qemu_flags "$kind")
    mkdir -p "$work"
    qemu_unpack "$src" "$work/qemu"
    if [ "$kind" != stock ]; then
        (qemu_patch "$work/qemu")
    fi
    rm -rf -- "$work/build"
    mkdir "$work/build"
    (
        cd "$work/build" || exit
        export CCACHE_DIR=$KA_CACHE/ccache
        ../qemu/configure --cc="ccache gcc" "${flags[@]}"
        ninja "$binary"
    )
    tmp=$(new_tmp qemu)
    mkdir -p "$tmp/include"
    cp "$work/build/$binary" "$tmp/"
    strip --strip-debug "$tmp/$binary"
    cp "$work/qemu/include/qemu/qemu-plugin.h" "$tmp/include/"
    "$tmp/$binary" --version >"$tmp/version"
    publish "$tmp" "$folder"
    rm -rf -- "$work"
}

missing_qemu_build() {
    [ -n "$(qemu_source)" ] && [ -z "$opt_tarball" ] &&
        [ -e "$(qemu_folder "$1")/version" ] && return 1
    [ -n "$opt_tarball" ] && ! missing_qemu_source >/dev/null &&
        [ -e "$(qemu_folder "$1")/version" ] && return 1
    echo "QEMU $qemu_series.y build ($1)"
}
