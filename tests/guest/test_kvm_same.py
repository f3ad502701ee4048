#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Under KVM ka answers as under TCG, and the guest's text, while its VM is
stopped, is as without ka. gdb has its own breakpoints there. The kernel's
objects are as the guest says.

The same modules do the same in a guest of KVM and in one of TCG. The answers of
ka are equal but for addresses, times and numbers of tasks and vCPUs. Oracle for
the text: what gdb reads in a guest of KVM without ka; for objects: /proc.

usage: test_kvm_same.py [--short] [--kernel K]... [--smp N]... [--case C]...
"""
import json
import os
import re
import shutil

import test_faults
import test_kvm
import test_tasks
import test_text_unchanged
from lib import oracle
from scripts.lib import outer
from scripts.lib.arches import KERNEL_VA
from scripts.lib.guest import Guest

MODULES = 'ka_leaky', 'ka_errors', 'kf_calls', 'ka_life'
WORDS = f'{test_kvm.WORDS} {test_kvm.QUICK}'
# What is another number in each boot.
ITS_OWN = re.compile(r'"\w*(us|ns|pid|cpu|id|seq|events|mib|ms)": [^,}]+|'
                     r'"text": "[^"]*"|0x[0-9a-f]{9,}|' + KERNEL_VA.pattern)
# Instructions of kfree(): those of ftrace come first.
PLACES = {'6.1': (0, 5), '6.12': (0, 4, 9)}
# The blocks that a module has; what it did.
COMMANDS = (
    'ka leak module ka_leaky -a -s', 'ka error -s', 'ka calls -n 0 -s',
    'ka fault log -n 0 -s', 'ka alloc ka_life_site_init -s',
    'ka alloc ka_life_site_core -s', 'ka mod ka_life')


def make_share(folder, kernel):
    os.makedirs(folder)
    built = oracle.build_modules(kernel)
    for name in MODULES:
        shutil.copy(os.path.join(built, name + '.ko'), folder)
    shutil.copy(os.path.join(oracle.INSIDE, 'errors.sh'), folder)
    shutil.copy(os.path.join(oracle.INSIDE, 'text.sh'), folder)


def work(g):
    """Have each module do what it does."""
    w = test_faults.World(g)
    for name in 'kf_calls', 'ka_life':
        g.shell(f'insmod /share/{name}.ko')
    for name in test_kvm.KMALLOC:
        g.hmp_qmp(f'ka calls add {name} --module kf_calls')
    g.shell('ls /proc/sys >/dev/null')      # KVM plants at the next event
    w.calls('kmalloc', 320, n=7)
    w.add('kmalloc --module kf_calls --times 2')
    w.calls('kmalloc', 320, n=7)
    w.clear()
    g.shell('insmod /share/ka_leaky.ko plant=0x7f; rmmod ka_leaky')
    g.shell('sh /share/errors.sh double-free brief')


def own_removed(text):
    """Return the rows of an answer, sorted, without what is the boot's own."""
    return sorted(ITS_OWN.sub('', json.dumps(json.loads(line)))
                  for line in text.splitlines())


def answers_of(g):
    return {line: own_removed(g.hmp_qmp(line + ' -j')) for line in COMMANDS}


def answers(kernel, smp, share):
    """The same commands, the same answers."""
    make_share(share, kernel)
    with Guest(kernel=kernel, smp=smp, end='shell', share=share, kaslr=False,
               mem='256M', cmdline=WORDS, timeout=test_kvm.TIMEOUT,
               name=f'kvm-same-tcg-{kernel}-{smp}') as g:
        work(g)
        want = answers_of(g)
    with outer.worked(kernel=kernel, smp=smp, end='shell', share=share,
                      kaslr=False, cmdline=WORDS, timeout=test_kvm.TIMEOUT,
                      name=f'kvm-same-{kernel}-{smp}') as g:
        work(g)
        got = answers_of(g)
    for line, rows in want.items():
        assert rows, f'{line}: no answer'
        assert got[line] == rows, f'{line}:\n' + '\n'.join(
            got[line] + ['instead of'] + rows)
    return {line: len(rows) for line, rows in want.items()}


# --- the text ----------------------------------------------------------------

def dump(g, name):
    """Return the text as gdb reads it."""
    where = {name: int(va, 16) for va, name in
             test_text_unchanged.TEXT.findall(g.console)}
    path = g.path(name)
    g.gdb([f"dump binary memory {path} {where['_stext']:#x} "
           f"{where['_etext']:#x}"])
    with open(path, 'rb') as f:
        return where['_stext'], f.read()


