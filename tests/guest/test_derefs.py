#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What arguments and results of watched calls point to (ka calls add --deref)
is what it was at the time of the call, live and in the journal. Oracle: the
guest's own probes with fetch arguments of the same members, whose offsets the
tests' own reader finds in the guest's types.

usage: test_derefs.py [--short] [--kernel K]... [--smp N]...

Compared are the calls of the tasks that live within the window of the guest's
trace, in their order: no call missing, no value different. On riscv64, whose
ftrace refuses probes with texts and of returns, these are left out. A kernel
without types refuses --deref.
"""
import json
import os
import re
import subprocess
import tempfile
from collections import Counter, defaultdict, namedtuple

from lib import oracle, programs
from lib.btf import Btf
from lib.tap import Tap
from scripts.lib.guest import Guest
from scripts.lib.prepared import kernel_arch, paths

REGS = {'x86_64': 'di si dx cx'.split(), 'aarch64': 'x0 x1 x2 x3'.split(),
        'riscv64': 'a0 a1 a2 a3'.split()}
TEXT, USER_TEXT, RESULT = 'string', 'ustring', 'result'
TEXTS = TEXT, USER_TEXT

# An expression, the argument, the members on the way (each a pointer but the
# last; a tuple of two are added), and the bits of the value or one of TEXTS.
Expr = namedtuple('Expr', 'text arg path kind')
FILE = [Expr('file->f_inode->i_ino', 0,
             [[('file', 'f_inode')], [('inode', 'i_ino')]], 64),
        Expr('file->f_flags', 0, [[('file', 'f_flags')]], 32),
        Expr('*pos', 3, [[]], 64)]
NAME = [('dentry', 'd_name'), ('qstr', 'name')]
EXPRS = {
    'vfs_read': FILE, 'vfs_write': FILE,
    'do_filp_open': [
        Expr('pathname->name', 1, [[('filename', 'name')]], TEXT),
        Expr('ret->f_flags', RESULT, [[('file', 'f_flags')]], 32)],
    'vfs_open': [
        Expr('path->dentry->d_name.name', 0, [[('path', 'dentry')], NAME],
             TEXT),
        Expr('path->mnt->mnt_flags', 0,
             [[('path', 'mnt')], [('vfsmount', 'mnt_flags')]], 32)],
    'dput': [Expr('dentry->d_name.name', 0, [NAME], TEXT)],
    'filp_close': [Expr('filp->f_flags', 0, [[('file', 'f_flags')]], 32)],
    'kstrdup': [Expr('*s', 0, [], TEXT)],
    # Of user space, which the kernel is kept from (SMAP, PAN).
    'getname_flags': [Expr('*filename', 0, [], USER_TEXT)],
}
LINE = re.compile(r'\s*.{1,16}-(?P<pid>\d+)\s+\[\d+\]\s+\S+\s+[\d.]+: '
                  r'(?P<kind>[er])_(?P<f>\w+): (?P<rest>.*)')
VALUE = re.compile(r' v(\d)=(?:0x([0-9a-f]+)|"([^"]*)"|(\(fault\)))')
TEXT_MAX = 64       # KT_DEREF_TEXT_MAX


def read(path):
    with open(path, encoding='utf-8', errors='replace') as f:
        return f.read()


# --- the guest's probes ------------------------------------------------------

def fetch(expr, btf, regs):
    """Return the fetch argument of an expression."""
    at = '$retval' if expr.arg == RESULT else '%' + regs[expr.arg]
    for members in expr.path:
        at = f'+{sum(btf.offset(*m) for m in members)}({at})'
    return f'+0({at}):{expr.kind}' if expr.kind in TEXTS else f'{at}:x64'


def probes(function, exprs, btf, arch):
    """Return the lines of kprobe_events for a function. The name of an
    argument is v and the index of its expression."""
    entry, result = [], []
    for i, e in enumerate(exprs):
        (result if e.arg == RESULT else entry).append(
            f'v{i}={fetch(e, btf, REGS[arch])}')
    at = function + ('+4' if arch == 'riscv64' else '')
    lines = [f'p:ka/e_{function} {at} ' + ' '.join(entry)] if entry else []
    return lines + ([f'r1000:ka/r_{function} {function} ' + ' '.join(result)]
                    if result else [])


def chosen(arch):
    """Return {function: expressions} that the guest's ftrace can do, too."""
    if arch != 'riscv64':
        return EXPRS
    found = {f: [e for e in es if e.kind not in TEXTS and e.arg != RESULT]
             for f, es in EXPRS.items()}
    return {f: es for f, es in found.items() if es}


