# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Sourced first by every script here: where things are, how a step runs, how
# an artefact enters the cache. Nothing is executed but settings.
#
# The cache holds one folder an artefact, named by a hash of what it is made
# from. An artefact is made in tmp/ and renamed, so a folder that is there is
# complete. Whoever changes the cache holds its lock.

set -euo pipefail
export LC_ALL=C
# The distribution's tools first: a private python would lack its modules.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH
unset PYTHONHOME PYTHONPATH CDPATH

KA_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
KA_CACHE=$(realpath -ms "${KA_CACHE:-${HOME:-/root}/.cache/ka}")
KA_PYTHON=/usr/bin/python3
KA_LOGS=$KA_CACHE/log

say() { printf '%s\n' "$*"; }
warn() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() { warn "$*"; exit "${KA_DIE_STATUS:-1}"; }

# bad_usage TEXT: one line for a wrong command line.
bad_usage() { warn "$* (--help tells more)"; exit "${KA_USAGE_STATUS:-2}"; }

# need_value OPTION COUNT: an option that takes a value has one.
need_value() { [ "$2" -ge 2 ] || bad_usage "$1 needs a value"; }

elapsed() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

# hash_of: 16 hex digits for the bytes on stdin.
hash_of() { sha256sum | cut -c1-16; }

# hash_files FILE...: stands for the names and contents of files.
hash_files() {
    local f
    for f in "$@"; do
        printf '%s\n' "${f##*/}"
        cat -- "$f"
    done | hash_of
}

# new_tmp NAME: an empty folder in which an artefact is made.
new_tmp() {
    mkdir -p "$KA_CACHE/tmp"
    mktemp -d "$KA_CACHE/tmp/$1.XXXXXX"
}

# publish TMP FOLDER: the artefact is complete. Readable by all, as mktemp's
# mode would be the folder's for good.
publish() {
    chmod 755 "$1"
    mkdir -p "$(dirname "$2")"
    rm -rf -- "$2"
    mv -T -- "$1" "$2"
}

# take_lock: one set-up at a time; held until the process ends.
take_lock() {
    mkdir -p "$KA_CACHE" "$KA_LOGS"
    exec 9>>"$KA_CACHE/lock"
    if ! flock -n 9; then
        say "waiting for another set-up in $KA_CACHE to end"
        flock 9
    fi
    # Nobody else is at work: what lies in tmp/ was left by an interruption.
    rm -rf -- "$KA_CACHE/tmp"
}

# --- steps -------------------------------------------------------------------

# On a terminal one line is kept up to date; elsewhere two plain lines a step.
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

# step NAME TITLE FUNCTION [ARG...]: run it with its output in a log. Not to be
# called in a condition: bash would not stop at a failing command then.
step() {
    local name=$1 title=$2 log=$KA_LOGS/$1.log t0=$SECONDS pid
    shift 2
    mkdir -p "$KA_LOGS"
    rm -f "$log" "$log.cmd"
    # A process group of its own, so that an interruption ends all of it.
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
