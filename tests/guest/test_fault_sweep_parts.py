#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The parts of scripts/fault-sweep that need no guest: verdicts, results that
are kept, reports, the command line. Oracle: what is expected.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import types
import xml.etree.ElementTree as ET

from lib.fake_sweep import STACKS, FakeRestorer
from lib.tap import Tap
from scripts.lib.faultsweep import command, record, report, results, sweep
from scripts.lib.faultsweep import clones, verdict
from scripts.lib.faultsweep.runner import Limits
from scripts.lib.faultsweep.scenario import Scenario, fault_rule
from scripts.lib.prepared import ROOT
from scripts.lib.qmp import GuestError

tap = Tap()
work = tempfile.mkdtemp(prefix='ka-fault-sweep.')

FAULT = {'function': '__kmalloc_noprof', 'value': '0x0', 'size': 64,
         'flags': '0xcc0', 'frames': 'kf_make+0x10[kf] init+0x5[kf]'}


def a_run(**more):
    return {'end': 'marker', 'why': '', 'status': 0, 'us': 1000, 'made': 1,
            'faults': [FAULT], 'log': [], 'errors': [], 'leaks': [],
            'vcpus': [], **more}


def lines(*texts, stack=()):
    return [{'text': t, 'stack': list(stack)} for t in texts]


def block(name, va='0xffff888000000000'):
    return {'va': va, 'stack': [name + '+0x1[kf]'], 'size': 10, 'cache': None,
            'task': 'sh/1', 'where': 'nothing refers to it'}


def error(kind, at='kfree+0x1'):
    return {'error': kind, 'va': '0xffff888000000000', 'comm': 'sh',
            'error_stack_symbols': [at], 'alloc_symbols': ['kmalloc+0x1'],
            'free_symbols': None}


def name_of(control=None, **more):
    return verdict.judge(a_run(**more), control).name


CONTROL = a_run(made=0, faults=[])
NULL = 'BUG: kernel NULL pointer dereference, address: 000000000000000c'
EXCEPTION = ['_printk+0x64', 'page_fault_oops+0x9', 'exc_page_fault+0x7',
             'asm_exc_page_fault+0x26', 'kf_set+0x20[kf_null]']

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

with tap.test('the stack of a task that is blocked is its own'):
    got = verdict.judge(a_run(end='limit', log=lines(
        'INFO: task stty:167 blocked for more than 120 seconds.',
        'Call Trace:', ' <TASK>', ' schedule+0x27/0xc0',
        ' ? fput+0x6f/0x120', ' kill.part.0+0x92/0xd0 [kf]', ' </TASK>',
        ' other+0x1/0x2', stack=['watchdog+0x352'])), CONTROL)
    assert (got.name, got.stack) == (
        'bug', ['schedule+0x27', 'kill.part.0+0x92[kf]']), got
    got = verdict.judge(a_run(log=lines(
        'INFO: task stty:167 blocked for more than 120 seconds.',
        stack=['watchdog+0x352'])), CONTROL)
    assert got.stack == ['watchdog+0x352'], got

with tap.test("a symptom's stack is that of the code, not of printk()"):
    got = verdict.judge(a_run(log=lines(NULL, stack=EXCEPTION)), CONTROL)
    assert got.stack == ['kf_set+0x20[kf_null]'], got
    got = verdict.judge(a_run(log=lines('BUG: bad', stack=[
        'vprintk_emit+0x1', '_printk+0x5', 'f+0x3'])), CONTROL)
    assert got.stack == ['f+0x3'], got

# --- results -----------------------------------------------------------------

STACK = {'stackid': '0x00000000000000ab', 'selected': 3, 'point': 'kmalloc',
         'function': '__kmalloc_noprof', 'size': 64, 'flags': '0xcc0',
         'chance': 'rare', 'cut': 0, 'frames': FAULT['frames']}


def a_result(*runs, n=1, stack=None):
    stack = stack or STACK
    return {'stack': stack, 'n': n, 'runs': list(runs),
            'rule': fault_rule('kmalloc', stack['stackid'], n)}


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


def swept(kept, broken, stop_after=None):
    """Record and sweep; return ({key: verdict}, restorer)."""
    restorer = FakeRestorer(broken)
    s = Scenario('6.12', 'x.sh', points=('kmalloc',), modules=('kf',))
    recorded = record.record(restorer, s, LIMITS)
    todo = [i for i in record.plan(recorded, (1, 2))
            if not kept.get(sweep.key_of(*i))]
    progress = sweep.Progress(len(todo), lambda line: None)
    sweep.Sweep(kept, recorded['control'], LIMITS, progress).run(
        todo[:stop_after], [lambda: restorer])
    return {name: sweep.verdict_of(kept.get(name), recorded['control'])[0].name
            for name in (sweep.key_of(*i) for i in todo) if kept.get(name)}, \
        restorer


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
    assert len(first) == len(second) == 2 and vm.restored == 2 + 2, second
    assert not first.keys() & second.keys(), second

# --- plans and rules ---------------------------------------------------------

