#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`ka goto` reaches events of a recorded run, in its replay: the registers, the
task and the block are what the journal says. Oracle: the recorded run.

usage: test_goto.py [--short] [--kernel K]...
"""
import json
import os
import random
import re
import signal
import subprocess
import tempfile

from lib import programs
from lib.recorded import (KA, KERNELS, TIMEOUT, Run, compare_journals, gdb, ka,
                          record, same_at_the_end)
from lib.tap import Tap
from scripts.lib.arches import ARCHES
from scripts.lib.prepared import kernel_arch
from scripts.lib.qmp import Qmp

tap = Tap()

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


def check(kernel, short):
    with tempfile.TemporaryDirectory(prefix='ka-goto.') as folder:
        with record(folder, 'r', kernel) as recorded:
            recorded.ended()
        with tap.test(f'{kernel}: ka goto reaches events'):
            check_goto(kernel, folder, os.path.join(folder, 'r'),
                       8 if short else 60)


def main():
    ap = programs.arguments(__doc__, short='6.12 only, 8 events', smp=False)
    args = programs.parse(ap, kernels=KERNELS)
    for kernel in args.kernel:
        check(kernel, args.short)
    tap.done()


if __name__ == '__main__':
    main()
