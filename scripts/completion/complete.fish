# SPDX-License-Identifier: GPL-2.0-or-later
#
# Completion of ka in fish.
# @tables@

# __ka_command WORD...: print the command that these words name; nothing: the
# listing, which has no word.
function __ka_command
    if set -q argv[2]; and __ka_options "$argv[1] $argv[2]" >/dev/null
        echo "$argv[1] $argv[2]"
    else if test -n "$argv[1]"; and __ka_options "$argv[1]" >/dev/null
        echo "$argv[1]"
    end
end

# __ka_complete: print what the word at the cursor can be.
function __ka_complete
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    set -l plain
    set -l option ''
    set -l command ''
    for word in $before[2..-1]
        if test -n "$option"
            set option ''
        else if not string match -q -- '-*' "$word"
            set -a plain "$word"
            set command (__ka_command $plain)
        else if __ka_choices "$command $word" >/dev/null
            set option "$word"
        end
    end
    if test -n "$option"
        set -l found (__ka_choices "$command $option")
        if string match -q '@file*' "$found[1]"
            __fish_complete_path "$current"
        else
            printf '%s\n' $found
        end
    else if string match -q -- '-*' "$current"
        set -q plain[1]; or __ka_options -
        __ka_options "$command"
    else
        test "$plain[1]" != help; or set -e plain[1]
        __ka_words "$plain"
    end
end

complete -c ka -f -a '(__ka_complete)'
