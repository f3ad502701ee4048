# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-or-later
# What the scenarios share. Any step can fail when a fault is injected; then no
# more steps are done, but all that was done is undone. So a scenario leaves
# nothing behind, whatever fails.
#
#   use() { STEP && STEP...; }
#   undo() { what is also right if only some steps were done; }
#   load MODULE && use
#   finish $?
loaded=

# Load the module $1 with the parameters $2..., after those that it needs. A
# module that is loaded already or built in is skipped.
load() {
    wanted=$1
    shift
    for file in /share/modules/*.ko; do
        name=${file##*/???-}
        name=${name%.ko}
        [ ! -d "/sys/module/$name" ] || continue
        if [ "$name" = "$wanted" ]; then
            /share/ka-load "$file" "$@" || return
            loaded="$name $loaded"
            return
        fi
        /share/ka-load "$file" || return
        loaded="$name $loaded"
    done
}

# Unload all modules. A module may be in use for a moment.
unload() {
    for name in $loaded; do
        tries=30
        until rmmod "$name"; do
            tries=$((tries - 1))
            [ $tries -gt 0 ] || break
            sleep 0.1
        done
    done
}

# Run a command that undoes a step. It can fail by a fault, but only once.
twice() {
    "$@" || "$@"
}

# Wait up to two seconds until the file $1 is there.
wait_for() {
    tries=100
    until [ -e "$1" ]; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || return
        sleep 0.02
    done
}

# $1: the status of the steps
finish() {
    undo
    unload
    exit "$1"
}
