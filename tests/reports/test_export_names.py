#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Hostile names of a task, a module, a function and a cache in every format
that ka or scripts/sweep writes. Oracle: a reader of each format that is not
ours, as far as it is installed. It finds as many records as with a harmless
name, and each name is one printable text.

usage: test_export_names.py KA KA-JOURNAL KA-SAY
"""
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '..', 'replay'),
                os.path.join(HERE, '..', '..')]

import exports      # noqa: E402  (needs the path above)
import kasan_readers    # noqa: E402
import readers      # noqa: E402
from scripts.ka import Program      # noqa: E402
from scripts.lib.findings import (      # noqa: E402
    collect, finding, junit, ktap, sarif)

P = exports.Program(*sys.argv[1:3])
KA_SAY = sys.argv[3]
HARMLESS = b'quiet'
HOSTILE = {
    'markup': b'<script>alert(1)</script>&amp;]]><x y="',
    'newline': b'a\nok 9 forged\r\nb;c 7\n# EOF\nka_live_bytes 1\n',
    'quote': b'"\'`\\", "ruleId": "forged"}]',
    'long': b'x' * 4096,
    'NUL': b'a\0b\x01\x1b[31mred\x7f',
    'no UTF-8': b'\xff\xfe\x80a\xed\xa0\x80',
    'UTF-8': '\u202e\U0001f600\ufffe'.encode(),
    'path': b'../../../../tmp/ka-forged',
    'separators': b';a;b 7 [m]+0x1/0x2 # {} = ,',
    'title': b'BUG: KASAN: use-after-free in f+0x1',
    'SQL': b"'); DROP TABLE stack; --",
    'empty': b'',
}
SCRIPT = '''\
symbol va=ffffffff81000000 name=_stext
symbol va=ffffffff81000100 name=kfree
symbol va=ffffffff81000300 name=do_syscall_64
symbol va=ffffffff81000800 name=_etext
symbol va=ffffffff82001000 name=_end type=B
complete
kernel
module va=ffffffffc0100000 name={module} base=ffffffffc0000000 size=4000
modsym va=ffffffffc0000000 name={function}
modsym va=ffffffffc0000100 name=put_{function}
load va=ffffffffc0100000
alloc va=ffff888000001000 size=28 actual=40 us=1 pid=7 comm={name} \
cache={name} stack=ffffffffc0000010,ffffffff81000310
alloc va=ffff888000002000 size=40 us=2 pid=7 comm={name} cache=other \
stack=ffffffff81000310
alloc va=ffff888000003000 size=40 us=3 pid=7 comm={name} cache={name} \
stack=ffffffffc0000010,ffffffff81000310
free va=ffff888000002000 us=4 pid=8 comm={name} \
stack=ffffffffc0000110,ffffffff81000310
free va=ffff888000002000 us=5 pid=9 comm={name} \
stack=ffffffffc0000110,ffffffff81000310
unload va=ffffffffc0100000
'''
LEAK_SCRIPT = '''\
load {module} ffffffffc0100000 ffffffffc0000000 4000 {function}
task {task}
alloc ffff888000020300 40 700 ffffffffc0000010
'''
# As readers of /sys/kernel/debug/kmemleak have its lines.
KMEMLEAK = {kind: re.compile(rule) for kind, rule in (
    ('object', r'unreferenced object 0x[0-9a-f]+ \(size [0-9]+\):'),
    ('task', r'  comm ".*", pid [0-9]+, jiffies .*'),
    ('dump', r'  hex dump \(first [0-9]+ bytes\):'),
    ('bytes', r'    ([0-9a-f]{2} )+.*'),
    ('trace', r'  backtrace \(crc [0-9a-f]+\):'),
    ('frame', r'    \[<[0-9a-f]+>\] .+'))}


def escaped(name):
    """A name as the language of scripts has it."""
    return ''.join(f'\\x{b:02x}' for b in name)


def read_by_ka(name, limit):
    """What the tracer keeps when it reads a module's name or function: other
    names in a journal are no names of a guest, and it is refused."""
    name = name.split(b'\0')[0][:limit]
    return bytes(b if 0x20 < b < 0x7f else ord('?') for b in name)


def script(name):
    return SCRIPT.format(name=escaped(name),
                         module=escaped(read_by_ka(name, 63)),
                         function=escaped(read_by_ka(name, 500)))


def visible(texts):
    for text in texts:
        assert all(' ' <= c <= '~' for c in text), text


# --- exports: what a reader finds, {kind of record: how many} ----------------

def save(where, form):
    path = P.path('.' + form)
    P.export(where, form, '-o', path)
    return path


def folded(where):
    stacks, notes = readers.read_folded(P.export(where, 'folded'))
    visible([name for stack in stacks for name in stack] + notes)
    return {'frames': sorted(map(len, stacks)), 'notes': len(notes),
            'live': sum(stacks.values())}


def pprof(where):
    p = readers.read_pprof(save(where, 'pprof'))
    visible([f['name'] for f in p['functions'].values()] + p['comments'] +
            [m['file'] for m in p['mappings'].values()])
    return {kind: len(p[kind]) for kind in (
        'mappings', 'functions', 'locations', 'samples', 'comments')}


def heaptrack(where):
    path = save(where, 'heaptrack')
    with open(path, encoding='ascii') as f:
        kinds = [line[0] for line in f]
    costs = readers.heaptrack_costs(path, 'leaked')
    visible(name for stack in costs for name in stack)
    return {'stacks': len(costs), 'live': sum(costs.values()),
            **{kind: kinds.count(kind) for kind in 'vXitac+-#'}}


def sqlite(where):
    with readers.open_sqlite(save(where, 'sqlite')) as db:
        tables = [name for name, in db.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table'")]
        visible(n for n, in db.execute('SELECT name FROM frame'))
        return {t: db.execute(f'SELECT count(*) FROM {t}').fetchone()[0]
                for t in sorted(tables)}


def openmetrics(where):
    got = readers.read_openmetrics(P.export(where, 'openmetrics'))
    visible(text for values in got.values()
            for label in values for text in label.split('\n'))
    return {name: len(values) for name, values in got.items()}


def chrome(where):
    _, events = readers.read_chrome(P.export(where, 'chrome'))
    visible(e['name'] for e in events)
    return {ph: sum(e['ph'] == ph for e in events) for ph in 'MCiX'}


# --- findings ----------------------------------------------------------------

def report(where):
    found = collect.errors(Program(P.source(where), sys.argv[1]), {})
    leak = {**found[0].row, 'leak': 'module', 'title': found[0].title}
    found += [finding.from_leak(leak, found[0].text),
              finding.from_slab({'kind': 'cycle', 'object': '0x1',
                                 'cache': found[0].title}, [], '')]
    found[1].fold = 'f' * 32
    assert len(found) == 3, found
    return finding.Report(findings=found, facts={'kernel': found[0].title},
                          warnings=[found[0].title])


def rendered(module, where, suffix):
    text = module.render(report(where))
    module.check(text)
    path = P.path(suffix)
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text)
    return path


def junit_xml(where):
    from junitparser import JUnitXml    # pylint: disable=C0415,E0401
    suite, = JUnitXml.fromfile(rendered(junit, where, '.xml'))
    return {'tests': suite.tests, 'failures': suite.failures,
            'cases': len(list(suite))}


def ktap_lines(where):
    out = subprocess.run(
        ['prove', '--exec', 'cat', '-v', rendered(ktap, where, '.t')],
        stdout=subprocess.PIPE, text=True, check=False).stdout
    assert 'Parse errors' not in out and 'Bad plan' not in out, out
    return {'verdict': re.search(r'Failed \d+/\d+ subtests', out)[0]}


def sarif_json(where):
    import jsonschema       # pylint: disable=C0415,E0401
    with open(rendered(sarif, where, '.sarif'), encoding='utf-8') as f:
        log = json.load(f)
    with open(SCHEMA, encoding='utf-8') as f:
        jsonschema.Draft7Validator(json.load(f)).validate(log)
    run, = log['runs']
    places = {r['locations'][0]['physicalLocation']['artifactLocation']['uri']
              for r in run['results']}
    assert places == {sarif.FILE}, places
    return {'rules': [r['ruleId'] for r in run['results']]}


# --- texts, of names as the guest has them -----------------------------------

def say(text, command, *options):
    """The lines that a command prints in the world of a script."""
    path = P.path('.events')
    with open(path, 'w', encoding='ascii') as f:
        f.write(text)
    out = subprocess.run([KA_SAY, *options, path], check=True,
                         input=command.encode() + b'\n',
                         stdout=subprocess.PIPE).stdout
    lines = out.decode('ascii').splitlines()
    visible(lines)
    return lines


def kasan_text(name):
    lines = say(script(name), 'error --format kasan')
    found, ended = kasan_readers.reports(lines)
    assert ended
    return {'reports': len(found), 'lines': [len(r) for r in found],
            'titles': [r[0].startswith('BUG: KASAN: ') for r in found]}


def octal(name):
    return ''.join(f'\\{b:03o}' for b in name) or '_'


def kmemleak_text(name):
    text = LEAK_SCRIPT.format(
        task=octal(name), module=octal(read_by_ka(name, 63)),
        function=octal(read_by_ka(name, 500)))
    lines = say(text, 'leak scan --format kmemleak -n 0', '--leaks')
    kinds = [next((kind for kind, rule in KMEMLEAK.items()
                   if rule.fullmatch(line)), line) for line in lines]
    assert {'object', 'task', 'trace', 'frame'} <= set(kinds), lines
    return {'lines': kinds}


OF_JOURNALS = folded, pprof, heaptrack, sqlite, openmetrics, chrome
OF_VMS = (folded, pprof, sqlite, openmetrics, junit_xml, ktap_lines,
          sarif_json)
OF_NAMES = kasan_text, kmemleak_text
SCHEMA = os.path.join(readers.READERS, 'node_modules', '@microsoft',
                      'jest-sarif', 'lib', 'schemas',
                      'sarif-2.1.0-rtm.5.json')


def has_reader(form):
    return {
        pprof: readers.has_npm('pprof-format'),
        heaptrack: shutil.which('heaptrack_print'),
        openmetrics: readers.openmetrics_parser(),
        junit_xml: importlib.util.find_spec('junitparser'),
        ktap_lines: shutil.which('prove'),
        sarif_json: importlib.util.find_spec('jsonschema') and
        os.path.exists(SCHEMA)}.get(form, True)


# --- the table ---------------------------------------------------------------

def text_of(name):
    """The characters of a name. JSON has no other bytes."""
    try:
        return name.decode()
    except UnicodeDecodeError:
        return name.decode('latin-1')


class Qemu(exports.Qemu):
    """A VM whose guest has this name wherever it had the harmless one: the
    answers have it as JSON."""

    def __init__(self, name):
        super().__init__(P, P.journal(script(HARMLESS)))
        self.name = json.dumps(text_of(name))[1:-1]

    def answer(self, command):
        return super().answer(command).replace(HARMLESS.decode(), self.name)


def of_journals(name):
    return P.journal(script(name))


def of_vms(name):
    return '-q', Qemu(name).path


def of_names(name):
    return name


def what_differs(form, make):
    """Each name with another result than the harmless name, and the results.
    No name is a path."""
    want, bad = form(make(HARMLESS)), {}
    assert HARMLESS not in HOSTILE.values() and want
    for what, name in HOSTILE.items():
        got = form(make(name))
        if got != want:
            bad[what] = got
    assert not bad, (form.__name__, want, bad)


def check(make, forms):
    absent = [form.__name__ for form in forms if not has_reader(form)]
    for form in forms:
        if has_reader(form):
            what_differs(form, make)
    assert not os.path.exists('/tmp/ka-forged')
    return ' (without a reader of: ' + ', '.join(absent) + ')' if absent else ''


def a_journal_has_one_record_for_a_name():
    return check(of_journals, OF_JOURNALS)


def answers_of_a_vm_have_one_record_for_a_name():
    return check(of_vms, OF_VMS)


def texts_have_one_record_for_a_name():
    return check(of_names, OF_NAMES)


sys.exit(exports.run_tests([
    a_journal_has_one_record_for_a_name,
    answers_of_a_vm_have_one_record_for_a_name,
    texts_have_one_record_for_a_name]))
