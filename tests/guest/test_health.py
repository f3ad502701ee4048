#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What the guest's kernel reports of itself becomes findings, without a guest.
Oracles: consoles of guests that were told what to do (tests/data/health); the
identity that the program ka gives to the same stacks (tests/replay); and, in
the long form, the logs that syzkaller's tests have, with their titles.

usage: test_health.py [--short]         short: without syzkaller's logs
"""
import dataclasses
import glob
import itertools
import json
import os
import re
import sys
import time

from lib.tap import Tap
from scripts import ka
from scripts.lib.findings import (
    baseline, finding, health, health_kinds, health_lines, junit, kasan, kinds,
    ktap, plain, sarif)
from scripts.lib.findings.suppress import Suppression
from scripts.lib.prepared import ROOT, paths

tap = Tap()
LOGS = os.path.join(ROOT, 'tests', 'data', 'health')

# File -> (kind, title, task, frame) of each incident.
WRITE = 'ka_sick_write+0x99[ka_sick]'
WANTED = {
    'many': [
        ('warning', 'WARNING in ka_sick_warn', 'sh-141', 'ka_sick_warn+0x9'),
        ('refcount', 'WARNING: refcount bug in ka_sick_count', 'sh-142',
         'refcount_warn_saturate+0x9b'),
        ('bad-page', 'BUG: Bad page state in ka_sick_page', 'sh-143',
         'ka_sick_page+0x27'),
        ('atomic', 'BUG: scheduling while atomic in ka_sick_atomic', 'sh-144',
         'ka_sick_atomic+0x1a'),
        ('list-corruption', 'BUG: corrupted list in ka_sick_list', 'sh-145',
         '__list_del_entry_valid_or_report+0xbe'),
        ('bug', 'kernel BUG in ka_sick_bug', 'sh-146', 'ka_sick_bug+0x9'),
        ('oops', 'BUG: unable to handle kernel NULL pointer dereference in '
         'ka_sick_oops', 'sh-147', 'ka_sick_oops+0x10'),
        ('oops', 'general protection fault in ka_sick_fault', 'sh-148',
         'ka_sick_fault+0x10')],
    'interrupt': [
        ('oops', 'BUG: unable to handle kernel NULL pointer dereference in '
         'ka_sick_oops', 'sh-137', 'ka_sick_oops+0x10')],
    'panic': [('panic', 'kernel panic: ka_sick has a reason', 'sh-138',
               'ka_sick_panic+0x15')],
    'hung': [('hung-task', 'INFO: task hung in ka_sick_hung', 'sh-139',
              'ka_sick_hung+0x1a')],
    'lockup': [('soft-lockup', 'BUG: soft lockup in ka_sick_lockup_work',
                'kworker/0:2-58', 'delay_tsc+0x37')],
    'oom': [('oom-kill', 'Out of memory: killed tail', '', None)],
}


def read(name):
    with open(os.path.join(LOGS, name + '.log'), encoding='utf-8') as f:
        return f.read()


def lines_of(name, **changes):
    return [dataclasses.replace(line, **changes)
            for line in health_lines.read_console(read(name))]


def titles(lines):
    return [i.title for i in health.incidents(lines)]


def findings(name):
    return [health.from_incident(i) for i in health.incidents(lines_of(name))]


def printed(*texts, writer='', ns=10**9):
    return [health_lines.Line(t, writer, i, ns + i)
            for i, t in enumerate(texts)]


class Answers(ka.Monitor):
    """A guest whose log has these rows, or that refuses to show it."""

    def __init__(self, *rows, fail=None):
        super().__init__(lambda line: json.dumps({'fail': fail}) if fail else
                         ''.join(json.dumps(r) + '\n' for r in rows))


def row(text, facility=0, **more):
    return {'type': 'log', 'number': 1, 'boot': 0, 'lost': 0, 'ns': 1,
            'facility': facility, 'text': text, **more}


# --- reports -----------------------------------------------------------------

for name, wanted in WANTED.items():
    with tap.test(f'{name}: kind, title, task and place of each incident'):
        found = health.incidents(lines_of(name))
        got = [(i.kind, i.title, i.task, i.frames[0].text.partition('[')[0]
                if i.frames else None) for i in found]
        assert got == wanted, got
        assert all(i.cpu in (0, None) for i in found), found

with tap.test('reports of two writers, line by line in turn, are told apart'):
    pairs = itertools.zip_longest(lines_of('hung', writer='T7'),
                                  lines_of('panic', writer='T8'))
    mixed = [line for pair in pairs for line in pair if line]
    assert titles(mixed)[:2] == ['INFO: task hung in ka_sick_hung',
                                 'kernel panic: ka_sick has a reason']

with tap.test('a report ends with a pause, and a boot ends all'):
    oops = lines_of('interrupt')
    later = printed('BUG: Bad page map in process x', ns=60 * 10**9)
    assert len(titles(oops[:-8] + later)) == 2
    assert len(titles(oops + later)) == 1       # it has panicked
    again = [dataclasses.replace(line, boot=1) for line in later]
    assert len(titles(oops + again)) == 2

with tap.test('what follows from an oops in its task is no finding of its own'):
    begin = ('BUG: kernel NULL pointer dereference, address: 00',
             'RIP: 0010:f+0x1/0x2', '---[ end trace 0 ]---')
    after = 'BUG: scheduling while atomic: sh/1/0x1'
    assert len(titles(printed(*begin, after, writer='T1'))) == 1
    assert len(titles(printed(*begin, writer='T1') +
                      printed(after, writer='T2'))) == 2
    text = 'Kernel panic - not syncing: Fatal exception'
    assert titles(printed(*begin, writer='T1') + printed(text, writer='C0')) \
        == ['BUG: unable to handle kernel NULL pointer dereference in f']
    assert titles(printed(text)) == ['kernel panic: Fatal exception']

with tap.test('one line that another task prints does not end a report'):
    cut = lines_of('hung')
    cut.insert(6, dataclasses.replace(cut[5], text='unregister_netdevice: '
                                      'waiting for lo to become free. Usage'))
    assert titles(cut) == ['INFO: task hung in ka_sick_hung',
                           'unregister_netdevice: waiting for DEV to become '
                           'free']

with tap.test('the stack is that of the code, not of what reports it'):
    def functions(*texts):
        one, = health.incidents(printed(*texts))
        return [f.function for f in one.frames]
    assert functions(
        'BUG: KASAN: slab-use-after-free in f+0x1/0x2', 'Read of size 8 at '
        'addr 0 by task x/1', 'Call Trace:', ' <IRQ>',
        ' dump_stack_lvl+0x1/0x2', ' kasan_report+0x1/0x2', ' f+0x1/0x2',
        ' g+0x1/0x2',
        ' </IRQ>', ' asm_sysvec_x+0x1/0x2', 'RIP: 0010:idle+0x1/0x2',
        ' ? guess+0x1/0x2', ' loop+0x1/0x2') == \
        ['f', 'g', 'asm_sysvec_x', 'loop']
    assert functions(
        'WARNING: CPU: 0 PID: 1 at a.c:1 f+0x1/0x2', 'Call Trace:',
        ' dump_stack+0x1/0x2', ' __warn+0x1/0x2', ' invalid_op+0x1/0x2',
        'RIP: 0010:f+0x1/0x2', 'Code: 00', 'RSP: 0', ' g+0x1/0x2') == ['f', 'g']
    assert functions(
        'Unable to handle kernel NULL pointer dereference at virtual address 0',
        'pc : f+0x1/0x2 [m]', 'lr : g+0x1/0x2', 'Call trace:',
        ' f+0x1/0x2 [m]', ' g+0x1/0x2') == ['f', 'g']

with tap.test('messages that are no reports'):
    for text in ('Spectre V2 : WARNING: Unprivileged eBPF is enabled',
                 'WARNING: ath10k USB support is incomplete',
                 'traps: a[1] general protection fault ip:1 sp:2 error:0 in b',
                 'traps: a[1] trap invalid opcode ip:1 sp:2 error:0',
                 'perf: interrupt took too long (1 > 2)',
                 '[Firmware Bug]: TSC_DEADLINE disabled',
                 'INFO: lockdep is turned off.',
                 'EXT4-fs (a): WARNING: x.c:1 f', 'XFS (a): WARNING: y'):
        assert not titles(printed(text)), text

# --- who wrote a line --------------------------------------------------------

with tap.test('a program cannot write a report'):
    text = 'BUG: soft lockup - CPU#0 stuck for 5s!'
    for facility, n in ((1, 0), (0, 1)):
        vm, state = Answers(row(text, facility)), {}
        assert len(health.findings(vm, state, str)) == n
        assert not list(health.warnings(state))
    assert not health.incidents(health_lines.read_console(
        f'[    1.000000] Linux version 6\n{text}\n<12>[    1.000000] {text}'))

with tap.test('nor can it by the name of a task or of a device'):
    for text in ("process 'BUG: x' started with executable stack",
                 'BUG: soft lock[123]: segfault at 0 ip 1 sp 2 error 4',
                 'usb 1-1: Product: BUG: x',
                 'audit: type=1701 comm="BUG: KASAN: a-b"',
                 'Oom_reaper: reaped process 1 (WARNING: a.c:1)',
                 "EXT4-fs error (device x): f: comm BUG: KASAN: a"):
        assert not titles(printed(text)), text
    text = 'watchdog: BUG: soft lockup - CPU#0 stuck for 5s!'
    assert len(titles(printed(text))) == 1

with tap.test('writers: a task, an interrupt on a CPU'):
    task = health_lines.read_row(row('x', caller_pid=7, comm='a', pid=7, cpu=2),
                                 0)
    irq = health_lines.read_row(row('x', caller_cpu=1), 0)
    assert (task.writer, task.task, task.cpu) == ('T7', 'a-7', 2)
    assert (irq.writer, irq.task, irq.cpu) == ('C1', '', 1)

with tap.test('without a log the console is read, and it is said'):
    for vm in Answers(fail='no log here'), Answers(), None:
        state = {}
        found = health.findings(vm, state, lambda: read('panic'))
        assert [f.kind for f in found] == ['panic']
        said, = health.warnings(state)
        assert 'console was read' in said, said

with tap.test('of a lost VM, what only its console has is read, too'):
    rows = [row(line.text, ns=line.ns) for line in lines_of('panic')]
    whole = read('panic')
    want = [f.text for f in findings('panic')]
    for kept, more in ((rows, 'x'), (rows[:2], whole), (rows[:-3], whole)):
        found = health.findings(Answers(*kept), {}, lambda t=more: t, lost=True)
        assert [f.text for f in found] == want, found

with tap.test('lines that were not read are counted'):
    state = {}
    health.findings(Answers(row('x', number=11, lost=3)), state, str)
    assert '13 lines' in next(health.warnings(state))

# --- bounds ------------------------------------------------------------------

with tap.test('hostile lines: bounded in number, length and time'):
    words = ['BUG: ', 'WARNING: ', 'INFO: task ', 'at: ', ' ? ', '[<0', 'RIP: ']
    long = [''.join(words) * 1000, 'WARNING: ' * 900, 'BUG: KASAN: a-' * 900,
            'BUG: ' + ' \x1b[31m\u202e' * 99, 'Call Trace:', ' f+0x1/0x2',
            'BUG \0 (x): ' + '{f}{0}{' * 99]
    begin = time.process_time()
    rows = [row(long[i % len(long)], ns=i, caller_pid=i % 5)
            for i in range(5000)]
    state = {}
    found = health.findings(Answers(*rows), state, str)
    assert time.process_time() - begin < 30
    assert len(found) <= health.MOST_INCIDENTS and state['health.dropped']
    assert 'not kept' in '\n'.join(health.warnings(state))
    for f in found:
        assert len(f.title) <= health.MOST_TITLE and f.title.isprintable()
        assert len(f.text) < 16384
    made = finding.Report(findings=found, facts={'kernel': '6'})
    for module in junit, ktap, sarif, plain, kasan:
        module.check(module.render(made))
    baseline.Baseline(baseline.render(made))

# --- identity ----------------------------------------------------------------

with tap.test('the identity of a stack is that of the program ka'):
    known = 0
    for path in glob.glob(os.path.join(ROOT, 'tests', 'replay', 'cases', '*',
                                       'expected')):
        with open(path, encoding='utf-8', errors='replace') as f:
            golden = [json.loads(line) for line in f
                      if line.startswith('{') and '"fold"' in line and
                      '"error_stack_symbols"' in line]
        for r in golden:
            stacks = [(n, finding.read_stack(r, k + '_symbols')) for n, k in (
                ('error', 'error_stack'), ('free', 'free'), ('alloc', 'alloc'))
                      if k + '_symbols' in r]
            fold, exact, _ = health.identity(r['error'], stacks)
            assert (fold, exact) == (r['fold'], r['exact']), (path, r)
            known += 1
    assert known

with tap.test('the same bug at another time, in another build, or another bug'):
    def identity_of(text):
        f = health.from_incident(health.incidents(
            health_lines.read_console(text))[0])
        return f.fold, f.exact
    text = read('many')
    fold, exact = identity_of(text)
    assert identity_of(re.sub(r'sh-?:?141|ffff\w+', 'x', text)) == (fold, exact)
    build = identity_of(text.replace('write+0x99', 'write+0x9a'))
    assert build[0] == fold and build[1] != exact
    assert identity_of(text.replace('ka_sick_write', 'other'))[0] != fold
    one, = findings('lockup')
    assert identity_of(re.sub('delay_tsc|ka_sick_loop', 'g', read('lockup'))
                       ) == (one.fold, one.exact) and not one.weak
    one, = health.merge([one, *findings('lockup')])
    assert one.blocks == 2 and '2 reports' in one.text

with tap.test('suppressions, baselines and all formats know them'):
    warn, count, *_ = found = findings('many')
    for line, f in (('warning ka_sick:ka_sick_warn', warn), ('ref* *', count),
                    ('warning vfs_write', warn)):
        s = Suppression(line, 1)
        assert s.matches({**f.row, 'error': f.kind}), line
        assert sum(s.matches({**g.row, 'error': g.kind}) for g in found) == 1
    made = finding.Report(findings=found, facts={'kernel': '6.12'})
    known = baseline.Baseline(baseline.render(made))
    assert all(map(known.why_known, found))
    for module in junit, ktap, sarif, plain, kasan:
        text = module.render(made)
        module.check(text)
        assert all(f.title in text for f in found) or module is kasan
    assert [f.place.name for f in found[:2]] == ['ka_sick:ka_sick_warn',
                                                 'ka_sick:ka_sick_count']

with tap.test('for readers of KASAN the report is as the kernel printed it'):
    text = kasan.render(finding.Report(findings=findings('many')))
    assert titles(health_lines.read_console(text)) == \
        [title for _, title, *_ in WANTED['many']]

# --- the table ---------------------------------------------------------------

with tap.test('each kind has a meaning, rows, and a line in docs/ci.md'):
    used = {r.kind for r in health_kinds.ROWS}
    assert used == set(health_kinds.MEANINGS), used
    with open(os.path.join(ROOT, 'docs', 'ci.md'), encoding='utf-8') as f:
        page = re.findall(r'^\| `([\w-]+)` \| (.*) \|$', f.read(), re.M)
    assert dict(page).items() >= health_kinds.MEANINGS.items()
    for kind, text in health_kinds.MEANINGS.items():
        assert kinds.meaning(kind) == text, kind

# --- syzkaller ---------------------------------------------------------------

# Titles of syzkaller's logs that ours are not, and why.
REBOOT = 'another reboot is an end of the run, see scripts/sweep'
NOT_KERNEL = 'printed by a program, or by firmware'
FREE_TEXT = 'text of a driver, without a place'
RUST = 'Rust is named by its own message'
OTHER = {
    '1': 'of a slab that syzkaller does not know',
    '6': FREE_TEXT, '381': FREE_TEXT, '127': REBOOT, '317': REBOOT,
    '245': 'the value is named, as in its other titles',
    '246': 'the value is named, as in its other titles',
    **dict.fromkeys(('51', '52', '53', '54', '55', '151', '353', '354', '355',
                     '601', '660', '705', '707', '716', '717'), NOT_KERNEL),
    '620': 'has no title', '621': 'some lines have no time of the kernel',
    '747': 'names of C++ stay as they are', '748': RUST, '749': RUST,
}
HEAD = re.compile(r'(TITLE|ALT|TYPE|FRAME|CORRUPTED|SUPPRESSED|PANICKED|'
                  r'EXECUTOR|START|END): (.*)')


def read_test(path):
    """Return ({word: value} of its head, the log) of a log of syzkaller."""
    with open(path, encoding='utf-8', errors='replace', newline='\n') as f:
        text = re.sub(r'\A(?:#.*\n)+', '', f.read().replace('\r', ''))
    head, _, log = text.partition('\n\n')
    if not HEAD.match(head):
        head, log = '', text
    return dict(HEAD.findall(head)), log.partition('\n\nREPORT:\n')[0]


def first_title(log):
    return next(iter(titles(health_lines.read_console(log))), None)


logs = glob.glob(os.path.join(paths()['syzkaller'], 'reports', '*')) \
    if '--short' not in sys.argv else []
if logs:
    with tap.test("syzkaller's titles of its logs"):
        same, wrong = 0, []
        for path in logs:
            head, log = read_test(path)
            if head.get('CORRUPTED') == 'Y':
                continue
            want, got = head.get('TITLE'), first_title(log)
            same += want == got
            if want != got and os.path.basename(path) not in OTHER:
                wrong.append((os.path.basename(path), want, got))
        tap.note(f'{same} titles are the same, {len(OTHER)} differ as known')
        assert not wrong and same > 500, wrong
else:
    tap.skip("syzkaller's titles of its logs",
             'the short form, or scripts/setup --only syzkaller was not run')

tap.done()