def theirs_of(text, exprs):
    """Return {(pid, function): [[value]]}, by the order of entries. A value is
    a number, a text, or None if the guest could not read it."""
    calls = defaultdict(list)
    for m in filter(None, map(LINE.fullmatch, text.splitlines())):
        key = int(m['pid']), m['f']
        if m['kind'] == 'e':
            calls[key].append([None] * len(exprs[m['f']]))
        elif key not in calls:
            continue        # entered before the window
        for i, number, string, fault in VALUE.findall(m['rest']):
            kind = exprs[m['f']][int(i)].kind
            calls[key][-1][int(i)] = (
                None if fault else string if kind in TEXTS else
                int(number, 16) & (1 << kind) - 1)
    return calls


# --- ours --------------------------------------------------------------------

def is_address(word):
    """Is a word more than NULL or an error number?"""
    return 4096 <= word < (1 << 64) - 4095


def our_value(value, expr, row):
    """Return a value as theirs_of() has it; 'unread' if it is not known though
    there is an address."""
    if value is None and expr.kind == USER_TEXT:
        return None         # it may have to be read from a disk first
    if value is None or value == '0x0' and expr.kind in TEXTS:
        base = int(row['ret'] if expr.arg == RESULT else
                   row['regs'][expr.arg], 16)
        return 'unread' if value is None and is_address(base) else None
    if expr.kind in TEXTS:
        return value.removesuffix('...')[1:-1]
    return int(value.split()[0], 0) & (1 << expr.kind) - 1


def ours_of(text, exprs):
    """The same of `ka calls -j`, and the set of pids of kworkers, which live
    longer than the window."""
    calls, workers = defaultdict(list), set()
    for row in map(json.loads, text.splitlines()):
        if row['type'] != 'call' or row['function'] not in exprs:
            continue
        values = {d['name']: d['value'] for d in row.get('deref', [])}
        calls[row['pid'], row['function']].append(
            [our_value(values.get(e.text), e, row)
             for e in exprs[row['function']]])
        if row['comm'].startswith('kworker'):
            workers.add(row['pid'])
    return calls, workers


def same(ours, theirs, exprs):
    """Texts are cut. Where we say that the address is NULL or an error, the
    guest has any number."""
    for a, b, e in zip(ours, theirs, exprs):
        if e.kind in TEXTS and isinstance(a, str) and isinstance(b, str):
            if a != b and (len(a) < TEXT_MAX or not b.startswith(a)):
                return False
        elif not (a is None and (b is None or e.kind not in TEXTS)) and a != b:
            return False
    return True


def compare(ours, theirs, exprs):
    """Return ([missing calls], {function: extra calls})."""
    missing, extra = [], Counter()
    for (pid, function), calls in theirs.items():
        mine, at = ours.get((pid, function), []), 0
        for call in calls:
            found = next((i for i in range(at, len(mine)) if
                          same(mine[i], call, exprs[function])), None)
            if found is None:
                missing.append((function, call, mine[at:at + 2]))
            else:
                extra[function] += found - at
                at = found + 1
        extra[function] += len(mine) - at
    return missing, extra


# --- the test ----------------------------------------------------------------

def watch(guest, exprs):
    for function, es in exprs.items():
        answer = guest.hmp_qmp(f'ka calls add {function} --deref ' +
                               ','.join(e.text for e in es))
        assert answer.strip().endswith('1 function is watched'), answer


def refusals(tap, guest, label):
    """Wrong expressions are refused, each in one line."""
    with tap.test(f'{label}: wrong expressions are refused'):
        for expr, words in (('file->none', 'struct file has no member "none"'),
                            ('count->x', '"count" is no pointer'),
                            ('file->', 'column 7: expected a member'),
                            ('*file', 'the limit is 128'),
                            ('nofile->x', 'no parameter "nofile"')):
            answer = guest.hmp_qmp(f'ka calls add vfs_read --deref {expr}')
            assert words in answer and '\n' not in answer.strip(), answer


def types_of(guest, out):
    """Return the guest's types, None if it has none."""
    guest.shell('sh /share/derefs.sh types')
    guest.collect()
    with open(os.path.join(out, 'share', 'out', 'btf'), 'rb') as f:
        data = f.read()
    return Btf(data) if data else None