def booted(kernel, smp, share, traced):
    return outer.worked(kernel=kernel, smp=smp, run='text', share=share,
                        kaslr=False, cmdline=WORDS, timeout=test_kvm.TIMEOUT,
                        plugin_opts='' if traced else None,
                        name=f'kvm-text-{kernel}-{smp}-{traced}')


def text(kernel, smp, share):
    """gdb reads the same text with ka, also after savevm and loadvm."""
    make_share(share, kernel)
    with booted(kernel, smp, share, False) as g:
        start, want = dump(g, 'text')
    assert len(want) > 8 << 20, f'only {len(want)} bytes'
    with booted(kernel, smp, share, True) as g:
        assert g.stat()['kvm.breakpoints'] > 50, g.stat()
        for line in 'savevm a', 'loadvm a':
            assert not g.hmp_qmp(line).strip(), line
        assert g.stat()['kvm.breakpoints'] > 50, g.stat()
        _, got = dump(g, 'text')
    differ = test_text_unchanged.words_that_differ(want, got)
    assert len(got) == len(want) and not differ, ' '.join(
        f'{start + i:#x}' for i in sorted(differ)[:20])
    return len(want)


# --- a debugger --------------------------------------------------------------

STOPS = 6


def debugger(kernel, smp, share):
    """gdb stops at its own breakpoints, one of them where ka has its own, and
    ka sees all calls."""
    make_share(share, kernel)
    with outer.worked(kernel=kernel, smp=smp, end='shell', share=share,
                      cmdline=WORDS, timeout=test_kvm.TIMEOUT,
                      name=f'kvm-gdb-{kernel}-{smp}') as g:
        va = g.symbol('kfree')
        before = g.stat()
        g.type('ls -lR /proc/sys >/dev/null\n')
        said = g.gdb([f'x/4i {va:#x}', *(f'break *{va + at:#x}'
                                         for at in PLACES[kernel]),
                      *['continue'] * STOPS, 'delete'])
        stops = re.findall(r'^(?:Thread \d+ hit )?Breakpoint \d+, '
                           '(0x[0-9a-f]+)', said, re.M)
        assert len(stops) == STOPS, said
        assert {int(s, 16) - va for s in stops} == set(PLACES[kernel]), said
        assert g.shell('ls /proc/sys >/dev/null; echo on').strip() == 'on'
        stat = g.stat()
        for name in test_kvm.UNSEEN:
            assert not stat.get(name), (name, stat.get(name))
        assert stat['hits']['kfree'] > before['hits']['kfree'] + STOPS, stat
        text = g.hmp_qmp('ka error')
        assert text.startswith('no errors'), text
        test_kvm.check_console(g.console)
        return stops


# --- objects -----------------------------------------------------------------

def objects(kernel, smp, share):
    """Tasks, open files and modules are those of /proc."""
    os.makedirs(share)
    shutil.copy(oracle.build_tool('ka_tasks', kernel),
                os.path.join(share, 'ka-tasks'))
    test_tasks.add_modules(share, kernel)
    with outer.worked(kernel=kernel, smp=smp, end='shell', share=share,
                      cmdline=WORDS, timeout=test_kvm.TIMEOUT,
                      name=f'kvm-objects-{kernel}-{smp}') as g:
        with_types = test_tasks.load_modules(g)
        g.shell('/share/ka-tasks make')
        reading = test_tasks.Reading(g)
        modules = reading.before.modules
        test_tasks.check_sums(g, reading)
        test_tasks.check_modules(g, modules, with_types)
        test_tasks.check_one_module(g, modules)
        test_tasks.check_one(g, reading)
        files, _ = test_tasks.check_files(g, reading)   # the VM runs again
        test_tasks.check_names(reading)
        tasks, _ = test_tasks.check_facts(reading)
    return {'tasks': tasks, 'files': files, 'modules': len(modules)}


CASES = answers, text, debugger, objects


def run(tap, kernel, smp, label, chosen):
    for case in CASES:
        if case.__name__ in chosen:
            test_kvm.run_case(tap, label, case, kernel, smp)


if __name__ == '__main__':
    test_kvm.run_chosen(__doc__, [c.__name__ for c in CASES], run)
