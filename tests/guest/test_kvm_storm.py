#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests of KVM that disturb the tracer: a storm of allocations while commands
are run without a pause, and a guest that is hostile to the breakpoints: it
jumps behind the first byte of a hooked instruction, steps it, writes over the
breakpoint, and executes it with a stack that is not mapped.

Oracle: the module ka_stress counts its live blocks; no event is dropped. The
module ka_hostile says what the hooked function returned. QEMU answers after
each step, and ends with status 0.

usage: test_kvm_storm.py [--short] [--kernel K]... [--smp N]... [--minutes M]
"""
import os
import re
import shutil
import tempfile
import time

import test_kvm
import test_stress
from lib import ksyms, oracle, programs
from lib.tap import Tap
from scripts.lib import outer

STRESS = '/sys/module/ka_stress/parameters/'
STEPS = 1000            # of the storm in a minute
ZERO = tuple(name for name in test_stress.ZERO if 'access' not in name) + (
    'kvm.unseen', 'kvm.withdrawn')
COMMANDS = ('ka stat', 'ka error', 'ka top -n 5', 'ka check',
            'ka alloc ka_stress_kmalloc -n 5')


def make_share(folder, kernel):
    os.makedirs(folder)
    shutil.copy(os.path.join(oracle.build_modules(kernel), 'ka_stress.ko'),
                folder)
    shutil.copy(os.path.join(oracle.build_modules(kernel, 'kmod-kvm'),
                             'ka_hostile.ko'), folder)
    return folder


# --- the storm -------------------------------------------------------------

def storm(g, minutes):
    """Ask without a pause; return how often."""
    g.shell('insmod /share/ka_stress.ko pace=2000 low_mb=0; '
            f'echo 1 >{STRESS}run')
    end = time.monotonic() + minutes * 60
    asked = 0
    while time.monotonic() < end:
        text = g.hmp_qmp(COMMANDS[asked % len(COMMANDS)])
        assert text.strip(), COMMANDS[asked % len(COMMANDS)]
        asked += 1
    text = g.shell(f'echo 0 >{STRESS}run; cat {STRESS}live {STRESS}done')
    steps = int(re.search(r'^steps (\d+)$', text, re.M).group(1))
    assert steps > STEPS * minutes, text
    theirs = test_stress.live_by_guest(text)
    assert len(theirs) >= 5, text
    names = g.shell("grep 'ka_stress' /proc/kallsyms")
    symbols = ksyms.Symbols(
        '\n'.join(line for line in names.splitlines() if '\t[' in line or
                  ' [' in line).encode())
    ours = test_stress.same_live(theirs, g.hmp_qmp, symbols)
    for kind, row in theirs.items():
        assert ours.get(kind, (0, 0, 0)) == row, f'{kind}: {ours} != {theirs}'
    stat = g.stat()
    bad = {name: stat[name] for name in ZERO if stat.get(name)}
    assert not bad, f'{bad} {g.hmp_qmp("ka error -n 5")}'
    assert g.hmp_qmp('ka check').startswith('ok'), g.hmp_qmp('ka check')
    return {**test_kvm.figures(stat), 'commands': asked, 'steps': steps,
            'live': sum(row[0] for row in theirs.values())}


# --- a hostile guest -------------------------------------------------------

def says(g, line):
    """Have the module do something; return what it says."""
    text = g.shell(f'dmesg -c >/dev/null; echo {line} >/proc/ka_hostile; dmesg')
    found = [row.partition('ka_hostile: ')[2] for row in text.splitlines()
             if 'ka_hostile: ' in row]
    assert found, f'{line}: {text}'
    return found[0]


def hits_of(g, name):
    before = g.stat()['hits'][name]
    g.shell('ls -lR /proc/sys/kernel >/dev/null; ls /proc/self/fd >/dev/null')
    return g.stat()['hits'][name] - before


def function(g):
    """Return the name of a hooked function of (size, flags)."""
    hits = g.stat()['hits']
    return next(n for n in test_kvm.KMALLOC if hits.get(n))


def find(g):
    g.shell('insmod /share/ka_hostile.ko')
    name = function(g)
    text = says(g, f'find {g.symbol(name):x}')
    assert text.startswith('int3 '), text
    return text


def middle(g):
    """The function works without the event."""
    assert says(g, 'middle') == 'middle 1'
    assert hits_of(g, function(g)) > 0


def step(g):
    """The breakpoint is withdrawn, which is a gap, and is back later."""
    before = g.stat()
    assert says(g, 'step') == 'step 1'
    assert hits_of(g, function(g)) > 0
    stat = g.stat()
    assert stat['kvm.withdrawn'] == before['kvm.withdrawn'] + 1, stat
    assert stat['kvm.breakpoints'] == before['kvm.breakpoints'], stat
    assert stat['gaps'] > before['gaps'], stat
    return g.hmp_qmp('ka error')


def patch(g):
    """The guest writes its own byte over the breakpoint: calls are not seen
    until a command pauses the VM, which plants again. Another byte stays."""
    name = function(g)
    own = 0x41                          # of push %r8 to push %r15
    text = g.shell(f'dmesg -c >/dev/null; echo patch {own:x} '
                   '>/proc/ka_hostile; ls -lR /proc/sys/kernel >/dev/null; '
                   'dmesg')
    assert 'patch 1' in text, text
    assert hits_of(g, name) > 0
    assert says(g, 'patch cc') == 'patch 1'     # the same as ours
    assert hits_of(g, name) > 0


def stack(g):
    """The kernel dies of its stack; QEMU does not."""
    g.type('echo stack >/proc/ka_hostile\n')
    end = time.monotonic() + g.timeout
    while 'Kernel panic' not in g.console:
        assert time.monotonic() < end and g.alive(), g.console[-2000:]
        time.sleep(0.2)
    assert outer.exit_status(g) == 0, g.qemu_log[-2000:]


HOSTILE = find, middle, step, patch, stack


def run(tap, kernel, smp, label, minutes):
    with tempfile.TemporaryDirectory(prefix='ka-kvm.') as tmp:
        share = make_share(os.path.join(tmp, 'share'), kernel)
        with outer.worked(
                kernel=kernel, smp=smp, end='shell', share=share,
                plugin_opts='check=on', timeout=test_kvm.TIMEOUT,
                cmdline=f'{test_kvm.WORDS} {test_kvm.QUICK}',
                name=f'kvm-storm-{kernel}-{smp}') as g:
            with tap.test(f'{label}: {minutes} min of a storm', guest=g):
                tap.note(storm(g, minutes))
            for what in HOSTILE:
                with tap.test(f'{label}: hostile: {what.__name__}', guest=g):
                    tap.note(what(g) or '')


def main():
    tap = Tap()
    ap = programs.arguments(__doc__, short='6.1 on 1 vCPU only')
    ap.add_argument('--minutes', type=float, help='of the storm; default: 30, '
                    'with --short 1')
    args = programs.parse(ap, kernels=('6.1', '6.12'), short_kernels=('6.1',),
                          smps=(1, 2))
    minutes = args.minutes or (1 if args.short else 30)
    programs.run_over(tap, args.kernel, args.smp,
                      lambda *a: run(*a, minutes), test=None)
    tap.done()


if __name__ == '__main__':
    main()
