#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of any bytes, in every place that has one: what the commands print is
printable ASCII, and with -j each line is JSON to a parser that is not ours.

usage: hostile_names.py KA-SAY
"""
import json
import random
import subprocess
import sys
import tempfile

ROUNDS = 15
# What terminals and parsers fall for, besides random bytes.
NASTY = (b'\x1b]0;owned\x07', b'\x1b[2J\x1b[31m', b'"},{"type":"clean"',
         b'\\', b'\\u0000', b'\xff\xfe\xc3\x28', b'\xe2\x80\xae', b'\x9b2J',
         b'\r\n(qemu) ', b'%n%s%x', b'\x7f\x08\x08', b"'$(reboot)`", b'\xc0',
         b'</script>', b'\xed\xa0\x80', b'a' * 300)

COMMANDS = ('', 'show 1008', 'show 1008 -s', '1000-9000 -s -v', 'error -s -v',
            'alloc 81000000-ffffffffffffffff -s',
            'show 1008 -l', '1000-9000 -l', 'error -l', 'stat -v', 'stat',
            'free {symbol}', 'alloc {symbol}', 'show {symbol}+8',
            '1000-9000 --cache {name}', '1000-9000 --task {name}',
            '1000-9000 --layer {name}', 'help {name}', '{name}', '-{name}',
            'error --kind {name}')


def name(rng):
    if rng.random() < 0.5:
        return rng.choice(NASTY)
    return bytes(rng.randrange(1, 256) for _ in range(rng.randrange(1, 60)))


def escaped(data):
    """As the language of scripts has it."""
    return ''.join(f'\\x{b:02x}' for b in data)


def script(rng):
    text = ['symbol va=ffffffff81000000 name=_stext']
    for i in range(1, 8):
        text.append(f'symbol va=ffffffff8100{i:x}000 name=kern{i}')
    text += ['symbol va=ffffffff81009000 name=_etext',
             f'module va=ffffffffc0100000 name={escaped(name(rng))} '
             'base=ffffffffc0000000 size=4000']
    for i in range(4):
        text.append(f'modsym va=ffffffffc000{i}000 name={escaped(name(rng))}')
    text.append(f'hook name={escaped(name(rng))} va=ffffffff81001000 hits=1')
    text.append(f'hook name={escaped(name(rng))} note={escaped(name(rng))}')
    for i in range(1, 9):
        stack = 'stack=ffffffffc000{}010,ffffffff8100{}010'.format(i % 4, i % 8)
        words = f'comm={escaped(name(rng))} cache={escaped(name(rng))}'
        text.append(f'alloc va={i}000 size=40 us={i} pid=1 {words} {stack}')
        if i % 2:
            text.append(f'free va={i}000 us={20 + i} {words} {stack}')
            text.append(f'free va={i}000 us={30 + i} {words} {stack}')
    return '\n'.join(text) + '\n'


def commands(rng):
    for command in COMMANDS:
        for option in (b'', b' -j'):
            word = name(rng).replace(b'\n', b'').replace(b'\0', b'')
            yield command.encode().replace(b'{name}', word).replace(
                b'{symbol}', word) + option


def run(program, seed):
    """Yields (command, what it printed)."""
    rng = random.Random(seed)
    with tempfile.NamedTemporaryFile(prefix='ka-names.') as f:
        f.write(script(rng).encode())
        f.flush()
        for line in commands(rng):
            done = subprocess.run([program, f.name], input=line + b'\n',
                                  stdout=subprocess.PIPE, check=True)
            yield line, done.stdout


def complaint(line, out):
    """What is wrong with this answer, or nothing."""
    bad = [b for b in out if b != 10 and not 0x20 <= b < 0x7f]
    if bad:
        return f'{line!r} prints {bytes(bad)!r}'
    if not line.endswith(b' -j') or line.startswith((b' ', b'help')):
        return None
    for row in out.splitlines():
        try:
            json.loads(row)
        except ValueError as e:
            return f'{line!r} prints {row!r}: {e}'
    return None


def main():
    found, rows = [], 0
    for seed in range(ROUNDS):
        for line, out in run(sys.argv[1], seed):
            rows += out.count(b'\n')
            text = complaint(line, out)
            if text:
                found.append(f'seed {seed}: {text}')
    print('\n'.join('# ' + line for line in found[:20]))
    print(f"{'not ok' if found else 'ok'} 1 - {rows} lines are printable, "
          'and JSON where that was asked for')
    print('1..1')
    sys.exit(1 if found else 0)


if __name__ == '__main__':
    main()
