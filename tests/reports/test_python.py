#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/ka.py: objects of journals and of a VM, and the example of
docs/python.md.

usage: test_python.py KA KA-JOURNAL
"""
import json
import os
import re
import subprocess
import sys

import exports

sys.path.insert(0, os.path.join(exports.ROOT, 'scripts'))
import ka

P = exports.Program(*map(os.path.abspath, sys.argv[1:3]))
ERRORS, MARKS = P.case('007-errors'), P.case('033-mark-and-diff')


def journal(path, **more):
    return ka.Journal(path, program=P.ka, **more)


def rows_are_those_of_the_program():
    """Each row of each answer, by its keys, is that of ka -j."""
    for path in ERRORS, MARKS, P.journal(exports.hostile_script()):
        run = journal(path)
        for got, words in ((run.blocks(), ('-n', '0')),
                           (run.errors(), ('error', '-n', '0')),
                           (run.top('stack'), ('top', '--by', 'stack', '-n',
                                               '0')),
                           (run.marks(), ('mark',))):
            _, out, _ = P.run('-f', path, *words, '-s', '-v', '-j') \
                if words != ('mark',) else P.run('-f', path, *words, '-j')
            wanted = [json.loads(line) for line in out.splitlines()]
            assert [o.raw['type'] for o in got.all] == [
                row['type'] for row in wanted], words
            for o, row in zip(got.all, wanted):
                assert set(o.raw) <= set(row), (words, o)
                assert all(o.raw[k] == row[k] for k in o.raw), (words, o)


def blocks_have_types():
    run = journal(ERRORS)
    block, = run.blocks('ffff888000001000')
    assert isinstance(block, ka.Block) and not block.allocated, block
    assert (block.va, block.requested, block.cache, block.alloc_us) == (
        0xffff888000001000, 64, 'kmalloc-64', 1), block
    assert [f.address for f in block.alloc] == [0xffffffff81000010], block
    assert block.get('error') is None and 'error' not in block
    try:
        raise AssertionError(block.error)
    except AttributeError as e:
        assert 'no error' in str(e), e
    assert run.blocks(block.va)[0].raw == block.raw
    assert {b.cache for b in run.blocks(cache='d*')} == {'dentry'}
    assert all(b.allocated for b in run.blocks(state='A'))
    assert run.stat()['errors.recorded'] == len(run.errors())
    assert not journal(ERRORS, at=9).errors()


def frames_have_names():
    frame = ka.Frame.parse('0xffffffffc0000010', 'a b+0x10[m]')
    assert frame == (0xffffffffc0000010, 'a b', 0x10, 'm'), frame
    assert str(frame) == 'a b+0x10[m]'
    bare = ka.Frame.parse('0xff', None)
    assert bare == (255, None, None, None) and str(bare) == f'{255:016x}'
    stack = ka.Stack((frame, bare))
    assert stack.functions() == ['a b', '?']
    assert stack.has('a*') and stack.has(module='m') and \
        not stack.has('a*', 'x')
    # A name of the guest that looks like a number, or like a stack
    o = ka.typed({'type': 'block', 'comm': '0x41', 'alloc': [], 'va': '0x41'})
    assert (o.comm, o.alloc, o.va) == ('0x41', (), 0x41), o


def sums_add_up():
    run = journal(MARKS)
    assert run.marks() == []
    for got in run.top('stack'), run.diff('@1', by='stack'):
        assert got and got.total.live == sum(row.live for row in got), got


def what_is_missing_is_said():
    late = journal(P.journal('alloc va=1000 size=10 us=1\n')).errors()
    assert 'not all are known' in late.incomplete, late.all
    assert journal(ERRORS).errors().incomplete == ''
    path = P.path('.journal')
    with open(ERRORS, 'rb') as f, open(path, 'wb') as torn:
        torn.write(f.read()[:-40])
    assert 'missing' in journal(path).errors().incomplete


def refusals_are_exceptions():
    for run, words, kind in (
            (journal(ERRORS), ('show', 'nothing'), ka.BadCommand),
            (journal(ERRORS), ('top', '--by', 'x'), ka.BadCommand),
            (journal('/nowhere'), ('stat',), ka.KaError),
            (ka.Vm('/nowhere', program=P.ka), ('stat',), ka.KaError),
            (ka.Journal(ERRORS, program='/nowhere'), ('stat',), ka.KaError)):
        try:
            raise AssertionError(run.run(*words))
        except ka.KaError as e:
            assert isinstance(e, kind) and str(e), e


def a_vm_answers_as_a_journal():
    qemu = exports.Qemu(P, ERRORS)
    run = ka.Vm(qemu.path, program=P.ka)
    assert [e.raw for e in run.errors()] == [
        e.raw for e in journal(ERRORS).errors()]
    lines = []

    def monitor(line):
        lines.append(line)
        return P.run('-f', ERRORS, *line.split()[1:])[1].decode()

    run = ka.Monitor(monitor)
    assert len(run.errors(task='a b')) == 0
    assert run.top(n=2).more >= 0
    assert lines == ["ka error -s -v -n 0 --task 'a b' -j",
                     'ka top --by caller -s -n 2 -j'], lines


def the_example_runs():
    path = os.path.join(exports.ROOT, 'docs', 'python.md')
    with open(path, encoding='utf-8') as f:
        example = re.search(r'```python\n(.*?)```', f.read(), re.S)[1]
    events = '''complete
symbol va=ffffffff81000000 name=_stext
symbol va=ffffffff81000100 name=foo_new
symbol va=ffffffff81000200 name=bar_new
symbol va=ffffffff81f00000 name=_etext
alloc va=ffff888000001000 size=40 us=1000000 stack=ffffffff81000110
'''
    more = '''
alloc va=ffff888000002000 size=100 us=3000000 stack=ffffffff81000110
alloc va=ffff888000003000 size=100 us=4000000 stack=ffffffff81000210
'''
    double = 'free va=ffff888000001000 us={} stack=ffffffff81000210\n'
    for script, status, lines in (
            (events, 0, ['']),
            (events + more, 1, ['256 bytes more by foo_new+0x10']),
            (events + double.format(5000000) + double.format(6000000), 1,
             ['double-free in bar_new: bar_new+0x10'])):
        done = subprocess.run(
            [sys.executable, '-c', example, P.journal(script)], text=True,
            stdout=subprocess.PIPE, check=False, env={
                **os.environ, 'KA_PROGRAM': P.ka,
                'PYTHONPATH': os.path.join(exports.ROOT, 'scripts')})
        assert done.returncode == status, done
        assert done.stdout.split('\n')[:-1] == lines, done.stdout


if __name__ == '__main__':
    sys.exit(exports.run_tests((
        rows_are_those_of_the_program, blocks_have_types, frames_have_names,
        sums_add_up, what_is_missing_is_said, refusals_are_exceptions,
        a_vm_answers_as_a_journal, the_example_runs)))
