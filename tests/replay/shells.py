#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Completion of the program ka in bash, zsh and fish: each shell itself
completes many lines, and must find what the monitor completes.

usage: shells.py KA-COMPLETE BASH-FILE ZSH-FILE FISH-FILE
"""
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

KA_COMPLETE, BASH, ZSH, FISH = map(os.path.abspath, sys.argv[1:])
# Options of the program that come before the command, and those of some
# commands, which the monitor does not know.
FIRST = {'-f', '-q', '--at', '--types', '--color', '--cells', '--help'}
FOLLOW = {'--follow', '-o', '-p'}
OF_COMMANDS = {'log': FOLLOW, 'trace': FOLLOW,
               'calls': FOLLOW | {'--session'}, 'symbols': {'-o'},
               'export': {'-o'}, 'report': {'-o', '--findings'}}
VALUES = ('error --kind ', 'error --kind d', 'error --format ',
          'leak scan --format ', 'leak scan -n 3 --format k', 'log --level e',
          'log --format ', 'calls --format ', 'top --by ', 'fault log --by ',
          'top --sort l',
          'task --sort ', 'diff --by c', '1000 --state ', '--layer ',
          'alloc x --layer v', 'fault add kmalloc --do ', 'access on --only ',
          'cache --format ', 'struct --format p', 'export ',
          'export folded --frames ', 'export --value l')
OTHERS = ('', 'le', 's', 'leak ', 'leak s', 'help ', 'help f', 'help leak ',
          'help leak d', '-n 3 sh', '-s leak sc', 'leak -s sc', '-s -')

work = tempfile.mkdtemp(prefix='ka-shells.')


class Skip(Exception):
    """A program is missing."""


def monitor(lines):
    """What the monitor completes: a list of words for each line."""
    out = subprocess.run([KA_COMPLETE], input=''.join(x + '\n' for x in lines),
                         stdout=subprocess.PIPE, text=True, check=True).stdout
    return [line.split() for line in out.split('\n')[:-1]]


def all_lines():
    """Each command with all its options, and lines with words and values."""
    words, = monitor([''])
    seconds = monitor([word + ' ' for word in words])
    commands = words + [f'{a} {b}' for a, more in zip(words, seconds)
                        for b in more if a != 'export']
    return [*OTHERS, *VALUES, *(c + ' -' for c in commands)]


LINES = all_lines()


def run(shell, *words, script):
    if not shutil.which(shell):
        raise Skip(f'{shell} is not installed: scripts/setup --only shells')
    done = subprocess.run([shell, *words], input=script, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=True, cwd=work, timeout=120)
    assert not done.stderr, done.stderr[:500]
    return [set(block.split('\n')) - {''}
            for block in done.stdout.split('==\n')[:-1]]


def quoted(word):
    return "'" + word.replace("'", "'\\''") + "'"


def words_of(line):
    """The words of a line; an empty one is to be completed."""
    return ' '.join(quoted(word) for word in line.split(' '))


def by_bash(lines):
    return run('bash', '--norc', '-s', script=f'. {quoted(BASH)}\n' + ''.join(
        f'COMP_WORDS=({words_of(line)}); '
        'COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _ka; '
        'printf "%s\\n" "${COMPREPLY[@]}" ==\n' for line in lines))


# Completion in zsh runs in its line editor only. These stand for the functions
# that print: they print what begins with the word at the cursor.
ZSH_HEAD = '''
compdef() { : }
_files() { print -rl -- ${words[CURRENT]}*(N) }
_describe() {
    local item
    for item in "${(@P)argv[-1]}"; do
        [[ ${item%%:*} != ${words[CURRENT]}* ]] || print -r -- ${item%%:*}
    done
}
'''


def by_zsh(lines):
    return run('zsh', '-f', '-s', script=f'{ZSH_HEAD}. {quoted(ZSH)}\n' +
               ''.join(f'words=({words_of(line)}); CURRENT=$#words; _ka; '
                       'print "=="\n' for line in lines))


def by_fish(lines):
    return [{word.split('\t')[0] for word in block}
            for block in run('fish', '--no-config', script=''.join([
                f'source {quoted(FISH)}\n',
                *(f'complete -C {quoted(line)}; echo ==\n'
                  for line in lines)]))]


def expected(line, words):
    """What the shell should complete, if a line asks for options."""
    command = re.split(r'[ -]', line)[0]
    if not line.endswith('-'):
        return set(words)
    return set(words) | OF_COMMANDS.get(line.removesuffix(' -'), set()) | \
        (set() if command else FIRST)


def completes(by_shell):
    """All lines, behind a file, and behind a socket and options."""
    for before in 'ka -f x ', 'ka --at 5 -q y ':
        found = by_shell([before + line for line in LINES])
        assert len(found) == len(LINES), len(found)
        for line, words, got in zip(LINES, monitor(LINES), found):
            assert words, f'{line}: the monitor completes nothing'
            assert got == expected(line, words), (line, words, got)


def completes_own_words(by_shell):
    """Options of the program, files, and values that are no names."""
    for name in 'one file', 'one.journal', 'two':
        with open(os.path.join(work, name), 'w', encoding='utf-8'):
            pass
    lines = ('ka -', 'ka -f x --', 'ka le', 'ka -f on', 'ka -q tw',
             'ka -f x symbols -o tw', 'ka -f x calls --fo', 'ka -f x -n ',
             'ka -f x show ', 'ka -f x show 0 1 2 ', 'ka -f x nothing -v ',
             'ka --color a')
    found = by_shell(lines)
    assert found[0] >= FIRST | {'-s', '--cache'}, found[0]
    assert found[1] >= {'--at', '--types', '--cache'}, found[1]
    assert found[2] == {'leak'}, found[2]
    assert {re.sub(r'\\', '', word) for word in found[3]} == {
        'one file', 'one.journal'}, found[3]
    assert found[4] == found[5] == {'two'}, found[4:6]
    assert found[6] == {'--follow', '--format'}, found[6]
    assert found[7:11] == [set()] * 4, found[7:]
    assert found[11] == {'always', 'auto'}, found[11]


# --- the line editor ---------------------------------------------------------

def read_until(fd, text):
    """Read what a terminal prints, up to a text."""
    got, end = '', time.monotonic() + 60
    while text not in got:
        assert time.monotonic() < end, got
        if select.select([fd], [], [], 1)[0]:
            got += os.read(fd, 4096).decode('utf-8', 'replace')
    return got


def zsh_at_a_terminal():
    """Keys as a person types them, with zsh's own functions."""
    if not shutil.which('zsh'):
        raise Skip('zsh is not installed: scripts/setup --only shells')
    shutil.copy(ZSH, os.path.join(work, '_ka'))
    child, fd = pty.fork()
    if not child:
        os.chdir(work)
        os.execvpe('zsh', ['zsh', '-f', '-i'],
                   {'PATH': os.environ['PATH'], 'TERM': 'dumb', 'HOME': work})
    try:
        os.write(fd, b'fpath=($PWD $fpath); autoload -Uz compinit; '
                 b'compinit -u -D; ka() print -r -- "<$*>"; print rea""dy\n')
        read_until(fd, 'ready')
        for keys, want in (('ka -f x le\tsc\t-n 1 --fo\tkm\t', '<-f x leak '
                            'scan -n 1 --format kmemleak>'),
                           ('ka -f x log --lev\tem\t',
                            '<-f x log --level emerg>')):
            os.write(fd, keys.encode() + b'\n')
            read_until(fd, want)
    finally:
        os.write(fd, b'\x03\nexit\n')
        os.close(fd)
        os.waitpid(child, 0)


# --- all of them -------------------------------------------------------------

def main():
    cases = [(f'{name}: {what}', lambda f=f, by=by: f(by))
             for name, by in (('bash', by_bash), ('zsh', by_zsh),
                              ('fish', by_fish))
             for what, f in (('what the monitor completes', completes),
                             ('the own words of ka', completes_own_words))]
    cases.append(('zsh at a terminal', zsh_at_a_terminal))
    failed = 0
    for n, (name, case) in enumerate(cases, 1):
        try:
            case()
            print(f'ok {n} - {name}')
        except Skip as why:
            print(f'ok {n} - {name} # SKIP {why}')
        except (AssertionError, OSError, subprocess.SubprocessError) as e:
            failed += 1
            print('\n'.join('# ' + x for x in str(e).split('\n')))
            print(f'not ok {n} - {name}')
    print(f'1..{len(cases)}')
    shutil.rmtree(work, ignore_errors=True)
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