with tap.test('likely faults come first, then stacks with few calls'):
    rows = [{**STACK, 'stackid': f'{i:#018x}', 'chance': chance,
             'selected': n, 'cut': cut} for i, (chance, n, cut) in enumerate(
                 [('rare', 9, 0), ('rare', 1, 0), ('likely', 5, 0),
                  ('rare', 1, 1), ('cgroup', 1, 0)])]
    todo = record.plan({'stacks': rows}, (1,), (), {})
    assert [int(r['stackid'], 16) for r, _ in todo] == [2, 4, 1, 0], todo
    todo = record.plan({'stacks': rows}, (2, 'all'), (),
                       {rows[0]['stackid']: 'known'})
    assert [(int(r['stackid'], 16), n) for r, n in todo] == [
        (2, 2), (2, 'all'), (4, 'all'), (1, 'all')], todo

with tap.test('a hash may have leading zeros, or not'):
    for row, option in ('0xab', '0x00000000000000ab'), ('0x0ab', '0xab'):
        rows = [{**STACK, 'stackid': row}, {**STACK, 'stackid': '0xac'}]
        only = (command.stackid(option),)
        todo = record.plan({'stacks': rows}, (1,), only)
        assert [r['stackid'] for r, _ in todo] == [row], todo
        todo = record.plan({'stacks': rows}, (1,), (), {option: 'known'})
        assert [r['stackid'] for r, _ in todo] == ['0xac'], todo

with tap.test('rules are those of ka fault add'):
    got = fault_rule('kmalloc', '0xab', 2)
    assert got == "ka fault add kmalloc --if 'stackid == 0xab && n == 2' " \
        '--times 1', got
    assert fault_rule('pages', '0xab', 'all') == \
        "ka fault add pages --if 'stackid == 0xab'"
    s = Scenario('6.12', 'x.sh', points=('kmalloc',), modules=('a', 'b'))
    assert s.log_rules(7) == [
        'ka fault add kmalloc --if \'(stack("mod:a") || stack("mod:b"))\' '
        '--do log'], s.log_rules(7)
    s = Scenario('6.12', 'x.sh', points=('capable',), condition='n < 3')
    assert s.log_rules(7) == [
        "ka fault add capable --if '(n < 3)' --task 7 --do log"]

# --- the command line --------------------------------------------------------

with tap.test('numbers of calls'):
    assert command.numbers('1..3,all') == (1, 2, 3, 'all')
    for text in '0', '3..1', 'x', '':
        try:
            command.numbers(text)
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


def a_report(problem=None):
    rows = []
    for i, run in enumerate((a_run(status=1), a_run(leaks=[block('f')]), a_run(
            log=lines(NULL + '\x1b[1m', stack=EXCEPTION)), a_run(made=0))):
        stack = {**STACK, 'stackid': f'{i:#018x}'}
        result = a_result(run, stack=stack)
        rows.append(report.make_row(result,
                                    *sweep.verdict_of(result, CONTROL)))
    recorded = {'control': CONTROL, 'stacks': [STACK] * 4, 'unstable': []}
    return report.Report(report.sort_rows(rows), recorded, {'0x1': 'known'},
                         command.Command('scripts/fault-sweep --run x', ''),
                         problem)


with tap.test('each finding begins with the injected fault'):
    text = report.text_report(a_report())
    assert text.startswith('a fault was injected, and the kernel oopsed: '), \
        text
    assert text.count('a fault was injected') == 2, text
    for part in ('kf_set+0x20[kf_null]', 'in practice: rare', '--only 0x', (
            "ka fault add kmalloc --if 'stackid == 0x0000000000000002 && "
            "n == 1' --times 1"), 'not tested', '2 findings'):
        assert part in text, f'{part}:\n{text}'

with tap.test('JSON and JUnit have the same results'):
    path = os.path.join(work, 'r')
    for suffix in '.json', '.xml', '.txt':
        report.write_report(path + suffix, a_report('why'), 1.5)
    with open(path + '.json', encoding='utf-8') as f:
        whole = json.load(f)
    assert [r['verdict'] for r in whole['results']] == [
        'oops', 'leak', 'clean', 'not-reached'], whole
    assert whole['findings'] == 2 and whole['problem'] == 'why'
    suite = ET.parse(path + '.xml').getroot()[0]
    found = {k: int(suite.get(k)) for k in ('tests', 'failures', 'errors',
                                            'skipped')}
    assert found == {'tests': 6, 'failures': 2, 'errors': 2, 'skipped': 1}, \
        found
    assert suite.get('timestamp') and suite.get('hostname'), suite.attrib

with tap.test('a report that cannot be written is refused at the start'):
    done = subprocess.run(
        [os.path.join(ROOT, 'scripts', 'fault-sweep'), '--run', os.devnull,
         '--report', work + '/none/r.xml'], text=True, capture_output=True,
        check=False)
    assert (done.returncode, done.stdout) == (2, ''), done
    assert done.stderr == f'fault-sweep: {work}/none/r.xml: No such file or ' \
        'directory\n', done.stderr

shutil.rmtree(work)
tap.done()
