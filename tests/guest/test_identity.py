#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The same errors have the same identity: in two boots of one kernel, which
KASLR places elsewhere, all hashes; in other kernels the titles. Oracle: modules
that make the same errors in each boot. And the frames of these modules have
their lines of source, as addr2line says, and the kernel its build id.

usage: test_identity.py [--short] [--kernel K]...
"""
import os
import re
import subprocess
import tempfile

from lib import oracle, programs
from lib.tap import Tap
from scripts.ka import find_program
from scripts.lib.findings import lines
from scripts.lib.findings.finding import Finding
from scripts.lib.guest import Guest

BOOTS = 2
# Kind -> the function of the module that makes the error. Leaks: the one that
# allocates.
WANT = {'use-after-free': 'ka_case_', 'double-free': 'ka_err_',
        'leak': 'ka_leaky_'}


def add_lines(guest, rows, share):
    """Return the rows with lines of source, and what ka said."""
    found = [Finding(r['title'], r['title'], row=r) for r in rows]
    said = lines.add(guest.ka, found, find_program(), None, share)
    return [f.row for f in found], said


def build_ids(guest):
    """The build id as ka base has it, and as the guest printed its notes."""
    said = [r['note'] for r in guest.rows('ka base')
            if r.get('name') == 'build-id']
    notes = ''.join(re.findall(r'KA-NOTES ([0-9a-f ]+)', guest.console))
    return said, notes.replace(' ', '')


def places(path):
    """Return {function: [(section, address)]} of a module's file."""
    found = {}
    for line in subprocess.run(['objdump', '-t', path], check=True, text=True,
                               stdout=subprocess.PIPE).stdout.splitlines():
        m = re.fullmatch(r'(\w+) .{6}F (\S+)\t\w+ (?:\.hidden )?(\S+)', line)
        if m:
            found.setdefault(m[3], []).append((m[2], int(m[1], 16)))
    return found


def addr2line(path, symbol, at, pc):
    """file:line of a frame function+0xoff[module]. The addr2line of Debian 12
    names wrong files of headers by DWARF 5, so only the last place counts,
    which is in the module's own file."""
    function, offset = symbol.partition('[')[0].split('+')
    (section, where), = places(path)[function]
    out = subprocess.run(['addr2line', '-i', '-j', section, '-e', path,
                          f'{where + int(offset, 16) + at - pc:#x}'],
                         check=True, text=True, stdout=subprocess.PIPE).stdout
    return out.splitlines()[-1].split(' (')[0]


def check_lines(rows, share):
    """Return the number of frames that were compared."""
    n = 0
    for row in rows:
        for key in 'alloc', 'free', 'error_stack':
            frames = zip(row.get(key + '_symbols', []), row.get(key, []),
                         row.get(key + '_at', []), row.get(key + '_lines', []))
            for symbol, pc, at, line in frames:
                module = symbol.partition('[')[2].rstrip(']')
                if not module:
                    continue
                want = addr2line(os.path.join(share, module + '.ko'), symbol,
                                 int(at, 16), int(pc, 16))
                assert line == want, (symbol, line, want)
                n += 1
    return n


def findings(guest):
    """Return the rows of errors and of leaks that the modules made, in the
    order of their titles."""
    rows = [r for r in guest.rows('ka error -s --pc -n 0')
            if r.get('type') == 'error']
    rows += [r for r in guest.rows('ka leak module -s --pc -n 0')
             if 'leak' in r]
    return sorted(rows, key=lambda r: (r['title'], r['exact']))


def boot(kernel, share):
    """Return the rows of a boot, what ka said of their lines, and the build
    ids."""
    with Guest(kernel=kernel, share=share, run='identity', end='wait',
               plugin_opts='access=on', timeout=300) as g:
        g.wait_marker('KA-DONE')
        g.qmp('stop')
        return *add_lines(g, findings(g), share), build_ids(g)


def identities(rows, *keys):
    return [tuple(r[k] if k != 'alt' else tuple(r[k]) for k in keys)
            for r in rows]


def check_titles(rows):
    """The module of the double free uses freed memory, too, to do it."""
    titles = [r['title'] for r in rows]
    for kind, prefix in WANT.items():
        assert any(t.startswith(f'{kind} in {prefix}') for t in titles), \
            (kind, titles)


def last_call(row):
    """Return the address of the outermost call, which is in the kernel."""
    return row['alloc'][-1]


def run(tap, kernel, tmp, seen):
    share = oracle.make_share(os.path.join(tmp, kernel), ['identity.sh'],
                              kernel, modules=True)
    (rows, said, ids), (others, *_) = (boot(kernel, share)
                                       for _ in range(BOOTS))
    with tap.test(f'{kernel}: lines of source are those of addr2line'):
        assert not said, said
        assert check_lines(rows, share) >= len(rows), rows
    with tap.test(f'{kernel}: the build id is that of its notes'):
        assert len(ids[0]) == 1 and len(ids[0][0]) == 40, ids
        assert ids[0][0] in ids[1], ids
    with tap.test(f'{kernel}: the titles are those of the modules'):
        check_titles(rows)
    with tap.test(f'{kernel}: two boots have the same titles and hashes'):
        keys = 'title', 'alt', 'fold', 'exact', 'weak'
        assert rows and last_call(rows[0]) != last_call(others[0]), \
            'both boots have the same addresses'
        assert identities(rows, *keys) == identities(others, *keys), \
            (identities(rows, *keys), identities(others, *keys))
    # The module has caches of its own where the kernel can make them, and alt
    # names the cache.
    titles = {r['title'] for r in rows}
    tap.figures('identity', kernel=kernel, rows=len(rows),
                folds=len({r['fold'] for r in rows}),
                weak=sum(r['weak'] for r in rows))
    if seen:
        with tap.test(f'{kernel}: the titles are those of the first kernel'):
            assert titles == seen[0], (titles, seen[0])
    seen.append(titles)


def main():
    ap = programs.arguments(__doc__, short='the same', smp=False)
    args, tap = programs.parse(ap, short_kernels=programs.KERNELS), Tap()
    seen = []
    with tempfile.TemporaryDirectory(prefix='ka-identity.') as tmp:
        for kernel in args.kernel:
            run(tap, kernel, tmp, seen)
    tap.done()


if __name__ == '__main__':
    main()
