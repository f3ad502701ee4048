#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`ka goto` reaches events of a recorded run, in its replay, forward and back:
the registers, the task and the block are what the journal says. From a use
after free gdb goes to the write that set the stale pointer. Oracles: the
recorded run; a module that says what it does; memory before and after the
instruction.

usage: test_goto.py [--short] [--kernel K]...
"""
import json
import os
import random
import re
import shlex
import signal
import subprocess
import tempfile
import time
from types import SimpleNamespace

from lib import commands, oracle, programs
from lib.gdbcli import Gdb
from lib.recorded import (KA, KERNELS, TIMEOUT, Run, compare_journals, gdb, ka,
                          place_of, record, same_at_the_end)
from lib.tap import Tap
from scripts.lib.arches import ARCHES
from scripts.lib.prepared import ROOT, kernel_arch
from scripts.lib.qmp import Qmp

HELPER = os.path.join(ROOT, 'scripts', 'ka-gdb.py')
tap = Tap()

# Functions that allocate, or free, one block, and nothing on behalf of others.
ONE = re.compile(r'(__kmalloc|kmem_cache_alloc(_lru|_node)?)_noprof$|'
                 r'__kmalloc_cache_noprof$|(kfree|kmem_cache_free)$')
PC = {'x86_64': 'RIP', 'aarch64': 'PC', 'riscv64': 'pc'}
RESULT = {'x86_64': 'RAX', 'aarch64': 'X00', 'riscv64': 'a0'}
ARGUMENTS = {'x86_64': {'kfree': 'RDI', 'kmem_cache_free': 'RSI'},
             'aarch64': {'kfree': 'X00', 'kmem_cache_free': 'X01'},
             'riscv64': {'kfree': 'a0', 'kmem_cache_free': 'a1'}}
# As QEMU prints them: "RIP=...", "X00=...", " pc       ...", "x10/a0 ...".
REGISTER = re.compile(r'\b(?:x\d+/)?(\w+) *[= ]([0-9a-f]{16})\b')


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
            REGISTER.findall(text)}


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


def compare_task(run, event):
    """The task of the event runs. While the kernel switches from one task to
    the next, both say so. The idle task is in no list."""
    tasks = rows(ka('-q', f'{run.sockets}/qmp.sock', 'task', '--threads', '-v',
                    '-j', '-n', '0'))
    running = {row['pid'] for row in tasks if row.get('running') == 'yes'}
    assert event['pid'] in running or not event['pid'], (event, running)


def is_here(run, number, event, answer):
    """The answer of ka goto is the event and the place, and how far it is from
    the one before."""
    said, place, *_ = answer
    assert said == event, (said, event)
    assert (place['event'], place['now']) == (number, number), place
    here = rows(ka('-q', f'{run.sockets}/qmp.sock', 'goto', '-j'))
    assert here == answer[:2], (here, answer)


def reach(run, arch, events, i):
    """Go to event I, and return how long it took."""
    begin, before = time.monotonic(), place_of(run)
    answer = rows(ka('-q', f'{run.sockets}/qmp.sock', 'goto', 'event',
                     str(i + 1), '-j'))
    took = time.monotonic() - begin
    went = answer[2]['instructions'] if len(answer) > 2 else 0
    assert before + went == place_of(run), (before, answer)
    is_here(run, i + 1, events[i], answer)
    compare_registers(arch, run, events[i])
    compare_block(run, events[i])
    compare_task(run, events[i])
    return took


def reach_by_gdb(kernel, run, events, i):
    """The debugger continues the VM, and is told that it has stopped."""
    said = gdb(ARCHES[kernel_arch(kernel)].gdb, run,
               f'monitor ka goto event {i + 1}', 'continue',
               'printf "pc=%#lx\\n", $pc', 'disconnect')
    regs = registers(run)
    assert f'pc={regs[PC[kernel_arch(kernel)]]:#x}' in said, (said, regs)
    reach(run, kernel_arch(kernel), events, i)


def choose(at, n):
    """Return all events, and N of them in random order."""
    events = events_of(os.path.join(at, 'journal'))
    which = [i for i, e in enumerate(events) if ONE.match(e['hook'])]
    return events, random.Random(1).sample(which, n)


def check_forward(kernel, folder, at, n):
    """Go to N random events, in the order of time, then to the end: a replay
    that stopped is no other run."""
    arch = kernel_arch(kernel)
    events, chosen = choose(at, n)
    chosen.sort()
    first = chosen[0] + 1
    journal = os.path.join(folder, 'stopped')
    with Run(folder, 'goto', '--replay', at, '--journal', journal, '--goto',
             f'event {first}') as run:
        run.until(lambda: f'event {first} of {len(events)}: the VM is here'
                  in run.text())
        for i in chosen[:-1]:
            reach(run, arch, events, i)
        reach_by_gdb(kernel, run, events, chosen[-1])
        refused_places(run, len(events))
        Qmp(f'{run.sockets}/qmp.sock', TIMEOUT).cmd('cont')
        same_at_the_end(kernel, run, os.path.join(at, 'journal'))
        run.proc.send_signal(signal.SIGTERM)
        run.ended()
    compare_journals(os.path.join(at, 'journal'), journal)


def go_to_end(run):
    qmp = Qmp(f'{run.sockets}/qmp.sock', TIMEOUT)
    qmp.cmd('cont')
    run.until(lambda: qmp.cmd('query-status')['status'] == 'shutdown')
    qmp.close()


def check_random(kernel, folder, at, n):
    """Go to N random events in random order, from the end of the recording, and
    to the end again: it is the same instruction."""
    events, chosen = choose(at, n)
    begin = time.monotonic()
    with Run(folder, 'random', '--replay', at) as run:
        run.until(lambda: 'the recording ends here' in run.text())
        whole, reached, slowest = time.monotonic() - begin, 0, 0
        end = place_of(run)
        for i in chosen:
            slowest = max(slowest, reach(run, kernel_arch(kernel), events, i))
            reached += 1
        go_to_end(run)
        assert place_of(run) == end, (place_of(run), end)
    print(f'# {reached} of {n} events reached; the first pass took '
          f'{whole:.1f} s, the slowest event {slowest:.2f} s')


def refused_places(run, last):
    qmp = Qmp(f'{run.sockets}/qmp.sock', TIMEOUT)
    said = qmp.cmd('human-monitor-command',
                   {'command-line': 'ka goto event 1'})
    qmp.close()
    assert f'event 1 of {last}, behind: "loadvm ka-begin"' in said, said
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


# --- a use after free --------------------------------------------------------

def ask(run, *words):
    return rows(ka('-q', f'{run.sockets}/qmp.sock', *words, '-j', '-s'))


def record_dangling(folder, kernel):
    """Record the module. Return the folder, and what the module says: addresses
    of the pointer and of what it points to."""
    share = oracle.make_share(os.path.join(folder, 'share'), ['dangling.sh'],
                              kernel, modules=True)
    with record(folder, 'd', kernel, '--append',
                'no_hash_pointers ka.run=dangling', '--share', share,
                '--plugin-opts', 'access=module:ka_dangling') as run:
        run.ended()
    said = re.search(rb'ka_dangling: session=(\w+) device=(\w+) at=(\d+)',
                     run.printed())
    assert said, run.printed()[-500:]
    session, device = int(said[1], 16), int(said[2], 16)
    return os.path.join(folder, 'd'), session + int(said[3]), device


def memory(run, va):
    qmp = Qmp(f'{run.sockets}/qmp.sock', TIMEOUT)
    text = qmp.cmd('human-monitor-command', {'command-line': f'x/1xg {va:#x}'})
    qmp.close()
    return int(text.split(':')[1], 16)


def check_dangling(kernel, at, folder, pointer, device):
    """The VM is at the instruction of the access, and at that of the last
    write, before which the pointer is another one."""
    program = ARCHES[kernel_arch(kernel)].gdb
    pc = PC[kernel_arch(kernel)]
    error = rows(ka('-f', os.path.join(at, 'journal'), 'error', '-j', '-s'))[0]
    assert error['error'] == 'use-after-free', error
    with Run(folder, 'write', '--replay', at, '--paused') as run:
        run.until(lambda: 'paused at its beginning' in run.text())
        ask(run, 'goto', 'error', '1')
        assert registers(run)[pc] == int(error['error_stack'][0], 16), error
        access, word, went = ask(run, 'goto', f'{pointer - 8:x}+8', 'write')
        assert word['way'] == 'here' and word['found'] == 6, word
        assert access['access'] == 'w' and access['size'] == 8, access
        assert access['stack_symbols'][0].startswith('ka_dangling_attach+')
        assert (access['comm'], access['cpu']) == ('insmod', 0), access
        assert registers(run)[pc] == int(word['pc'], 16), word
        assert went['instructions'] < 0, went
        assert memory(run, pointer) != device
        gdb(program, run, 'stepi', 'disconnect')
        assert memory(run, pointer) == device
        done = subprocess.run(
            [KA, '-q', f'{run.sockets}/qmp.sock', 'goto', f'{pointer + 64:x}',
             'write'], text=True, capture_output=True, timeout=TIMEOUT,
            check=False)
        assert done.returncode == 1, done
        assert 'was not written to since event' in done.stdout, done


def six_commands(g, pointer, device):
    """From the error to the write. Return what gdb printed."""
    said = [g.command('ka error'), g.command('ka goto error 1')]
    assert f'{device:x}' in said[0], said
    assert ': the VM is here' in said[1], said
    said.append(g.command(f'ka refs {device:x}'))
    words = re.findall(r'\+(\w+) +A ([0-9a-f]{16})-', said[2])
    assert pointer in [int(va, 16) + int(at, 16) for at, va in words], said
    said.append(g.command(f'ka goto {pointer:x} write'))
    assert ': the VM is here' in said[3], said
    said.append(g.command('bt'))
    assert re.search('#0 .*ka_dangling_attach', said[4]), said
    return said


def check_six_commands(kernel, at, folder, pointer, device):
    """In a real gdb, from the end of the recording."""
    with Run(folder, 'six', '--replay', at) as run:
        run.until(lambda: 'the recording ends here' in run.text())
        g = Gdb(SimpleNamespace(
            arch=ARCHES[kernel_arch(kernel)], timeout=TIMEOUT,
            path=lambda name: os.path.join(run.sockets, name)))
        g.stop()
        g.command('source ' + HELPER)
        for line in ''.join(six_commands(g, pointer, device)).splitlines():
            print('#', line)
        assert memory(run, pointer) != device
        g.command('stepi')
        assert memory(run, pointer) == device
        g.send('disconnect')
        g.end()


def check_sweep(kernel, folder):
    """A finding of a recorded sweep says how to go to it."""
    at = os.path.join(folder, 'swept')
    said = commands.run(
        'sweep', '--kernel', kernel, '--mem', '512M', '--record', at,
        '--access', '--share', os.path.join(folder, 'share'), '--append',
        'ka.run=dangling ka.end=poweroff', status=1, timeout=TIMEOUT).stdout
    found, = re.findall(r'^ *go there: \S+ (--replay .*)$', said, re.M)
    error = rows(ka('-f', os.path.join(at, 'journal'), 'error', '-j', '-s'))[0]
    with Run(folder, 'there', *shlex.split(found)) as run:
        run.until(lambda: 'the VM is here' in run.text())
        assert registers(run)[PC[kernel_arch(kernel)]] == \
            int(error['error_stack'][0], 16), (said, error)


def check(kernel, short):
    n = 4 if short else 200
    with tempfile.TemporaryDirectory(prefix='ka-goto.') as folder:
        at = os.path.join(folder, 'r')
        with record(folder, 'r', kernel) as recorded:
            recorded.ended()
        with tap.test(f'{kernel}: ka goto reaches events, forward'):
            check_forward(kernel, folder, at, 4 if short else 30)
        with tap.test(f'{kernel}: ka goto reaches events, in any order'):
            check_random(kernel, folder, at, n)
        if not oracle.can_build_modules(kernel):
            tap.skip(f'{kernel}: a use after free', 'no headers or compiler')
            return
        found = record_dangling(folder, kernel)
        if not short:
            with tap.test(f'{kernel}: the last write to a word'):
                check_dangling(kernel, found[0], folder, *found[1:])
            with tap.test(f'{kernel}: from a finding of a sweep to its moment'):
                check_sweep(kernel, folder)
        with tap.test(f'{kernel}: from an error to the stale pointer, in gdb'):
            check_six_commands(kernel, found[0], folder, *found[1:])


def main():
    ap = programs.arguments(__doc__, short='6.12 only, 4 events', smp=False)
    args = programs.parse(ap, kernels=KERNELS)
    for kernel in args.kernel:
        check(kernel, args.short)
    tap.done()


if __name__ == '__main__':
    main()
