#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What the scripts do themselves, without a guest: in a tree where set-up and
QEMU are stand-ins, and scripts/sweep by its functions."""
import importlib.machinery
import importlib.util
import os
import sys
import types

from kaguest import ROOT, Tap

tap = Tap()


def load_sweep():
    """scripts/sweep as a module; nothing of it lies there afterwards."""
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader(
        'sweep', os.path.join(ROOT, 'scripts', 'sweep'))
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader('sweep', loader))
    loader.exec_module(module)
    return module


sweep = load_sweep()


class Vm:
    """A VM that goes on; its console says the same all the time."""

    def __init__(self, console):
        self.console = console

    def qmp(self, _):
        return {'running': True, 'status': 'running'}


def waited(console, marker=None, timeout=0.01):
    args = types.SimpleNamespace(timeout=timeout, marker=marker, console=False)
    return sweep.wait(Vm(console), args)


PANIC = '[    1.0] Kernel panic - not syncing: sysrq triggered crash\n'

with tap.test('sweep: a guest that has panicked is so at the timeout'):
    assert waited('login:\n') == ('timeout', None)
    why, problem = waited(PANIC)
    assert why == 'panic', why
    assert 'Kernel panic - not syncing: sysrq' in problem, problem

with tap.test('sweep: a panic in which the guest stays ends the wait'):
    why, problem = waited(PANIC + '---[ end Kernel panic - not syncing: ]---',
                          timeout=10)
    assert why == 'panic' and 'sysrq' in problem, (why, problem)

with tap.test('sweep: a marker does not hide a panic'):
    why, problem = waited(PANIC + 'marked\n', marker='marked')
    assert why == 'marker' and 'sysrq' in problem, (why, problem)
    assert waited('marked\n', marker='marked') == ('marker', None)

with tap.test('sweep: of a guest that prints nothing a panic is not known'):
    why, problem = waited('\n')
    assert why == 'timeout' and 'printed nothing' in problem, (why, problem)

STAT = {'tracing.state': 'on', 'tracing.kernel': 'recognised',
        'blocks.previous_boot': 0, 'complete': True}


def problems(marker=None, why='end', **stat):
    """Of a guest whose `ka stat` differs so from that of one that is well."""
    args = types.SimpleNamespace(marker=marker)
    return list(sweep.why_not_all(args, why, {**STAT, **stat}))


with tap.test('sweep: where errors were lost a guest is not clean'):
    assert problems() == []
    for stat, want in (
            ({'error.dropped': 3}, '3 errors more'),
            ({'tracing.state': 'off'}, 'tracing was switched off'),
            ({'tracing.kernel': 'not recognised'}, 'not recognised'),
            ({'blocks.previous_boot': 1}, 'booted again')):
        text, = problems(**stat)
        assert want in text, text

with tap.test('sweep: what else is not known is warned of'):
    assert not list(sweep.unseen(STAT))
    for stat in {'gaps': 1}, {'block.dropped': 1}, {'complete': False}, \
            {'journal.lost': 1}:
        text, = sweep.unseen({**STAT, **stat})
        assert not problems(**stat), stat


class Answers:
    """A guest's monitor."""

    def __init__(self, **answers):
        self.answers = answers

    def qmp(self, _):
        return {}

    def hmp_qmp(self, command):
        words = command.split()
        return self.answers[words[1] + ('_json' if '-j' in words else '')]


with tap.test('sweep: a line of what is not known is no error'):
    found, lines, state = sweep.sweep(Answers(
        stat_json='{"type":"stat","events.checked":7}',
        error_json='{"type":"incomplete","complete":false}\n'
                   '{"type":"error","error":"double-free"}',
        error='not all errors are known: ...\nerror[double-free]'))
    assert [e['error'] for e in found] == ['double-free'], found
    assert lines == ['error[double-free]'], lines
    assert not state['complete'], state

tap.done()
