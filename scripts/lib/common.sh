# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Sourced first by every shell script of this folder: paths, messages, how a
# step runs, how an artefact enters the cache. Sourcing it only sets variables.
#
# The cache has one folder for each artefact. Its name has a hash of what the
# artefact is made from. An artefact is made in tmp/ and then renamed, so a
# folder that exists is complete. A process locks the cache to change it.

set -euo pipefail
export LC_ALL=C
# The distribution's tools come first: another Python lacks its modules.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH
unset PYTHONHOME PYTHONPATH CDPATH

KA_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
KA_CACHE=$(realpath -ms "${KA_CACHE:-${HOME:-/root}/.cache/ka}")
KA_PYTHON=/usr/bin/python3
KA_LOGS=$KA_CACHE/log

# command_name SCRIPT: print the name by which users call a script.
command_name() {
    if [ -e "$KA_ROOT/installed" ]; then
        printf 'ka-%s\n' "${1#ka-}"
    else
        printf 'scripts/%s\n' "$1"
    fi
}

say() { printf '%s\n' "$*"; }
warn() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() { warn "$*"; exit "${KA_DIE_STATUS:-1}"; }

# bad_usage TEXT: print a line about a wrong command line, and exit.
bad_usage() { warn "$* (see --help)"; exit "${KA_USAGE_STATUS:-2}"; }

# need_value OPTION COUNT: exit if COUNT words have no value for the option.
need_value() { [ "$2" -ge 2 ] || bad_usage "$1 needs a value"; }

elapsed() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

# hash_of: print 16 hex digits of a hash of standard input.
hash_of() { sha256sum | cut -c1-16; }

# hash_files FILE...: print a hash of the names and contents of files.
hash_files() {
    local f
    for f in "$@"; do
        printf '%s\n' "${f##*/}"
        cat -- "$f"
    done | hash_of
}

# paths_owner: print the first line of the variable KA_PATHS; the others are
# what scripts/setup --paths prints.
paths_owner() { printf '%s|%s|%s\n' "$KA_ROOT" "$KA_CACHE" "${KA_BUILD-}"; }

# new_tmp NAME: make an empty folder for an artefact, and print its path.
new_tmp() {
    mkdir -p "$KA_CACHE/tmp"
    mktemp -d "$KA_CACHE/tmp/$1.XXXXXX"
}

# publish TMP FOLDER: move a complete artefact to its place. Make it readable by
# all: mktemp made the folder with mode 700.
publish() {
    chmod 755 "$1"
    mkdir -p "$(dirname "$2")"
    rm -rf -- "$2"
    mv -T -- "$1" "$2"
}

# take_lock: wait for the lock of the cache, and hold it until the process ends.
take_lock() {
    mkdir -p "$KA_CACHE" "$KA_LOGS"
    exec 9>>"$KA_CACHE/lock"
    if ! flock -n 9; then
        say "waiting for another set-up in $KA_CACHE to end"
        flock 9
    fi
    # No other set-up runs: files in tmp/ are from one that was interrupted.
    rm -rf -- "$KA_CACHE/tmp"
}

# --- steps -------------------------------------------------------------------

# step_watch PID TITLE LOG: on a terminal keep one line up to date until the
# process ends; elsewhere print a line.
step_watch() {
    local pid=$1 title=$2 log=$3 t0=$SECONDS width last
    if [ ! -t 1 ]; then
        say "$title ..."
        return
    fi
    while kill -0 "$pid" 2>/dev/null; do
        width=$(tput cols 2>/dev/null || echo 80)
        last=$(tail -c 400 "$log" 2>/dev/null | tr '\r\t' '\n ' |
               tail -n 1 | tr -cd '\40-\176') || last=
        last="[$(elapsed $((SECONDS - t0)))] $title  $last"
        printf '\r\033[K%s' "${last:0:width-1}"
        sleep 1
    done
    printf '\r\033[K'
}

step_failed() {
    local name=$1 title=$2 log=$3 took=$4
    {
        say "step '$name' ($title) failed after $(elapsed "$took")"
        say "  command: $(cat "$log.cmd" 2>/dev/null || echo unknown)"
        say "  log:     $log"
        tail -n 15 "$log" | sed 's/^/  | /'
    } >&2
}

# step NAME TITLE FUNCTION [ARG...]: run a function with its output in a log. Do
# not call step in a condition: bash does not stop at a failed command there.
step() {
    local name=$1 title=$2 log=$KA_LOGS/$1.log t0=$SECONDS pid
    shift 2
    mkdir -p "$KA_LOGS"
    rm -f "$log" "$log.cmd"
    # Its own process group, so that an interruption ends all its processes.
    set -m
    (
        set -eE
        trap 'printf "%s\n" "$BASH_COMMAND" > "$log.cmd"' ERR
        "$@"
    ) >"$log" 2>&1 </dev/null &
    pid=$!
    set +m
    # shellcheck disable=SC2064 # the group is known now
    trap "kill -TERM -- -$pid 2>/dev/null; exit 130" INT TERM HUP
    step_watch "$pid" "$title" "$log"
    if ! wait "$pid"; then
        trap - INT TERM HUP
        step_failed "$name" "$title" "$log" $((SECONDS - t0))
        return 1
    fi
    trap - INT TERM HUP
    say "$title: done in $(elapsed $((SECONDS - t0)))"
}
