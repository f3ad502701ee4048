# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# A private view of the distribution's archive, with its own lists and caches:
# it has suites that the machine does not have in its configuration. They come
# from the same mirror and are checked with the same keys. The machine's apt
# configuration is read, never written.

# The guest is a Debian 12 system on any host, so that all hosts test the same.
GUEST_SUITE=bookworm
QEMU_SUITE=trixie
RISCV_SUITE=trixie
NEWER_SUITE=trixie
OLDER_SUITE=bullseye

# View -> the suites in it. A view is named by an architecture, or by one and a
# word. The QEMU source is in the view amd64. riscv64 came with the release
# after the guest's. That one's backports have newer kernels than the guest's
# release, and the release before has an older one.
guest_suites="deb:$GUEST_SUITE,$GUEST_SUITE-updates,$GUEST_SUITE-backports
    deb@security:$GUEST_SUITE-security"
declare -A apt_suites=(
    [amd64]="$guest_suites
        deb-src:$QEMU_SUITE,$QEMU_SUITE-updates,$QEMU_SUITE-backports
        deb-src@security:$QEMU_SUITE-security"
    [amd64-newer]="deb:$NEWER_SUITE,$NEWER_SUITE-backports"
    [amd64-older]="deb:$OLDER_SUITE,$OLDER_SUITE-updates
        deb@security:$OLDER_SUITE-security"
    [arm64]=$guest_suites
    [riscv64]="deb:$RISCV_SUITE,$RISCV_SUITE-updates
        deb@security:$RISCV_SUITE-security"
)
# Suite -> another name for it on a mirror, until the next release.
declare -A suite_aliases=(
    [trixie]=stable [bookworm]=oldstable [bullseye]=oldoldstable
)

# apt_view VIEW: select the view that the functions below use.
apt_view() {
    apt_name=$1
    apt_dir=$KA_CACHE/apt
    [ "$1" = amd64 ] || apt_dir+=-$1
    # Options that make apt-get and apt-cache use the private view. The status
    # file is empty: a package that the machine has installed must not hide a
    # candidate.
    apt_private=(
        -o "Dir::Etc::sourcelist=$apt_dir/ka.sources"
        -o "Dir::Etc::sourceparts=$apt_dir/aliases"
        -o "Dir::Etc::preferences=$apt_dir/none"
        -o "Dir::Etc::preferencesparts=-"
        -o "Dir::State=$apt_dir/state"
        -o "Dir::State::lists=$apt_dir/lists"
        -o "Dir::State::status=$apt_dir/status"
        -o "Dir::Cache=$apt_dir/cache"
        -o "Acquire::Languages=none"
        -o "APT::Sandbox::User=root"
        -o "APT::Architecture=${1%%-*}"
        -o "APT::Architectures::=${1%%-*}"
    )
}
apt_view amd64

debian_codename() { (. /etc/os-release && echo "${VERSION_CODENAME:-}"); }

apt_update() { apt-get "${apt_private[@]}" update; }

# apt_update_aliases: update by the other names of the suites. While a mirror
# is synchronised, the lists of one name of a suite may not belong to its
# Release file, but those of another name do. Drop an alias that does not name
# one of our suites at present.
apt_update_aliases() {
    local suite release script=''
    for suite in "${!suite_aliases[@]}"; do
        script+="s/\\b$suite\\b/${suite_aliases[$suite]}/g;"
    done
    sed "/^Suites:/{$script}" "$apt_dir/ka.sources" \
        >"$apt_dir/aliases/ka.sources"
    apt_update || true
    for release in "$apt_dir"/lists/*_InRelease; do
        suite=$(sed -n 's/^Codename: \([a-z]*\).*/\1/p' "$release" |
                head -n 1)
        grep -q "^Suites:.*\b${suite:-none}\b" "$apt_dir/ka.sources" ||
            rm -f -- "${release%InRelease}"*
    done
}

# apt_refresh [force]: update the private lists unless they are younger than a
# day.
apt_refresh() {
    local new=$apt_dir/ka.sources.new suites
    read -r -d '' -a suites <<<"${apt_suites[$apt_name]}" || true
    mkdir -p "$apt_dir"/{state,aliases,lists/partial,cache/archives/partial}
    : >"$apt_dir/status"
    : >"$apt_dir/none"
    "$KA_PYTHON" "$KA_ROOT/scripts/lib/aptsources.py" "${suites[@]}" >"$new"
    if [ "${1:-}" != force ] && cmp -s "$new" "$apt_dir/ka.sources" &&
       [ -n "$(find "$apt_dir/fetched" -mmin -1440 2>/dev/null)" ]; then
        return 0
    fi
    mv "$new" "$apt_dir/ka.sources"
    rm -f -- "$apt_dir/aliases/ka.sources" "$apt_dir/fetched"
    if apt_update; then
        touch "$apt_dir/fetched"
        return 0
    fi
    # A suite that the mirror does not have (any more) is no error here: the
    # package may be in another suite.
    warn "some lists are missing"
    apt_update_aliases
}

# apt_fetch FOLDER PACKAGE...: download binary packages of the view.
apt_fetch() {
    local dir=$1
    shift
    (cd "$dir" && apt-get "${apt_private[@]}" download "$@")
}

# apt_unpack FOLDER ROOT PACKAGE...: download packages to FOLDER, which has no
# others, and unpack them to ROOT.
apt_unpack() {
    local dir=$1 root=$2 deb
    shift 2
    apt_fetch "$dir" "$@"
    for deb in "$dir"/*.deb; do
        dpkg-deb -x "$deb" "$root"
    done
    rm -f -- "$dir"/*.deb
}

# apt_candidate PACKAGE: print its newest version; nothing if there is none.
apt_candidate() {
    apt-cache "${apt_private[@]}" policy "$1" |
        sed -n 's/^  Candidate: //p' | grep -vx '(none)' || true
}

# apt_newest PATTERN: of the packages whose names match, print the one with the
# highest version in its name.
apt_newest() {
    apt-cache "${apt_private[@]}" pkgnames "${1%%[^a-z0-9-]*}" |
        grep -Ex -- "$1" | sort -V | tail -n 1
}

# apt_depends PACKAGE PATTERN: print the first dependency that matches.
apt_depends() {
    apt-cache "${apt_private[@]}" show --no-all-versions "$1" |
        sed -n 's/^Depends: //p' | tr ',|' '\n\n' | awk '{print $1}' |
        grep -Ex -m 1 -- "$2"
}
