#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The parts of scripts/fault-sweep that need no guest: verdicts, results that
are kept, reports, the command line. Oracle: what is expected.
"""
import json
import os
import subprocess
import sys
import types
import xml.etree.ElementTree as ET

from lib import commands
from lib.fake_sweep import STACKS, FakeRestorer
from lib.own_folder import OwnFolder
from lib.tap import Tap
from scripts.lib.faultsweep import command, record, report, results, sweep
from scripts.lib.faultsweep import clones, numbers, verdict
from scripts.lib.faultsweep.numbers import Outcome
from scripts.lib.faultsweep.runner import Limits
from scripts.lib.faultsweep.scenario import Scenario
from scripts.lib.prepared import ROOT
from scripts.lib.qmp import GuestError

tap = Tap()
work = OwnFolder('ka-fault-sweep.').top

FAULT = {'function': '__kmalloc_noprof', 'value': '0x0', 'size': 64,
         'flags': '0xcc0', 'frames': 'kf_make+0x10[kf] init+0x5[kf]'}


def a_run(**more):
    return {'end': 'marker', 'why': '', 'status': 0, 'us': 1000, 'made': 1,
            'full': 0, 'usual': 1,
            'faults': [FAULT], 'log': [], 'errors': [], 'leaks': [],
            'vcpus': [], 'calls': 1, 'unloaded': ['kf'],
            'stuck': [], 'references': [], **more}


def lines(*texts, stack=()):
    return [{'text': t, 'stack': ' '.join(stack)} for t in texts]


def block(name, va='0xffff888000000000'):
    return {'va': va, 'stack': [name + '+0x1[kf]'], 'size': 10, 'cache': None,
            'task': 'sh/1', 'where': 'nothing refers to it',
            'title': f'leak in {name}', 'fold': f'fold of {name}'}


def error(kind, at='kfree+0x1'):
    return {'error': kind, 'va': '0xffff888000000000', 'comm': 'sh',
            'title': f'{kind} in kf_free', 'fold': f'fold of {kind} {at}',
            'error_stack_symbols': [at], 'alloc_symbols': ['kmalloc+0x1'],
            'free_symbols': None}


def name_of(control=None, **more):
    return verdict.judge(a_run(**more), control).name


CONTROL = a_run(made=0, faults=[])
NULL = 'BUG: kernel NULL pointer dereference, address: 000000000000000c'

# --- verdicts ----------------------------------------------------------------

with tap.test('each kind of symptom has its verdict'):
    for want, more in (
            ('panic', {'end': 'stopped', 'why': 'shutdown', 'log': lines(
                'Kernel panic - not syncing: Fatal exception')}),
            ('panic', {'end': 'stopped', 'why': 'shutdown'}),
            ('oops', {'log': lines(NULL)}),
            ('oops', {'log': lines(
                'Unable to handle kernel paging request at virtual address')}),
            ('ka-error', {'errors': [error('double-free')]}),
            ('bug', {'log': lines(
                'kernel BUG at kf.c:12!', 'Oops: invalid opcode: 0000 [#1]')}),
            ('bug', {'log': lines(
                'watchdog: BUG: soft lockup - CPU#0 stuck for 26s!')}),
            ('stuck-module', {'stuck': [{
                'name': 'kf', 'state': 'Live', 'refs': 1, 'users': 'none',
                'back': True}]}),
            ('hang', {'end': 'limit', 'status': None}),
            ('warn', {'log': lines('WARNING: CPU: 0 PID: 7 at a.c:1 f+0x1')}),
            ('leak', {'leaks': [block('f')]}),
            ('init', {'end': 'stopped', 'log': lines(
                'Kernel panic - not syncing: Attempted to kill init!')}),
            ('clean', {'status': 1}), ('masked', {'status': 0}),
            ('not-reached', {'made': 0}), ('not-reached', {
                'made': 0, 'leaks': [block('f')]}),
            ('died', {'end': 'died', 'made': 0})):
        got = name_of(CONTROL, **more)
        assert got == want, f'{more}: {got}, not {want}'

with tap.test('the worst symptom is the verdict'):
    everything = {'log': lines(NULL, 'WARNING: CPU: 0 PID: 1 at a.c:1'),
                  'errors': [error('double-free')], 'leaks': [block('f')]}
    assert name_of(CONTROL, **everything) == 'oops'
    everything['log'] = everything['log'][1:]
    assert name_of(CONTROL, **everything) == 'ka-error'
    everything['errors'] = []
    assert name_of(CONTROL, **everything) == 'warn'

with tap.test('what the control shows does not count'):
    control = a_run(made=0, leaks=[block('f')], errors=[error('double-free')],
                    log=lines('WARNING: CPU: 0 PID: 7 at a.c:1 f+0x12/0x40'))
    same = {'leaks': [block('f', '0xffff888000000040')],
            'errors': [error('double-free')],
            'log': lines('WARNING: CPU: 0 PID: 9 at a.c:1 f+0x12/0x40')}
    assert name_of(control, **same) == 'masked'
    assert name_of(control, **{**same, 'leaks': [block('g')]}) == 'leak'
    assert name_of(control, **{**same, 'errors': [
        error('double-free', 'kvfree+0x1')]}) == 'ka-error'

with tap.test('a task that waits says where a run hangs, and nothing else'):
    log = lines('INFO: task stty:167 blocked for more than 5 seconds.',
                'Call Trace:', ' <TASK>', ' schedule+0x27/0xc0',
                ' ? fput+0x6f/0x120', ' kill.part.0+0x92/0xd0 [kf]',
                ' </TASK>', stack=['watchdog+0x352'])
    got = verdict.judge(a_run(end='limit', status=None, log=log), CONTROL)
    assert (got.name, got.stack) == (
        'hang', ['schedule+0x27', 'kill.part.0+0x92[kf]']), got
    assert got.causes[0].title == 'hang in kill', got
    assert name_of(CONTROL, log=log) == 'masked'

with tap.test('a hang is named after the last fault, or a vCPU'):
    got = verdict.judge(a_run(end='limit', made=9), CONTROL)
    assert got.causes[0].title == 'hang in kf_make', got
    got = verdict.judge(a_run(end='limit', vcpus=[
        ['default_idle+0x9'], ['clear+0x1', 'kf_spin+0x5[kf]']]), CONTROL)
    assert got.causes[0].title == 'hang in kf_spin', got
    got = verdict.judge(a_run(end='limit'), CONTROL)
    assert got.causes[0].title == 'hang after a fault in kf_make', got

with tap.test('a loop that tries until the log of faults is full is a hang'):
    full = {'made': 65536, 'full': 1}
    got = verdict.judge(a_run(**full), CONTROL)
    assert (got.name, got.causes[0].title) == ('hang', 'hang in kf_make'), got
    assert name_of(CONTROL, usual=70000, **full) == 'masked'

OOPS = lines(NULL, 'RIP: 0010:kf_set+0x20/0x40 [kf_null]', 'Call Trace:',
             ' <TASK>', ' kf_init+0x5/0x10 [kf_null]',
             ' do_one_initcall+0x5b/0x300', ' </TASK>',
             '---[ end trace 0000000000000000 ]---', stack=['_printk+0x64'])

with tap.test("a symptom's stack is that of the log, else that of ka"):
    got = verdict.judge(a_run(log=OOPS), CONTROL)
    assert got.stack[:2] == ['kf_set+0x20[kf_null]', 'kf_init+0x5[kf_null]'], \
        got
    got = verdict.judge(a_run(log=lines('BUG: bad', stack=['f+0x3'])), CONTROL)
    assert got.stack == ['f+0x3'], got

with tap.test('what went wrong first is the cause'):
    both = {'log': OOPS, 'errors': [error('double-free')]}
    got = verdict.judge(a_run(**both), CONTROL)
    assert (got.name, got.causes[0].title) == (
        'oops', 'double-free in kf_free'), got
    log = lines('WARNING: CPU: 0 PID: 7 at lib/refcount.c:28 '
                'refcount_warn_saturate+0x1/0x2',
                'Call Trace:', ' kf_put+0x1/0x2 [kf]',
                '---[ end trace 0000000000000000 ]---') + OOPS
    got = verdict.judge(a_run(log=log), CONTROL)
    assert (got.name, got.causes[0].title) == (
        'oops', 'WARNING: refcount bug in kf_put'), got

STUCK = {'name': 'kf', 'state': 'Live', 'refs': 1, 'users': 'none',
         'back': True}


def reference(name, place, calls):
    return {'module': 'kf', 'function': name, 'stack': [place], 'calls': calls}


with tap.test('a module that cannot be unloaded is a finding'):
    got = verdict.judge(a_run(stuck=[
        {**STUCK, 'name': 'lib', 'users': 'kf'}, STUCK]), CONTROL)
    assert (got.name, got.symptom) == (
        'stuck-module', 'kf is Live, its reference count is 1'), got
    assert got.more == ['who holds it is not known',
                        'as well: lib is Live, its reference count is 1, used '
                        'by kf']
    held = a_run(made=0, faults=[], references=[
        reference('try_module_get', 'cdev_get+0x1', 3),
        reference('module_put', 'kf_op+0x9[kf]', 2)])
    got = verdict.judge(a_run(stuck=[STUCK], references=[
        reference('try_module_get', 'cdev_get+0x1', 3),
        reference('module_put', 'kf_op+0x9[kf]', 1)]), held)
    assert got.more == ['module_put() was called 1 times, not 2: '
                        'kf_op+0x9[kf]'], got
    assert got.causes[0].title == 'stuck module kf held by kf_op', got

# --- results -----------------------------------------------------------------

STACK = {'stackid': '0x00000000000000ab', 'selected': 3, 'point': 'kmalloc',
         'function': '__kmalloc_noprof', 'size': 64, 'flags': '0xcc0',
         'chance': 'rare', 'cut': 0, 'frames': FAULT['frames']}


def rule_of(n, stack=None, **more):
    return Scenario('6.12', 'x.sh', modules=('kf',), **more).fault_rule(
        'kmalloc', (stack or STACK)['stackid'], n, 7)


def a_result(*runs, n=1, stack=None):
    stack = stack or STACK
    return {'stack': stack, 'n': n, 'runs': list(runs),
            'rule': rule_of(n, stack)}


with tap.test('results are read back, by a later sweep as well'):
    folder = os.path.join(work, 'one')
    kept = results.Results(folder)
    assert kept.record('f') is None and kept.get('k') is None
    kept.save_record({'fingerprint': 'f', 'stacks': [STACK]})
    kept.put('k', a_result(a_run()))
    kept.lock.close()
    again = results.Results(folder)
    assert again.get('k') == a_result(a_run())
    assert again.record('f')['stacks'] == [STACK]

with tap.test('results of another scenario are refused, and a used folder'):
    for make in (lambda: again.record('g'),
                 lambda: results.Results(folder)):
        try:
            make()
        except results.ResultsError:
            continue
        raise AssertionError('it is accepted')

with tap.test('after a kill -9 each result is whole or not there'):
    folder = os.path.join(work, 'killed')
    code = f"""
