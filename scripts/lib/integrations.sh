# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Other projects' programs that start ka, or read what it prints: for the long
# form of the tests.

# virtme-ng of a newer release of the distribution, which the tests' guests can
# be older than. Its packages are of Python only.
vng_program=$KA_CACHE/vng/vng

# vng_has_tools: vng looks at a kernel's file, and makes lists of its modules.
# Its guest has this machine's files, and needs udev to find its serial ports.
vng_has_tools() {
    [ -x /usr/bin/file ] && [ -x /usr/sbin/depmod ] &&
        [ -x /lib/systemd/systemd-udevd ]
}

do_vng() {
    local tmp final=$KA_CACHE/vng usr
    vng_has_tools || do_packages vng
    apt_view amd64-newer
    apt_refresh
    tmp=$(new_tmp vng)
    apt_unpack "$tmp" "$tmp/root" virtme-ng python3-argcomplete \
        python3-requests python3-urllib3 python3-idna python3-certifi \
        python3-chardet
    usr=$final/root/usr
    cat >"$tmp/vng" <<END
#!/bin/sh
export PATH=$usr/bin:\$PATH PYTHONPATH=$usr/lib/python3/dist-packages
exec $usr/bin/vng "\$@"
END
    chmod 755 "$tmp/vng"
    publish "$tmp" "$final"
}

missing_vng() {
    "$vng_program" --version >/dev/null 2>&1 && vng_has_tools && return 1
    echo "virtme-ng"
}

# A program of ours (tests/guest/lib/syzkaller.go) that prints what syzkaller
# finds in a console. It is built from a checkout of syzkaller with a folder
# vendor: that of the variable KA_SYZKALLER, else a clone.
syzkaller_folder=$KA_CACHE/syzkaller
syzkaller_source=$KA_ROOT/tests/guest/lib/syzkaller.go
syzkaller_git=https://github.com/google/syzkaller
syzkaller_commit=351cb5cf1aae9dba0fe20d76bd03ff67aaf96a2e
# A commit that has the packages which syzkaller needs. Later ones have none.
syzkaller_vendor=475a4c203afb8b7d3af51c4fd32bb170ff32a45e

# syzkaller_key: print what the program is built from.
syzkaller_key() {
    echo "${KA_SYZKALLER:-$syzkaller_commit}" \
        "$(hash_files "$syzkaller_source") reports"
}

# syzkaller_checkout FOLDER: make a tree of syzkaller's sources.
syzkaller_checkout() {
    local commit
    mkdir -p "$(dirname "$1")"
    if [ -n "${KA_SYZKALLER:-}" ]; then
        ln -s "$(realpath -e -- "$KA_SYZKALLER")" "$1"
        return
    fi
    git init -q "$1" || return
    for commit in $syzkaller_commit $syzkaller_vendor; do
        GIT_TERMINAL_PROMPT=0 timeout 900 git -C "$1" fetch -q --depth 1 \
            "$syzkaller_git" "$commit" || return
    done
    git -C "$1" checkout -q $syzkaller_commit -- dashboard pkg prog sys &&
        git -C "$1" checkout -q $syzkaller_vendor -- vendor
}

# Without a network there is a file with the reason in place of the program.
do_syzkaller() {
    local tmp
    [ -z "${KA_SYZKALLER:-}" ] || [ -d "$KA_SYZKALLER/vendor" ] ||
        die "KA_SYZKALLER=$KA_SYZKALLER: it has no folder vendor"
    tmp=$(new_tmp syzkaller)
    mkdir "$tmp/result"
    if syzkaller_checkout "$tmp/go/src/github.com/google/syzkaller"; then
        syzkaller_build "$tmp"
    else
        echo "syzkaller cannot be fetched from $syzkaller_git" |
            tee "$tmp/result/reason"
    fi
    publish "$tmp/result" "$syzkaller_folder"
    rm -rf -- "$tmp"
}

# syzkaller_build TMP: build TMP/result/report from TMP/go, by a Go of a newer
# release of the distribution, and copy the logs that its tests have. Not as a
# module, because the versions that the tree's go.mod wants would have to be
# fetched.
syzkaller_build() {
    local tmp=$1
    apt_view amd64-newer
    apt_refresh
    apt_unpack "$tmp" "$tmp/toolchain" golang-1.24-go golang-1.24-src
    env GO111MODULE=off GOPATH="$tmp/go" GOCACHE="$tmp/cache" CGO_ENABLED=0 \
        "$tmp/toolchain/usr/lib/go-1.24/bin/go" build \
        -o "$tmp/result/report" "$syzkaller_source"
    cp -r "$tmp/go/src/github.com/google/syzkaller/pkg/report/testdata/linux/\
report" "$tmp/result/reports"
    syzkaller_key >"$tmp/result/key"
}

missing_syzkaller() {
    [ "$(cat "$syzkaller_folder/key" 2>/dev/null)" = "$(syzkaller_key)" ] &&
        return 1
    echo "a reader of reports of syzkaller"
}
