#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A replay is the recorded run: the console, the journal's events and the
listings are the same, byte for byte, from a copy of the folder. A folder that
cannot be used is one line. `ka goto` reaches events of the run: the registers,
the task and the block are what the journal says. Oracle: the recorded run.

usage: test_recording.py [--short] [--kernel K]...
"""
import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time

from lib import programs
from lib.tap import Tap
from scripts.lib.arches import ARCHES
from scripts.lib.guest import RUN
from scripts.lib.prepared import kernel_arch, paths
from scripts.lib.qmp import Qmp

KERNELS = '6.12', 'arm64-6.12', '6.1'
KA = os.path.join(paths()['build'], 'monitor-cmds', 'ka')
ALL = '0-ffffffffffffffff'
LISTINGS = (ALL, '-v'), (ALL, '-j', '-v'), ('error',), ('top', '-n', '0'), \
    ('log', '-n', '0')
TIMEOUT = 600
tap = Tap()


def ka(*words):
    done = subprocess.run([KA, *words], stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


class Run:
    """A ka-run: its console, and what it says. OPTIONS: of ka-run."""

    def __init__(self, folder, name, *options):
        self.console, self.said, self.sockets = (
            os.path.join(folder, name + end) for end in ('.out', '.err', '.d'))
        with open(self.console, 'wb') as out, open(self.said, 'wb') as err:
            self.proc = subprocess.Popen(
                [RUN, *options, '--dir', self.sockets], cwd=folder,
                stdin=subprocess.DEVNULL, stdout=out, stderr=err)

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

    def ended(self):
        assert self.proc.wait(TIMEOUT) == 0, self.text()
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.proc.poll() is None:
            self.proc.terminate()
            self.proc.wait(60)


def record(folder, name, kernel, *options):
    return Run(folder, name, '--record', name, '--kernel', kernel, '--mem',
               '512M', '--append', 'ka.run=files ka.end=poweroff', *options)


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


def same_at_the_end(kernel, run, journal):
    """The VM stays at the end of the recording, and answers."""
    run.until(lambda: 'the recording ends here' in run.text())
    for words in LISTINGS:
        live = ka('-q', f'{run.sockets}/qmp.sock', *words)
        assert live == ka('-f', journal, *words), words
    program = ARCHES[kernel_arch(kernel)].gdb
    assert 'blocks.live' in gdb(program, run, 'monitor ka stat')


def moved(folder, name):
    """Move a recording: nothing may be read at its old place."""
    at = os.path.join(folder, 'elsewhere')
    os.mkdir(at)
    shutil.move(os.path.join(folder, name), at)
    return os.path.join(at, name)


def check_replay(kernel, folder):
    with record(folder, 'r', kernel) as recorded:
        recorded.ended()
    assert b'KA-DONE 0' in recorded.printed(), recorded.printed()[-500:]
    at = moved(folder, 'r')
    with Run(folder, 'replay', '--replay', at, '--journal', 'again') as run:
        same_at_the_end(kernel, run, os.path.join(at, 'journal'))
        run.proc.send_signal(signal.SIGTERM)
        run.ended()
    assert run.printed() == recorded.printed(), 'the consoles differ'
    compare_journals(os.path.join(at, 'journal'),
                     os.path.join(folder, 'again'))
    return at


# --- go to events ------------------------------------------------------------

# Functions that allocate, or free, one block, and nothing on behalf of others.
ONE = re.compile(r'(__kmalloc|kmem_cache_alloc(_lru|_node)?)_noprof$|'
                 r'__kmalloc_cache_noprof$|(kfree|kmem_cache_free)$')
PC = {'x86_64': 'RIP', 'aarch64': 'PC'}
RESULT = {'x86_64': 'RAX', 'aarch64': 'X00'}
ARGUMENTS = {'x86_64': {'kfree': 'RDI', 'kmem_cache_free': 'RSI'},
             'aarch64': {'kfree': 'X00', 'kmem_cache_free': 'X01'}}


def rows(text):
    return [json.loads(line) for line in text.splitlines()]


def events_of(journal):
    """The events that count, so that event N is at N - 1."""
    return [row for row in rows(ka('-f', journal, 'events', '-j', '-n', '0'))
            if row['type'] == 'event' and row['kind'] not in
            ('gap', 'access')]


def registers(run):
    qmp = Qmp(f'{run.sockets}/qmp.sock', TIMEOUT)
    text = qmp.cmd('human-monitor-command',
                   {'command-line': 'info registers'})
    qmp.close()
    return {name: int(value, 16) for name, value in
            re.findall(r'\b([A-Z]\w\w?) *=([0-9a-f]{16})\b', text)}


def compare_registers(arch, run, event):
    """At a free the VM is at the function's entry, with the argument; at an
    allocation at the return address, with the result."""
    regs = registers(run)
    pc, va = regs[PC[arch]], int(event['va'], 16)
    if event['kind'] == 'free':
        name = event['hook']
        entry = rows(ka('-q', f'{run.sockets}/qmp.sock', 'whatis', name,
                        '-j'))[0]['va']
        assert pc == int(entry, 16), (event, hex(pc), entry)
        assert regs[ARGUMENTS[arch][name]] == va, (event, regs)
    else:
        assert pc == int(event['stack'][0], 16), (event, hex(pc))
        assert regs[RESULT[arch]] == va, (event, regs)


def compare_block(run, event):
    row = rows(ka('-q', f'{run.sockets}/qmp.sock', 'show', event['va'], '-n',
                  '0', '-j', '-v'))[0]
    life = event['kind']
    assert row['type'] == 'block', (event, row)
    assert row['state'] == ('A' if life == 'alloc' else 'F'), (event, row)
    assert (row[life + '_us'], row[life]) == (event['us'], event['stack']), \
        (event, row)


def is_here(run, number, event, answer):
    """The answer of ka goto is the event and the place."""
    said, place = answer
    assert said == event, (said, event)
    assert (place['event'], place['now']) == (number, number), place
    here = rows(ka('-q', f'{run.sockets}/qmp.sock', 'goto', '-j'))
    assert here == answer, (here, answer)


def reach(run, arch, events, i):
    answer = rows(ka('-q', f'{run.sockets}/qmp.sock', 'goto', 'event',
                     str(i + 1), '-j'))
    is_here(run, i + 1, events[i], answer)
    compare_registers(arch, run, events[i])
    compare_block(run, events[i])


def reach_by_gdb(kernel, run, events, i):
    """The debugger continues the VM, and is told that it has stopped."""
    said = gdb(ARCHES[kernel_arch(kernel)].gdb, run,
               f'monitor ka goto event {i + 1}', 'continue',
               'printf "pc=%#lx\\n", $pc', 'disconnect')
    regs = registers(run)
    assert f'pc={regs[PC[kernel_arch(kernel)]]:#x}' in said, (said, regs)
    reach(run, kernel_arch(kernel), events, i)


def check_goto(kernel, folder, at, n):
    """Go to N random events, in the order of time, then to the end: a replay
    that stopped is no other run. Then back, to some of them."""
    arch = kernel_arch(kernel)
    events = events_of(os.path.join(at, 'journal'))
    which = [i for i, e in enumerate(events) if ONE.match(e['hook'])]
    chosen = sorted(random.Random(1).sample(which, n))
    first = chosen[0] + 1
    journal = os.path.join(folder, 'stopped')
    with Run(folder, 'goto', '--replay', at, '--journal', journal, '--goto',
             f'event {first}') as run:
        run.until(lambda: f'event {first} of {len(events)}: the VM is here'
                  in run.text())
        for i in chosen[:-1]:
            reach(run, arch, events, i)
        reach_by_gdb(kernel, run, events, chosen[-1])
        refused_places(run, len(events), chosen[-1] + 1)
        Qmp(f'{run.sockets}/qmp.sock', TIMEOUT).cmd('cont')
        same_at_the_end(kernel, run, os.path.join(at, 'journal'))
        run.proc.send_signal(signal.SIGTERM)
        run.ended()
    compare_journals(os.path.join(at, 'journal'), journal)
    with Run(folder, 'back', '--replay', at, '--paused') as run:
        run.until(lambda: 'paused at its beginning' in run.text())
        for i in random.Random(2).sample(chosen, max(4, n // 3)):
            reach(run, arch, events, i)


def refused_places(run, last, now):
    qmp = Qmp(f'{run.sockets}/qmp.sock', TIMEOUT)
    said = qmp.cmd('human-monitor-command',
                   {'command-line': 'ka goto event 1'})
    qmp.close()
    assert f'event 1 is behind: the replay has made {now}. "loadvm ' \
        'ka-begin"' in said, said
    for text, *words in (
            (f'the recording has no such event; it has {last}', 'event',
             str(last + 1)),
            ('the recording has no error 1', 'error', '1'),
            ('no block was asked for', 'next'),
            ('places are <va> alloc|free', 'ffff888000000000')):
        done = subprocess.run(
            [KA, '-q', f'{run.sockets}/qmp.sock', 'goto', *words], text=True,
            capture_output=True, timeout=TIMEOUT, check=False)
        assert done.returncode == 1, done
        assert text in done.stdout and done.stdout.count('\n') == 1, done


# --- folders that cannot be used ---------------------------------------------

def refused(text, *options):
    done = subprocess.run([RUN, *options], stdin=subprocess.DEVNULL, text=True,
                          capture_output=True, timeout=120, check=False)
    assert done.returncode == 2 and not done.stdout, done
    assert done.stderr.count('\n') == 1 and text in done.stderr, done.stderr


@contextlib.contextmanager
def changed(folder, name, data):
    """Let a file of the folder have other bytes; None: let it be missing."""
    path = os.path.join(folder, name)
    os.rename(path, path + '.kept')
    if data is not None:
        with open(path, 'wb') as f:
            f.write(data)
    try:
        yield
    finally:
        os.replace(path + '.kept', path)


def manifest_with(folder, **values):
    with open(os.path.join(folder, 'manifest.json'), encoding='utf-8') as f:
        found = {**json.load(f), **values}
    return json.dumps(found).encode()


def check_refusals(folder):
    for name, data, text in (
            ('manifest.json', None, 'not a recording'),
            ('manifest.json', b'{"forma', 'manifest.json is damaged'),
            ('manifest.json', b'[]', 'not a recording'),
            ('manifest.json', manifest_with(folder, version=7),
             'another version of ka (version 7'),
            ('manifest.json', manifest_with(folder, files=None),
             'manifest.json is damaged'),
            ('manifest.json', manifest_with(folder, end={'log': 'x'}),
             'manifest.json is damaged'),
            ('manifest.json', manifest_with(folder, files={'kernel': 1}),
             'manifest.json is damaged'),
            ('manifest.json', manifest_with(folder, arch='vax'),
             'of an unknown architecture'),
            ('manifest.json', manifest_with(folder, qemu='0' * 64),
             'made by another build of QEMU'),
            ('manifest.json', manifest_with(folder, tracer='0' * 64),
             'made by another build of the tracer'),
            ('kernel', None, 'kernel is missing'),
            ('initrd', b'x', 'initrd is not the file that was recorded'),
            ('log', None, 'log is missing'),
            ('log', b'x' * 4096, 'log has 4096 bytes, not ')):
        with changed(folder, name, data):
            refused(text, '--replay', folder)
    refused('exists; name a new folder', '--record', folder)
    refused('not a recording', '--replay', folder + '-none')
    for text, *options in (
            ('one vCPU', '--smp', '2'), ('disks', '--disk-boot'),
            ('-drive: disks are not', '--', '-drive', 'file=x'),
            ('-nic: networks are not', '--', '-nic', 'user'),
            ('journal is in', '--no-plugin')):
        refused(text, '--record', folder + '-new', *options)
        assert not os.path.exists(folder + '-new'), options
    refused('--smp: the machine', '--replay', folder, '--smp', '2')
    refused('not both', '--replay', folder, '--record', folder + '-new')


def check_full(folder):
    """A file system of 4 MiB has no room for the kernel."""
    script = 'mount -t tmpfs -o size=4m none "$1" && shift && exec "$@"'
    place = os.path.join(folder, 'small')
    os.mkdir(place)
    done = subprocess.run(
        ['unshare', '-m', 'sh', '-c', script, 'sh', place, RUN, '--record',
         os.path.join(place, 'r')], stdin=subprocess.DEVNULL, text=True,
        capture_output=True, timeout=120, check=False)
    assert done.returncode == 2, done
    assert done.stderr.count('\n') == 1, done.stderr
    assert 'No space left on device' in done.stderr, done.stderr


# --- a recording that is cut off ---------------------------------------------

def check_killed(kernel, folder):
    """QEMU is killed while it records. What is there replays: its console is
    the beginning of the recorded one, up to the last events."""
    with record(folder, 'k', kernel, '--append', 'ka.n=50') as run:
        run.until(lambda: b'Run /init' in run.printed())
        subprocess.run(['pkill', '-KILL', '-P', str(run.proc.pid)],
                       check=True)
        run.proc.wait(60)
        assert run.proc.returncode == 2, run.text()
        assert 'the recording has no end' in run.text(), run.text()
    with Run(folder, 'again', '--replay', 'k') as replay:
        replay.proc.wait(TIMEOUT)
        assert 'the recording was cut off' in replay.text(), replay.text()
    printed = replay.printed()
    assert run.printed().startswith(printed) and \
        b'Linux version' in printed, printed[-500:]


def check(kernel, short):
    with tempfile.TemporaryDirectory(prefix='ka-recording.') as folder:
        at = None
        with tap.test(f'{kernel}: the replay of a moved recording is equal'):
            at = check_replay(kernel, folder)
        if at:
            with tap.test(f'{kernel}: ka goto reaches events'):
                check_goto(kernel, folder, at, 8 if short else 60)
        if at and kernel == KERNELS[0]:
            with tap.test('a folder that cannot be used is one line'):
                check_refusals(at)
            with tap.test('a full disk is one line'):
                check_full(folder)
        if not short:
            with tap.test(f'{kernel}: a recording that was killed'):
                check_killed(kernel, folder)


def main():
    ap = programs.arguments(__doc__, short='6.12 only, without a killed run',
                            smp=False)
    args = programs.parse(ap, kernels=KERNELS)
    for kernel in args.kernel:
        check(kernel, args.short)
    tap.done()


if __name__ == '__main__':
    main()
