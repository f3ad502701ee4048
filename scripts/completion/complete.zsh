#compdef ka
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Completion of ka in zsh.
# @tables@

# _ka_command WORD...: set command to the command that these words name. Empty:
# the listing, which has no word.
_ka_command() {
    local -a items
    command=''
    if (( $# > 1 )) && _ka_options "$1 $2"; then
        command="$1 $2"
    elif [[ -n $1 ]] && _ka_options $1; then
        command=$1
    fi
}

# _ka_read: read the words before the one to complete. Set plain to those that
# are neither options nor values, command, and option to the option whose value
# is to be completed.
_ka_read() {
    local i
    local -a items
    option='' command='' plain=()
    for ((i = 2; i < CURRENT; i++)); do
        if [[ -n $option ]]; then
            option=''
        elif [[ $words[i] != -* ]]; then
            plain+=("$words[i]")
            _ka_command "${plain[@]}"
        elif _ka_choices "$command $words[i]"; then
            option=$words[i]
        fi
    done
}

_ka() {
    local option command
    local -a plain items more
    _ka_read
    if [[ -n $option ]]; then
        _ka_choices "$command $option"
        if [[ $items[1] == @file ]]; then
            _files
        else
            _describe -t values value items
        fi
    elif [[ $words[CURRENT] == -* ]]; then
        (( $#plain )) || ! _ka_options - || more=("${items[@]}")
        _ka_options $command
        items=("${more[@]}" "${items[@]}")
        _describe -o -t options option items
    else
        [[ $plain[1] != help ]] || shift plain
        items=()
        _ka_words "${(j: :)plain}"
        _describe -t commands command items
    fi
}

if [[ $funcstack[1] == _ka ]]; then
    _ka "$@"
else
    compdef _ka ka
fi