import sys
sys.path.insert(0, {ROOT!r})
from scripts.lib.faultsweep.results import Results
r = Results({folder!r})
i = 0
while True:
    r.put(str(i), {{'value': 'x' * 100000, 'i': i}})
    print(i, flush=True)
    i += 1
"""
    with subprocess.Popen([sys.executable, '-B', '-c', code], text=True,
                          stdout=subprocess.PIPE) as proc:
        while int(proc.stdout.readline()) < 20:
            pass
        proc.kill()
        said = proc.stdout.read().split()
    kept = results.Results(folder)
    for i in range(int(said[-1]) + 1 if said else 21):
        assert kept.get(str(i)) == {'value': 'x' * 100000, 'i': i}, i
    assert not [f for f in os.listdir(folder) if f.endswith('.new')]

with tap.test('a finding whose repeat differs is flaky'):
    leak, oops = a_run(leaks=[block('f')]), a_run(log=lines(NULL))
    got, flaky = sweep.verdict_of(a_result(leak, oops), CONTROL)
    assert got.name == 'oops' and flaky, got
    assert not sweep.verdict_of(a_result(leak, leak), CONTROL)[1]
    assert not sweep.verdict_of(a_result(a_run()), CONTROL)[1]

# --- clones ------------------------------------------------------------------

with tap.test('a clone has a private copy of the memory of its template'):
    for size, want in ('512M', '512M'), ('512', '512M'):
        ram = clones.ram_object('/a,b/ram', size, 'share=on')
        assert ram == f'memory-backend-file,id=ka-ram,size={want},' \
            'mem-path=/a,,b/ram,share=on', ram
        got = clones.clone_words(['qemu', '-object', ram, '-m', size],
                                 '/a,b/ram', size)
        assert got == ['qemu', '-object', ram.replace(
            'share=on', 'share=off,readonly=on,rom=off'), '-m', size, '-S',
            '-incoming', 'defer'], got

with tap.test('a template whose disk was written is refused'):
    for writes in 0, 1:
        row = {'device': 'd', 'stats': {'wr_operations': writes}}
        guest = types.SimpleNamespace(qmp=lambda _, row=row: [row])
        try:
            clones.refuse_written_disks(guest)
        except GuestError as e:
            assert writes and 'disk d' in str(e), e
        else:
            assert not writes

# --- whole sweeps, with a stand-in for the VM --------------------------------

LIMITS = Limits(15, 60)
BROKEN = dict(zip(STACKS, ('oops', 'leak', 'hang')))
STUCK_MODULE = dict(zip(STACKS, ('stuck',)))


def swept(kept, broken, stop_after=None, wanted=(1, 2)):
    """Record and sweep; return ({key: verdict} of what was done, restorer)."""
    restorer = FakeRestorer(broken)
    s = Scenario('6.12', 'x.sh', points=('kmalloc',), modules=('kf',))
    recorded = record.record(restorer, s, LIMITS)
    rows, control = record.plan(recorded), recorded['control']
    course = sweep.Course(kept, control, wanted)
    before = len(course.done(rows))
    progress = sweep.Progress(4, lambda line: None)
    sweep.Sweep(s, course, LIMITS, progress).run(
        course.first(rows)[:stop_after], [lambda: restorer])
    done = course.done(rows)
    assert len(done) == before + progress.done, done
    return {sweep.key_of(r['stack'], r['n']):
            sweep.verdict_of(r, control)[0].name for r in done}, restorer


with tap.test('a sweep judges each stack, and repeats findings'):
    found, vm = swept(results.Results(), BROKEN)
    one, two, three = STACKS
    assert found == {f'{one}-1': 'oops', f'{two}-1': 'leak',
                     f'{three}-1': 'hang', f'{one}-2': 'oops'}, found
    assert vm.restored == 2 + 2 * 4, vm.restored

with tap.test('a sweep without findings makes each run once'):
    found, vm = swept(results.Results(), {})
    assert set(found.values()) == {'clean'} and vm.restored == 2 + 4, found

with tap.test('a sweep that continues makes no run twice'):
    folder = os.path.join(work, 'continued')
    kept = results.Results(folder)
    first, _ = swept(kept, {}, stop_after=2)
    second, vm = swept(kept, {})
    assert len(first) == 2 and len(second) == 4 and vm.restored == 2 + 2, second
    assert first.keys() < second.keys(), second

with tap.test('a module that stays loaded is unloaded, or is a finding'):
    found, vm = swept(results.Results(), STUCK_MODULE)
    assert found[f'{list(STACKS)[0]}-1'] == 'stuck-module', found
    assert set(found.values()) == {'stuck-module', 'clean'}, found

# --- plans and rules ---------------------------------------------------------

with tap.test('likely faults come first, then stacks with few calls'):
    rows = [{**STACK, 'stackid': f'{i:#018x}', 'chance': chance,
             'selected': n, 'cut': cut} for i, (chance, n, cut) in enumerate(
                 [('rare', 9, 0), ('rare', 1, 0), ('likely', 5, 0),
                  ('rare', 1, 1), ('cgroup', 1, 0)])]
    todo = record.plan({'stacks': rows})
    assert [int(r['stackid'], 16) for r in todo] == [2, 4, 1, 0], todo
    todo = record.plan({'stacks': rows}, (), {rows[0]['stackid']: 'known'})
    assert [int(r['stackid'], 16) for r in todo] == [2, 4, 1], todo
    course = sweep.Course(results.Results(), CONTROL, (2, 'all'))
    assert [(int(r['stackid'], 16), n) for r, n in course.first(todo)] == [
        (2, 2), (2, 'all'), (4, 'all'), (1, 'all')]


def tried(calls, result_of, wanted=numbers.AUTO, retried=()):
    """Return the numbers that are tried, in their order."""
    found, outcomes = [], {}
    while True:
        some = numbers.next_numbers(wanted, calls, outcomes)
        if not some:
            return found
        found += some
        outcomes.update((n, Outcome(result_of(n), n in retried))
                        for n in some)


with tap.test('auto tries later calls, and those between different results'):
    for calls, result_of, want in (
            (1, lambda n: 'same', [1]), (2, lambda n: 'same', [1, 2]),
            (9, lambda n: 'same', [1, 2, 9]),
            (9, lambda n: n > 1, [1, 2, 9]),
            (9, lambda n: n > 6, [1, 2, 9, 5, 7, 6]),
            (9999, lambda n: n, [1, 2, 9999, 5000, 2501, 1251, 626, 314])):
        got = tried(calls, result_of)
        assert got == want and len(got) <= numbers.MOST, f'{calls}: {got}'
    assert tried(1, str, retried=(1,)) == [1, 'all']
    assert tried(3, lambda n: 1, retried=(2,)) == [1, 2, 3, 'all']
    assert tried(3, str, (1, 2, 5, 'all')) == [1, 2, 'all']

with tap.test('a hash may have leading zeros, or not'):
    for row, option in ('0xab', '0x00000000000000ab'), ('0x0ab', '0xab'):
        rows = [{**STACK, 'stackid': row}, {**STACK, 'stackid': '0xac'}]
        only = (command.stackid(option),)
        todo = record.plan({'stacks': rows}, only)
        assert [r['stackid'] for r in todo] == [row], todo
        todo = record.plan({'stacks': rows}, (), {option: 'known'})
        assert [r['stackid'] for r in todo] == ['0xac'], todo

with tap.test('rules are those of ka fault add'):
    stack = {'stackid': '0xab'}
    got = rule_of(2, stack)
    assert got == "ka fault add kmalloc --if 'stackid == 0xab && n == 2' " \
        '--times 1', got
    assert rule_of('all', stack) == \
        "ka fault add kmalloc --if 'stackid == 0xab'"
    assert Scenario('6.12', 'x.sh').fault_rule('pages', '0xab', 2, 7) == \
        "ka fault add pages --if 'stackid == 0xab && n == 2' --task 7 " \
        '--times 1'
    s = Scenario('6.12', 'x.sh', points=('kmalloc',), modules=('a', 'b'))
    assert s.log_rules(7) == [
        'ka fault add kmalloc --if \'(stack("mod:a") || stack("mod:b"))\' '
        '--do log'], s.log_rules(7)
    s = Scenario('6.12', 'x.sh', points=('capable',), condition='n < 3')
    assert s.log_rules(7) == [
        "ka fault add capable --if '(n < 3)' --task 7 --do log"]

# --- the command line --------------------------------------------------------

with tap.test('numbers of calls'):
    assert numbers.parse('1..3,all') == (1, 2, 3, 'all')
    assert numbers.parse('auto') == numbers.AUTO
    for text in '0', '3..1', 'x', '':
        try:
            numbers.parse(text)
        except Exception:       # pylint: disable=broad-exception-caught
            continue
        raise AssertionError(f"'{text}' is accepted")

with tap.test('the command for one fault has the options of its scenario'):
    args = command.parse(['--kernel', '6.1', '--run', 'a b.sh', '--jobs', '2',
                          '--report=x.xml', '--n', '1..3', '--', '-s'])
    got = args.command
    assert got.options == "scripts/fault-sweep --kernel 6.1 --run 'a b.sh'", got
    assert got.qemu == ' -- -s', got

with tap.test('a device that cannot be saved is plugged in before a run'):
    args = command.parse(['--run', os.devnull, '--plug', 'usb-serial'])
    for answer in '', 'Error: no bus':
        got = []
        guest = types.SimpleNamespace(
            hmp_qmp=lambda line, a=answer, g=got: g.append(line) or a)
        try:
            clones.plug(guest, args.scenario.plug)
        except GuestError as e:
            assert answer in str(e) and answer, e
        else:
            assert not answer
        assert got == ['device_add usb-serial,id=ka-plug0'], got

# --- reports -----------------------------------------------------------------


def a_report(*runs, problem=None):
    rows = []
    for i, run in enumerate(runs):
        result = a_result(run, stack={**STACK, 'stackid': f'{i:#018x}'})
        rows.append(report.make_row(result,
                                    *sweep.verdict_of(result, CONTROL)))
    recorded = {'control': CONTROL, 'stacks': [STACK] * 4, 'unstable': []}
    return report.make_report(
        rows, recorded, {'0x1': 'known'},
        command.Command('scripts/fault-sweep --run x', '', {}), problem)


def groups_of(*runs):
    """Return {name: [numbers of runs]}."""
    return {g.name: sorted(int(r.stack['stackid'], 16) for r in g.rows)
            for g in a_report(*runs).groups}


RUNS = (a_run(status=1), a_run(leaks=[block('f')]),
        a_run(log=lines(NULL + '\x1b[1m') + OOPS[1:]), a_run(made=0),
        a_run(leaks=[block('g', '0x1'), block('f')]))

with tap.test('faults that lead to one bug are a group'):
    assert groups_of(*RUNS) == {
        'leak in f': [1, 4],
        'BUG: unable to handle kernel NULL pointer dereference in kf_set':
        [2]}, groups_of(*RUNS)
    f, g, both = (a_run(leaks=[block(n) for n in names])
                  for names in ('f', 'g', 'fg'))
    assert groups_of(f, g) == {'leak in f': [0], 'leak in g': [1]}
    assert groups_of(g, both, g) == {'leak in g': [0, 1, 2]}
    # Of two that one fault leads to, the first one.
    two = [error('double-free'), {**error('free-slot'), 'title': 'other'}]
    for errors in two, two[::-1]:
        assert groups_of(a_run(errors=errors)) == {errors[0]['title']: [0]}
    # One of them oopses because of the error, too.
    free, oops = (a_run(errors=[error('double-free')], **more)
                  for more in ({}, {'log': OOPS}))
    assert groups_of(free, oops) == {'double-free in kf_free': [0, 1]}

with tap.test('the same function called by two of a module is two bugs'):
    def warned(caller):
        return a_run(log=lines(
            'WARNING: CPU: 0 PID: 7 at fs/proc/generic.c:7 remove_it+0x1/0x2',
            'RIP: 0010:remove_it+0x1/0x2', 'Call Trace:', ' <TASK>',
            f' {caller}+0x1/0x2 [kf]', ' </TASK>',
            '---[ end trace 0000000000000000 ]---'))

    got = groups_of(warned('kf_a'), warned('kf_b'), warned('kf_a'))
    assert sorted(got.values()) == [[0, 2], [1]], got

with tap.test('each finding begins with the injected fault'):
    text = report.text_report(a_report(*RUNS))
    assert text.startswith('a fault was injected, and the kernel oopsed: '), \
        text
    assert text.count('a fault was injected') == 2, text
    for part in ('kf_set+0x20[kf_null]', 'in practice: rare', '--only 0x', (
            "ka fault add kmalloc --if 'stackid == 0x0000000000000002 && "
            "n == 1' --times 1"), 'not tested', '2 findings of 3 faults',
                 'as well:     0x0000000000000004 n=1: leak; ',
                 'not tried (--n): 10 later calls of 5 stacks'):
        assert part in text, f'{part}:\n{text}'

with tap.test('JSON and JUnit have the same results'):
    path = os.path.join(work, 'r')
    for suffix in '.json', '.xml', '.txt':
        report.write_report(path + suffix, a_report(*RUNS, problem='why'), 1.5)
    with open(path + '.json', encoding='utf-8') as f:
        whole = json.load(f)
    assert [(r['verdict'], r['group'] is None) for r in whole['results']] == [
        ('oops', False), ('leak', False), ('leak', False), ('clean', True),
        ('not-reached', True)], whole
    assert [len(g['faults']) for g in whole['groups']] == [1, 2], whole
    assert whole['findings'] == 2 and whole['problem'] == 'why'
    suite = ET.parse(path + '.xml').getroot()[0]
    found = {k: int(suite.get(k)) for k in ('tests', 'failures', 'errors',
                                            'skipped')}
    assert found == {'tests': 6, 'failures': 2, 'errors': 2, 'skipped': 1}, \
        found
    assert suite.get('timestamp') and suite.get('hostname'), suite.attrib

with tap.test('a report that cannot be written is refused at the start'):
    done = commands.run('fault-sweep', '--run', os.devnull,
                        '--report', work + '/none/r.xml', status=2)
    assert done.stdout == '', done
    assert done.stderr == f'fault-sweep: {work}/none/r.xml: No such file or ' \
        'directory\n', done.stderr

tap.done()
