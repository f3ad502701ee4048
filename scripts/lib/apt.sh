# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# A private view of the distribution's archive: suites that the machine does
# not have in its own configuration, fetched from the same mirror and checked
# with the same keys, with lists and caches of its own. The machine's apt
# configuration is read, never written.

# The guest is a Debian 12 system for any host, so that tests mean the same.
GUEST_SUITE=bookworm
QEMU_SUITE=trixie
RISCV_SUITE=trixie
NEWER_SUITE=trixie
OLDER_SUITE=bullseye

# View -> what it lists: an architecture, or one and a name. The QEMU source is
# in amd64's. riscv64 came with the release after the guest's; newer kernels
# than the guest's release has are in the backports of that one, an older one is
# in the release before.
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
# What else a mirror calls a suite, until the next release.
declare -A suite_aliases=(
    [trixie]=stable [bookworm]=oldstable [bullseye]=oldoldstable
)

# apt_view VIEW: what the functions below look at from here on.
apt_view() {
    apt_name=$1
    apt_dir=$KA_CACHE/apt
    [ "$1" = amd64 ] || apt_dir+=-$1
    # Options that turn apt-get, apt-cache into the private ones. The status
    # file is empty: what the machine has installed must not shadow a
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

# apt_update_aliases: a mirror that is being synchronized may have lists of one
# name of a suite that belong to its Release file, and of another name not.
# An alias counts when it names one of our suites, now.
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

# apt_refresh [force]: the private lists are there and younger than a day.
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
    # A suite that is not there (any more) is no reason to give up: what is
    # looked for may be in another one.
    warn "some lists are missing"
    apt_update_aliases
}

# apt_fetch FOLDER PACKAGE...: binary packages of the view.
apt_fetch() {
    local dir=$1
    shift
    (cd "$dir" && apt-get "${apt_private[@]}" download "$@")
}

# apt_candidate PACKAGE: its newest version, empty when there is none.
apt_candidate() {
    apt-cache "${apt_private[@]}" policy "$1" |
        sed -n 's/^  Candidate: //p' | grep -vx '(none)' || true
}

# apt_newest PATTERN: of the packages of that name the one of the highest
# version in its name.
apt_newest() {
    apt-cache "${apt_private[@]}" pkgnames "${1%%[^a-z0-9-]*}" |
        grep -Ex -- "$1" | sort -V | tail -n 1
}

# apt_depends PACKAGE PATTERN: the first dependency that matches.
apt_depends() {
    apt-cache "${apt_private[@]}" show --no-all-versions "$1" |
        sed -n 's/^Depends: //p' | tr ',|' '\n\n' | awk '{print $1}' |
        grep -Ex -m 1 -- "$2"
}
