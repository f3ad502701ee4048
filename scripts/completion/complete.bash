# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2034  # items is set here and used below
#
# Completion of ka in bash.
# @tables@

# _ka_command WORD...: set command to the command that these words name, as
# words before the one to complete. Empty: the listing, which has no word.
_ka_command() {
    local items
    command=''
    if [ $# -gt 1 ] && _ka_options "$1 $2"; then
        command="$1 $2"
    elif [ $# -gt 0 ] && [ -n "$1" ] && _ka_options "$1"; then
        command=$1
    fi
}

# _ka_read: read the words before the one to complete. Set plain to those that
# are neither options nor values, command, and option to the option whose value
# is to be completed.
_ka_read() {
    local i items
    option='' command='' plain=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        [ "${COMP_WORDS[i]}" != = ] || continue     # bash splits --color=never
        if [ -n "$option" ]; then
            option=''
        elif [[ ${COMP_WORDS[i]} != -* ]]; then
            plain+=("${COMP_WORDS[i]}")
            _ka_command "${plain[@]}"
        elif _ka_choices "$command ${COMP_WORDS[i]}"; then
            option=${COMP_WORDS[i]}
        fi
    done
}

_ka() {
    local current=${COMP_WORDS[COMP_CWORD]} option command item
    local -a plain=() items=() more=()
    _ka_read
    COMPREPLY=()
    if [ -n "$option" ]; then
        _ka_choices "$command $option"
    elif [[ $current == -* ]]; then
        [ ${#plain[@]} -gt 0 ] || ! _ka_options - || more=("${items[@]}")
        _ka_options "$command"
        items=("${more[@]}" "${items[@]}")
    else
        [ "${plain[0]}" != help ] || plain=("${plain[@]:1}")
        _ka_words "${plain[*]}"
    fi
    if [ "${items[0]}" = @file ]; then
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
        return
    fi
    for item in "${items[@]}"; do
        [[ $item != "$current"* ]] || COMPREPLY+=("$item")
    done
}

complete -F _ka ka