def without_types(tap, guest, label):
    """A kernel without types: --deref says how to get some."""
    with tap.test(f'{label}: without types no value is promised'):
        answer = guest.hmp_qmp('ka calls add vfs_read --deref file->f_flags')
        assert 'give types=FILE' in answer and '\n' not in answer.strip(), \
            answer
        assert guest.hmp_qmp('ka calls points').strip() == \
            'no function is watched'


def prepare(guest, btf, exprs, arch):
    """Write the guest's list of probes."""
    for function, es in exprs.items():
        for line in probes(function, es, btf, arch):
            guest.shell(f"echo '{line}' >>/share/events")
    if arch == 'riscv64':
        guest.shell('touch /share/perf')


def outside(base, workers):
    perf = os.path.join(base, 'perf')
    return workers | ({int(read(perf))} if os.path.exists(perf) else set())


def check(tap, label, base, text, stat, exprs):
    theirs = theirs_of(read(os.path.join(base, 'trace')), exprs)
    ours, workers = ours_of(text, exprs)
    script = int(read(os.path.join(base, 'pid')))
    theirs = {k: c for k, c in theirs.items()
              if k[0] > script and k[0] not in outside(base, workers)}
    missed = Counter({x.split()[0].removeprefix('e_'): int(x.split()[2])
                      for x in
                      read(os.path.join(base, 'profile')).splitlines()})
    missing, extra = compare(ours, theirs, exprs)
    values = Counter(type(v).__name__ for cs in theirs.values() for c in cs
                     for v in c)
    n = sum(map(len, theirs.values()))
    with tap.test(f'{label}: values of {n} calls of {len(exprs)} functions, '
                  f'{values["int"]} numbers, {values["str"]} texts'):
        assert not os.path.exists(os.path.join(base, 'refused')), \
            read(os.path.join(base, 'refused'))
        assert stat.get('calls.dropped', 0) == 0, stat
        assert n > 200, f'only {n} calls'
        extra -= missed
        assert not missing and not extra, \
            f'{missing[:3]} missing of {len(missing)}, {extra} extra'


def test(tap, kernel, smp, label, n, tmp):
    arch = kernel_arch(kernel)
    exprs = chosen(arch)
    share = os.path.join(tmp, f'{kernel}-{smp}')
    oracle.make_share(share, ['calls.sh', 'derefs.sh'], kernel, modules=True)
    out = os.path.join(tmp, f'out-{kernel}-{smp}')
    file = os.path.join(tmp, f'{kernel}-{smp}.journal')
    with Guest(kernel=kernel, smp=smp, share=share, out=out, mem='2G',
               timeout=900, end='shell', name=f'derefs-{kernel}-{smp}',
               plugin_opts=f'calls=512M,journal={file}') as g:
        btf = types_of(g, out)
        if not btf:
            without_types(tap, g, label)
            return
        prepare(g, btf, exprs, arch)
        refusals(tap, g, label)
        watch(g, exprs)
        g.shell(f'sh /share/derefs.sh run {n}')
        g.qmp('stop')
        text = g.hmp_qmp('ka calls -j -n 0')
        forms = {form: g.hmp_qmp(f'ka calls -n 0 --format {form}')
                 for form in ('text', 'ftrace', 'chrome')}
        stat = g.stat()
        g.collect()
        check(tap, label, os.path.join(out, 'share', 'out'), text, stat, exprs)
    with tap.test(f'{label}: the journal lists the same, in all forms'):
        forms['text -j'] = text
        for form, want in forms.items():
            got = subprocess.run(
                [os.path.join(paths()['build'], 'monitor-cmds', 'ka'), '-f',
                 file, 'calls', '-n', '0', '--format', *form.split()],
                check=True,
                capture_output=True, text=True).stdout
            assert got.strip() == want.strip(), f'{form} differs'


def main():
    ap = programs.arguments(__doc__, short='6.12 on 1 vCPU only')
    args, tap = programs.parse(ap), Tap()
    with tempfile.TemporaryDirectory(prefix='ka-derefs.') as tmp:
        programs.run_over(
            tap, args.kernel, args.smp, lambda tap, kernel, smp, label:
            test(tap, kernel, smp, label, 1 if args.short else 10, tmp),
            test=None)
    tap.done()


if __name__ == '__main__':
    main()
