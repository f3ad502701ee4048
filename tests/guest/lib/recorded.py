# SPDX-License-Identifier: GPL-2.0-or-later
"""A recorded run and its replays: ka-run, what it says, and what ka and gdb
answer."""
import os
import shutil
import subprocess
import time

from scripts.lib.arches import ARCHES
from scripts.lib.guest import RUN
from scripts.lib.prepared import kernel_arch, paths
from scripts.lib.qmp import Qmp

KERNELS = '6.12', 'arm64-6.12', 'riscv64-6.12', '6.1'
KA = os.path.join(paths()['build'], 'monitor-cmds', 'ka')
ALL = '0-ffffffffffffffff'
LISTINGS = (ALL, '-v'), (ALL, '-j', '-v'), ('error',), ('top', '-n', '0'), \
    ('log', '-n', '0')
TIMEOUT = 600


def ka(*words):
    done = subprocess.run([KA, *words], stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


class Run:
    """A ka-run: its console, and what it says. OPTIONS: of ka-run; TYPES: its
    console has a reader and a writer."""

    def __init__(self, folder, name, *options, types=False):
        self.console, self.said, self.sockets = (
            os.path.join(folder, name + end) for end in ('.out', '.err', '.d'))
        with open(self.console, 'wb') as out, open(self.said, 'wb') as err:
            self.proc = subprocess.Popen(
                [RUN, '--dir', self.sockets, *options], cwd=folder,
                stdin=subprocess.PIPE if types else subprocess.DEVNULL,
                stdout=out, stderr=err)

    def text(self):
        with open(self.said, encoding='utf-8', errors='replace') as f:
            return f.read()

    def printed(self):
        with open(self.console, 'rb') as f:
            return f.read()

    def until(self, found):
        end = time.monotonic() + TIMEOUT
        while not found():
            assert self.proc.poll() is None, self.text()
            assert time.monotonic() < end, self.text()
            time.sleep(0.2)

    def type(self, text):
        self.proc.stdin.write(text)
        self.proc.stdin.flush()

    def ended(self):
        assert self.proc.wait(TIMEOUT) == 0, self.text()
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.proc.poll() is None:
            self.proc.terminate()
            self.proc.wait(60)


def record(folder, name, kernel, *options, types=False):
    return Run(folder, name, '--record', name, '--kernel', kernel, '--mem',
               '512M', '--append', 'ka.run=files ka.end=poweroff', *options,
               types=types)


def cells(journal):
    return ka('-f', journal, '--cells')


def compare_journals(one, other):
    assert cells(one) == cells(other), 'the events differ'
    assert ka('-f', one, 'events') == ka('-f', other, 'events')


def gdb(program, run, *commands):
    words = [program, '-nx', '-batch', '-ex',
             f'target remote {run.sockets}/gdb.sock']
    for command in commands:
        words += ['-ex', command]
    return subprocess.run(words, stdin=subprocess.DEVNULL, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False).stdout


def place_of(run):
    """QEMU's number of the instruction."""
    qmp = Qmp(f'{run.sockets}/qmp.sock', TIMEOUT)
    icount = qmp.cmd('query-replay')['icount']
    qmp.close()
    return icount


def same_at_the_end(kernel, run, journal):
    """The VM stays at the end of the recording, and answers; gdb, too, which
    acknowledges each line before it reads the next one."""
    run.until(lambda: 'the recording ends here' in run.text())
    for words in LISTINGS:
        live = ka('-q', f'{run.sockets}/qmp.sock', *words)
        assert live == ka('-f', journal, *words), words
    program = ARCHES[kernel_arch(kernel)].gdb
    assert ka('-f', journal, ALL).decode() in gdb(program, run,
                                                  'monitor ka ' + ALL)


def moved(folder, name):
    """Move a recording: nothing may be read at its old place."""
    at = os.path.join(folder, 'elsewhere')
    os.mkdir(at)
    shutil.move(os.path.join(folder, name), at)
    return os.path.join(at, name)
