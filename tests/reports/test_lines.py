#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Lines of source: ka --vmlinux and --modules against addr2line, on each call
of a file that stands for a kernel. Files that do not fit give no line.

usage: test_lines.py KA KA-JOURNAL
"""
import json
import os
import random
import re
import shutil
import sqlite3
import sys
import time

import exports
from kernel_with_lines import (
    FUNCTIONS, MODULE_BASE, SLIDE, Kernel)

sys.path.insert(0, exports.ROOT)

from scripts.lib.findings import finding, sarif     # noqa: E402

P = exports.Program(*sys.argv[1:3])
K = Kernel(P.path('.kernel'))
DEPTH = 20      # frames of a stack
RANGES = ('_stext', '_etext', '__start_rodata', '__end_rodata', '_sdata',
          '_edata', '__bss_start', '__bss_stop')
MODULE = K.module('ka_mod')


def symbol_lines(kernel=K):
    for va, kind, name in kernel.symbols():
        kind = 'T' if name in RANGES else kind
        yield f'symbol va={va + SLIDE:x} name={name} type={kind}'


def alloc_lines(stacks):
    for i, stack in enumerate(stacks):
        frames = ','.join(f'{pc:x}' for pc in stack)
        yield f'alloc va={0xffff888000001000 + i * 64:x} size=40 ' \
              f'us={i + 1} pid=1 comm=sh stack={frames}'


def cut(pcs):
    return [pcs[i:i + DEPTH] for i in range(0, len(pcs), DEPTH)]


def module_lines(path, base=MODULE_BASE):
    yield f'module va={base + 0x8000:x} name=ka_mod base={base:x} size=8000'
    for va, kind, name in K.symbols(path):
        if kind in 'tT':
            yield f'modsym va={base + va:x} name={name}'


def journal(*parts):
    return P.journal('\n'.join(['complete', *(x for p in parts for x in p)])
                     + '\n')


PCS = K.returns()
MODULE_PCS = K.returns(MODULE)
JOURNAL = journal(symbol_lines(), alloc_lines(cut([a + SLIDE for a in PCS])))
WITH_MODULE = journal(
    symbol_lines(), module_lines(MODULE),
    alloc_lines(cut([a + MODULE_BASE for a in MODULE_PCS])))


def ask(where, *words, vmlinux=K.vmlinux):
    """(rows or text, stderr) of ka with lines."""
    status, out, err = P.run('-f', where, '--vmlinux', vmlinux, *words)
    assert status == 0, (status, err)
    text = out.decode('ascii')
    return ([json.loads(line) for line in text.splitlines()]
            if '-j' in words else text), err


def all_frames(rows):
    """(address, symbol, line, inlined) of all stacks of allocations."""
    for row in rows:
        n = len(row.get('alloc', []))
        yield from zip((int(a, 16) for a in row.get('alloc_at', [])),
                       row.get('alloc_symbols', []),
                       row.get('alloc_lines', [None] * n),
                       row.get('alloc_inlined', [None] * n))


def compare(rows, oracle, base):
    """Compare each frame with addr2line; return the number of frames, and of
    those that have inlined functions."""
    n = inlined = 0
    for at, symbol, line, more in all_frames(rows):
        want = oracle[at - base]
        assert line == ':'.join(want[-1][1:]), (hex(at), symbol, line, want)
        assert more == [f'{f} {file}:{no}' for f, file, no in want[:-1]], \
            (hex(at), more, want)
        assert symbol.split('+')[0] == want[-1][0], (symbol, want)
        n += 1
        inlined += bool(more)
    return n, inlined


def each_call_of_the_kernel():
    begin = time.monotonic()
    rows, err = ask(JOURNAL, '--inlines', '-j', '-n', '0')
    seconds = time.monotonic() - begin
    assert not err, err
    oracle = K.oracle([a - 1 for a in PCS])
    n, inlined = compare(rows, oracle, SLIDE)
    assert n == len(PCS) and n > 5 * FUNCTIONS and inlined > FUNCTIONS
    return f' ({n} frames, {inlined} with inlined functions, {seconds:.2f} s)'


def each_call_of_a_module():
    rows, err = ask(WITH_MODULE, '--modules', os.path.dirname(MODULE),
                    '--inlines', '-j', '-n', '0')
    assert not err, err
    oracle = K.oracle([a - 1 for a in MODULE_PCS], MODULE)
    n, inlined = compare(rows, oracle, MODULE_BASE)
    assert n == len(MODULE_PCS) and inlined > 20, (n, inlined)
    return f' ({n} frames)'


def another_version_of_dwarf():
    if not shutil.which('llvm-addr2line'):
        return ' # SKIP llvm-addr2line is not installed'
    kernel = Kernel(P.path('.kernel'), dwarf=5)
    pcs = kernel.returns()
    where = journal(symbol_lines(kernel),
                    alloc_lines(cut([a + SLIDE for a in pcs])))
    rows, err = ask(where, '--inlines', '-j', '-n', '0',
                    vmlinux=kernel.vmlinux)
    n, _ = compare(rows, kernel.oracle([a - 1 for a in pcs]), SLIDE)
    assert not err and n == len(pcs), err
    return f' ({n} frames)'


def the_own_function_without_inlines():
    rows, _ = ask(JOURNAL, '-j', '-n', '0')
    oracle = K.oracle([a - 1 for a in PCS])
    for at, symbol, line, more in all_frames(rows):
        want = oracle[at - SLIDE]
        assert more is None
        assert line == ':'.join(want[-1][1:]), (symbol, line, want)


def the_long_form():
    want = {}
    rows, _ = ask(JOURNAL, '--inlines', '-j', '-n', '0')
    for _, symbol, line, more in all_frames(rows):
        want[symbol] = (line, more)
    text, _ = ask(JOURNAL, '--inlines', '-l', '-n', '0')
    lines = [x.strip() for x in text.splitlines() if x.startswith(' ' * 12)]
    inlined, n = [], 0
    for line in lines:
        if line.endswith(' (inlined)'):
            inlined.append(line[:-len(' (inlined)')].replace('  ', ' '))
            continue
        symbol, _, place = line.partition('  ')
        if symbol.startswith('same+'):
            inlined = []        # two functions have this name
            continue
        assert (place, inlined) == want[symbol], (line, want[symbol])
        inlined, n = [], n + 1
    assert n > 5 * FUNCTIONS, n
    assert ' @' not in text


def addresses_stay_if_asked_for():
    text, _ = ask(JOURNAL, '-l', '--pc', '-n', '1')
    assert re.search(r'\+0x[0-9a-f]+ @[0-9a-f]{16}  \S+:\d+\n', text), text
    status, out, _ = P.run('-f', JOURNAL, '-l', '--pc', '-n', '1')
    assert status == 0 and re.search(rb'\+0x[0-9a-f]+ @[0-9a-f]{16}\n', out)


def callers_of_ka_top():
    rows, _ = ask(JOURNAL, 'top', '--by', 'caller', '-j', '-n', '0')
    oracle = K.oracle([a - 1 for a in PCS])
    rows = [r for r in rows if r.get('caller')]
    for row in rows:
        want = oracle[int(row['caller_at'], 16) - SLIDE][-1]
        assert row['caller_line'] == ':'.join(want[1:]), row
    assert rows


# --- exports -----------------------------------------------------------------

def export(form, *words):
    path = P.path('.' + form)
    status, _, err = P.run('-f', JOURNAL, '--vmlinux', K.vmlinux, 'export',
                           form, '--frames', 'line', '-o', path, *words)
    assert status == 0 and not err, err
    return path


def folded_stacks():
    rows, _ = ask(JOURNAL, '-j', '-n', '0')
    want = set()
    for row in rows:
        if row.get('alloc'):
            names = [f"{s.split('+')[0]} {line}" for s, line in
                     zip(row['alloc_symbols'], row['alloc_lines'])]
            want.add(';'.join(reversed(names)))
    with open(export('folded'), encoding='ascii') as f:
        got = {line.rpartition(' ')[0] for line in f if line[0] != '#'}
    assert got == want, got ^ want


def the_database():
    with sqlite3.connect(export('sqlite')) as db:
        rows = db.execute('select pc, file, line from frame').fetchall()
    oracle = K.oracle([a - 1 for a in PCS])
    for pc, file, line in rows:
        want = oracle[int(pc, 16) - 1 - SLIDE][-1]
        assert (file, str(line)) == want[1:], (pc, file, line, want)
    assert len(rows) == len(PCS)


def refused_exports():
    for before, words, text in (
            ((), ('folded',), 'neither a journal nor a VM has lines'),
            (('--vmlinux', K.vmlinux), ('heaptrack',), 'has no lines'),
            (('--vmlinux', '/none'), ('folded',), 'No such file')):
        status, out, err = P.run('-f', JOURNAL, *before, 'export', *words,
                                 '--frames', 'line')
        assert status and not out and text in err, (status, err)


# --- files that do not fit ---------------------------------------------------

def no_lines(where, words, why, vmlinux=K.vmlinux, named='no lines'):
    rows, err = ask(where, *words, '-j', '-n', '0', vmlinux=vmlinux)
    assert len(err.splitlines()) == 1 and why in err and named in err, err
    assert rows and not any(f[2] for f in all_frames(rows)), err
    plain = P.run('-f', where, '-l', '-n', '3')[1]
    status, out, _ = P.run('-f', where, '--vmlinux', vmlinux, *words, '-l',
                           '-n', '3')
    assert status == 0 and out == plain, out


def another_build():
    other = Kernel(P.path('.kernel'), more=1)
    no_lines(JOURNAL, (), 'it is another build', other.vmlinux)


def no_debug_information():
    path = P.path('.stripped')
    K.run('objcopy', '--strip-debug', K.vmlinux, path)
    no_lines(JOURNAL, (), 'no debug information', path)
    no_lines(JOURNAL, (), 'No such file', '/none')
    no_lines(JOURNAL, (), '', JOURNAL)


def the_usual_places():
    _, err = ask(JOURNAL, '-j', vmlinux='auto')
    assert len(err.splitlines()) == 1 and 'no lines' in err, err


def no_lines_of_the_module(folder, why):
    rows, err = ask(WITH_MODULE, '--modules', folder, '-j', '-n', '0')
    assert len(err.splitlines()) == 1 and why in err, err
    assert rows and not any(f[2] for f in all_frames(rows)), err


def another_module():
    other = K.module('ka_mod', more=9)
    no_lines_of_the_module(os.path.dirname(other), 'it is another build')
    two = P.path('.modules')
    for folder in 'a', 'b':
        os.makedirs(os.path.join(two, folder))
        shutil.copy(MODULE, os.path.join(two, folder))
    no_lines_of_the_module(two, 'several files')
    K.run('objcopy', '--strip-debug', MODULE, os.path.join(two, 'ka_mod.ko'))
    shutil.rmtree(os.path.join(two, 'a'))
    shutil.rmtree(os.path.join(two, 'b'))
    no_lines_of_the_module(two, 'no debug information')
    rows, err = ask(WITH_MODULE, '--modules', '/none', '-j', '-n', '0')
    assert not err and not any(f[2] for f in all_frames(rows)), err


def a_module_of_another_kernel():
    other = os.path.dirname(K.module('ka_mod', vermagic='6.11.0 SMP '))
    with Vm(K.banner, journal_path=WITH_MODULE) as vm:
        lines, err = vm.lines('--modules', other)
        assert 'it is for kernel 6.11.0' in err and not any(lines), err
        lines, err = vm.lines('--modules', os.path.dirname(MODULE))
        assert not err and all(lines), err


class Vm:
    """A VM that says what its kernel is."""

    def __init__(self, banner, build_id=None, journal_path=JOURNAL):
        self.banner, self.build_id = banner, build_id
        self.journal = journal_path

    def __enter__(self):
        self.qemu = exports.Qemu(P, self.journal)
        whole = self.qemu.program
        me = self

        class Program:
            """The journal, and what the VM knows besides."""

            def run(self, *words):
                status, out, err = whole.run(*words)
                if 'stat' in words:
                    row = json.loads(out.splitlines()[0])
                    row['kernel.banner'] = me.banner
                    out = json.dumps(row).encode() + b'\n'
                if 'base' in words and me.build_id:
                    out += json.dumps({'type': 'range', 'name': 'build-id',
                                       'note': me.build_id}).encode() + b'\n'
                return status, out, err
        self.qemu.program = Program()
        return self

    def __exit__(self, *_):
        pass

    def lines(self, *more):
        status, out, err = P.run('-q', self.qemu.path, '--vmlinux', K.vmlinux,
                                 *more, '-j', '-n', '3')
        assert status == 0, err
        rows = [json.loads(line) for line in out.splitlines()]
        return [f[2] for f in all_frames(rows)], err


def a_running_vm():
    with Vm(K.banner) as vm:
        lines, err = vm.lines()
        assert not err and len(lines) == 3 * DEPTH and all(lines), (err, lines)
    with Vm(K.banner.replace('#1', '#2')) as vm:
        lines, err = vm.lines()
        assert 'it is another kernel: it is Linux' in err, err
        assert not any(lines), lines


def the_build_id():
    note = re.search('Build ID: ([0-9a-f]+)', K.run('readelf', '-n',
                                                    K.vmlinux))[1]
    with Vm('Linux version 1', note) as vm:
        lines, err = vm.lines()
        assert 'another kernel' in err and not any(lines), err
    with Vm(K.banner, note) as vm:
        lines, err = vm.lines()
        assert not err and all(lines), err
    with Vm(K.banner, '0123456789abcdef') as vm:
        lines, err = vm.lines()
        assert 'its build id is ' + note in err and not any(lines), err


def answers_of_others():
    answers = b''.join(P.run('-f', JOURNAL, *words)[1] for words in (
        ('stat', '-j'), ('base', '-v', '-j'),
        ('-j', '-s', '--pc', '-n', '9')))
    status, out, err = P.run('--vmlinux', K.vmlinux, 'lines', give=answers)
    rows = [json.loads(line) for line in out.splitlines()]
    assert status == 0 and not err, err
    want, _ = ask(JOURNAL, '-j', '-n', '9')
    assert rows[-len(want):] == want
    status, out, err = P.run('--vmlinux', '/none', 'lines', give=answers)
    assert (status, out) == (2, answers) and 'no lines' in err, err


def a_report_for_github():
    rows, _ = ask(JOURNAL, '-j', '-n', '1')
    row = {**rows[0], 'error': 'double-free',
           'title': 'double-free in ' + rows[0]['alloc_symbols'][9]
           .partition('+')[0]}
    found = finding.from_error(row, 'a text')
    text = sarif.render(finding.Report(findings=[found]))
    sarif.check(text)
    result = json.loads(text)['runs'][0]['results'][0]
    where = result['locations'][0]['physicalLocation']
    assert found.place.source == \
        f"{where['artifactLocation']['uri']}:{where['region']['startLine']}"
    assert where['artifactLocation']['uri'] == 'mm/a.c', where
    steps = result['codeFlows'][0]['threadFlows'][0]['locations']
    assert len(steps) == DEPTH, steps
    for source in '/etc/passwd:3', '../x.c:3', 'x.c', 'x.c:y', None:
        bad = {**row, 'alloc_lines': [source] * DEPTH}
        text = sarif.render(finding.Report(
            findings=[finding.from_error(bad, 'a text')]))
        sarif.check(text)
        assert sarif.FILE in text and 'passwd' not in text, source


def damaged_files():
    """A file that is cut off, or has other bytes, ends nothing."""
    with open(K.vmlinux, 'rb') as f:
        whole = f.read()
    chance = random.Random(7)
    path = P.path('.damaged')
    for i in range(30):
        data = bytearray(whole)
        if i % 2:
            del data[chance.randrange(len(data)):]
        for _ in range(i // 2):
            if data:
                data[chance.randrange(len(data))] = chance.randrange(256)
        with open(path, 'wb') as f:
            f.write(data)
        status, out, err = P.run('-f', JOURNAL, '--vmlinux', path,
                                 '--inlines', '-j', '-n', '2')
        assert status == 0 and out.count(b'\n') >= 2, (i, status, err)


def bad_lines():
    for words, text in ((('--vmlinux',), 'a value is missing'),
                        (('--inlines',), 'needs --vmlinux'),
                        (('--vmlinux', 'x', '--types', 'y'), 'are not for')):
        status, out, err = P.run('-f', JOURNAL, *words)
        assert status == 1 and not out and text in err, (status, err)
    status, _, err = P.run('-f', JOURNAL, '--vmlinux', K.vmlinux, 'top')
    assert status == 0 and 'with -l and -j' in err, err


if __name__ == '__main__':
    sys.exit(exports.run_tests([
        each_call_of_the_kernel, each_call_of_a_module,
        another_version_of_dwarf,
        the_own_function_without_inlines, the_long_form,
        addresses_stay_if_asked_for, callers_of_ka_top, folded_stacks,
        the_database, refused_exports, another_build, no_debug_information,
        the_usual_places, another_module, a_module_of_another_kernel,
        a_running_vm, the_build_id, answers_of_others,
        a_report_for_github, damaged_files, bad_lines]))
