# SPDX-License-Identifier: GPL-2.0-or-later
"""Journals, their sums as ka top has them, and a QEMU that answers as these
journals do. For the tests of ka export."""
import glob
import json
import os
import re
import socket
import subprocess
import tempfile
import threading

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), '..', '..'))
CASES = os.path.join(ROOT, 'tests', 'replay', 'cases')
# Replayed cases with several stacks, modules, hostile names, gaps, resizes.
NAMES = ('009-symbols', '019-hostile-names', '032-top', '033-mark-and-diff',
         '046-names-of-their-time', '057-many-callers', '089-format-kasan')


class Program:
    """The programs ka and ka-journal, and a folder for files."""

    def __init__(self, ka, make_journal):
        self.ka, self.make_journal = ka, make_journal
        self.work = tempfile.mkdtemp(prefix='ka-exports.')
        self.counter = 0

    def path(self, suffix=''):
        self.counter += 1
        return os.path.join(self.work, f'{self.counter}{suffix}')

    def run(self, *words, give=b'', **more):
        """(status, stdout, stderr) of ka; GIVE: its standard input."""
        done = subprocess.run([self.ka, *words], input=give,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=120, check=False, **more)
        return done.returncode, done.stdout, done.stderr.decode()

    def journal(self, script):
        """The path of a journal of these events."""
        path, text = self.path('.journal'), self.path('.events')
        with open(text, 'w', encoding='utf-8') as f:
            f.write(script)
        subprocess.run([self.make_journal, path, text], check=True)
        return path

    def case(self, name):
        with open(os.path.join(CASES, name, 'events'), encoding='utf-8') as f:
            return self.journal(f.read())

    @staticmethod
    def source(where):
        """The words for a journal, or for a socket: ('-q', its path)."""
        return ('-f', where) if isinstance(where, str) else where

    def page(self, journal):
        """Make the page of a journal; return its path."""
        path = self.path('.html')
        status, _, err = self.run('-f', journal, 'report', '-o', path)
        assert status == 0, err
        return path

    def top(self, where, *words, command='top', before=(), by='stack'):
        """(the row all, the rows) of ka top --by stack."""
        status, out, err = self.run(*self.source(where), *before,
                                    *command.split(), '--by', by, '-s', '-j',
                                    '-n', '0', *words)
        assert status == 0, err
        rows = [json.loads(line) for line in out.splitlines()]
        rows = [row for row in rows if 'type' in row]
        return rows[0], rows[1:]

    def export(self, where, form, *words, before=()):
        """The bytes of an export."""
        status, out, err = self.run(*self.source(where), *before, 'export',
                                    form, *words)
        assert status == 0, err
        return out


class Qemu:
    """A QMP socket that answers each command as ka -f JOURNAL does."""

    def __init__(self, program, journal):
        self.program, self.journal = program, journal
        self.path = program.path('.qmp')
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(5)
        self.commands = []
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            client, _ = self.listener.accept()
            with client, client.makefile('rwb') as f:
                self.talk(f)

    def answer(self, command):
        """The text of a command."""
        return self.program.run('-f', self.journal,
                                *command.split())[1].decode()

    def talk(self, f):
        f.write(b'{"QMP":{}}\r\n')
        f.flush()
        for line in f:
            words = json.loads(line)
            answer = {}
            if words['execute'] == 'human-monitor-command':
                command = words['arguments']['command-line'].split()[1:]
                self.commands.append(' '.join(command))
                answer = self.answer(' '.join(command)).replace('\n', '\r\n')
            f.write(json.dumps({'return': answer}).encode() + b'\r\n')
            f.flush()


# Names as the language of scripts has them.
HOSTILE = (r'a\x3bb\x207', r'x\x0ay\x209', r'\xff\xfe', r'\x22\x5c',
           r'<script>', r'\x23\x201', 'n' * 900)


def hostile_script():
    """Events of modules, tasks and caches with these names."""
    script = ['symbol va=ffffffff81000000 name=_stext',
              'symbol va=ffffffff81f00000 name=_etext']
    for i, name in enumerate(HOSTILE):
        va = 0xffffffffc0000000 + i * 0x10000
        script += [f'module va={va + 0x8000:x} name={name[:50]} base={va:x} '
                   'size=4000', f'modsym va={va:x} name={name}']
    for i, name in enumerate(HOSTILE):
        va = 0xffffffffc0000010 + i * 0x10000
        script.append(f'alloc va=ffff88800000{i:x}000 size=10 us={i + 1} '
                      f'pid=1 comm={name[:12]} cache={name[:30]} '
                      f'stack={va:x},ffffffff81000010')
    return '\n'.join(script) + '\n'


def frame_name(symbol, pc, frames='function'):
    """The name that exports have for a frame of ka top."""
    found = re.fullmatch(r'(.+)\+0x([0-9a-f]+)(\[.*\])?', symbol or '')
    if not found:
        return pc
    offset = f'+0x{found[2]}' if frames == 'offset' else ''
    return found[1] + offset + (f' {found[3]}' if found[3] else '')


def stack_names(row, frames='function'):
    """The names of a row's frames, leaf first."""
    symbols = row.get('stack_symbols', [None] * len(row['stack']))
    return [frame_name(s, pc, frames)
            for s, pc in zip(symbols, row['stack'])] or ['[no backtrace]']


def run_tests(tests):
    """Run functions, and print TAP. Return the exit status."""
    failed = 0
    for number, test in enumerate(tests, 1):
        try:
            text = test() or ''
            verdict = 'ok'
        except (AssertionError, OSError, ValueError, KeyError, IndexError,
                subprocess.SubprocessError) as e:
            text, verdict = '', 'not ok'
            failed += 1
            print(f'# {type(e).__name__}: {str(e)[:2000]}'
                  .replace('\n', '\n# '))
        print(f"{verdict} {number} - {test.__name__.replace('_', ' ')}{text}",
              flush=True)
    print(f'1..{len(tests)}')
    return 1 if failed else 0


def cases():
    """The names of replayed cases that exist of NAMES."""
    return [n for n in NAMES if glob.glob(os.path.join(CASES, n, 'events'))]
