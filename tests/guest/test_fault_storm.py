#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Thousands of faults on eight vCPUs: each fault is in the log, which call
fails is exact, and the guest, the map and, in the long form, the events are in
order.

Oracle: the module kf_storm counts its calls, and those that failed; the seed,
the stack and the number of a call say which must have failed; the guest's own
trace has each event of its allocators.

usage: test_fault_storm.py [--short] [--kernel K]... [--smp N]... [--calls N]
"""
import contextlib
import json
import os
import re
import tempfile
from collections import Counter

from lib import fault_random, oracle, programs
from lib.tap import Tap
from scripts.lib.guest import Guest
import test_oracle_events

SEED, PERCENT = 11, 50
LOG_MAX = 65536
SCRIPT = f"fault seed {SEED}\nfault add kmalloc --module kf_storm " \
    f"--if 'rnd100 < {PERCENT}'\n"
# The guest reports each of a thousand failed calls otherwise, and a busy host
# makes it believe that a CPU is stuck.
WORDS = 'nosoftlockup'


def rows(guest, line):
    return [json.loads(row) for row in
            guest.hmp_qmp(f'ka fault {line} -j').splitlines()]


def said(guest):
    """What the module printed: calls, and those that failed."""
    found = re.search(r'kf_storm: calls=(\d+) failed=(\d+)', guest.console)
    assert found, 'the module printed nothing'
    return int(found[1]), int(found[2])


def in_order(guest):
    check = guest.hmp_qmp('ka check').strip()
    assert check.startswith('ok'), check
    stat = guest.stat()
    assert not stat.get('errors.recorded'), guest.hmp_qmp('ka error -s')
    text = guest.console.partition('KA-READY')[2]
    assert not re.search('BUG|Oops|WARNING|Call Trace', text), text
    return stat


def exact(log, stacks):
    """Which calls of each stack failed is what the seed says."""
    got = {}
    for row in log:
        got.setdefault(row['stackid'], []).append(row['n'])
    assert len(stacks) == len(got) == 2, stacks
    for stack in stacks:
        want = [n for n in range(1, stack['calls'] + 1)
                if fault_random.below(SEED, stack['stackid'], n, 100) <
                PERCENT]
        assert sorted(got[stack['stackid']]) == want, stack


def look(tap, guest, smp, label, each):
    """Compare the counts after the storm: EACH calls on each vCPU."""
    calls, failed = said(guest)
    rule, = rows(guest, 'list -v')
    log = rows(guest, 'log -n 0')
    stacks = rows(guest, 'stacks -n 0')
    cpus = Counter(row['cpu'] for row in log)
    tap.note(f'{label}: {calls} calls, {failed} failed, {len(log)} lines, by '
             f'vCPU {dict(cpus)}')
    with tap.test(f'{label}: each fault is in the log'):
        assert rule['calls'] == calls, rule
        assert rule['done'] == rule['selected'] == len(log) == failed, rule
        assert rule['refused'] == 0, rule
        assert sum(s['calls'] for s in stacks) == calls, stacks
    with tap.test(f'{label}: the seed says which calls fail'):
        exact(log, stacks)
    with tap.test(f'{label}: guest and tracer are in order'):
        stat = in_order(guest)
        assert stat['faults.made'] == failed, stat['faults.made']
        assert len(cpus) == calls // each == smp, cpus
    tap.figures('fault-storm', label=label, calls=calls, failed=failed)


def script_file(folder, text):
    path = os.path.join(folder, 'faults.ka')
    with open(path, 'w', encoding='ascii') as f:
        f.write(text)
    return path


def traced(tap, kernel, smp, label, calls):
    """The storm, with the guest's own trace of its allocators. While vCPUs
    start there is little memory: with larger buffers some do not start."""
    with tempfile.TemporaryDirectory(prefix='ka-faults.') as tmp:
        script = script_file(tmp, SCRIPT)
        run = oracle.traced_run(
            kernel, smp, calls, stacks=False, buffer='16M', mem='2G',
            words=f'{oracle.TRACE_WORDS} {WORDS}', load='fault-storm',
            modules=True, plugin_opts=f'script={script}',
            then=lambda guest, journal: look(tap, guest, smp, label,
                                             calls))
    test_oracle_events.check(tap, run, label, kernel)


@contextlib.contextmanager
def storm(kernel, smp, calls, rules):
    """A guest after the storm."""
    with tempfile.TemporaryDirectory(prefix='ka-faults.') as tmp:
        share = oracle.make_share(os.path.join(tmp, 'share'),
                                  ['fault-storm.sh'], kernel, modules=True)
        with Guest(kernel=kernel, smp=smp, run='fault-storm', n=calls,
                   share=share, timeout=900, cmdline=WORDS,
                   plugin_opts=f'script={script_file(tmp, rules)}',
                   name=f'fault-storm-{kernel}-{smp}') as guest:
            assert guest.wait_done() == 0
            yield guest


def untraced(tap, kernel, smp, label, calls):
    with storm(kernel, smp, calls, SCRIPT) as guest:
        look(tap, guest, smp, label, calls)


def full(tap, kernel, smp, label):
    """More faults than the log has lines: the calls that follow succeed, and
    each is counted."""
    rule = 'fault add kmalloc --module kf_storm\n'
    with storm(kernel, smp, 80000 // smp, rule) as g:
        calls, failed = said(g)
        rule = rows(g, 'list -v')[0]
        in_order(g)
        lines = sum('rule' in row for row in rows(g, 'log -n 0'))
        tap.note(f'{label}: {calls} calls, {failed} failed')
        assert calls == rule['calls'] == rule['selected'], rule
        assert failed == rule['done'] == lines == LOG_MAX, rule
        assert rule['refused_log_full'] == calls - failed > 0, rule
        assert 'log of faults is full' in g.qemu_log, g.qemu_log


def main():
    ap = programs.arguments(
        __doc__, short="6.12, 2,000 faults, without the guest's trace")
    ap.add_argument('--calls', type=int,
                    help='calls on each vCPU; half of them fail')
    args = programs.parse(ap, short_smps=(8,))
    if not args.short and args.smp == programs.SMPS:
        args.smp = 8,
    tap, calls = Tap(), args.calls or (500 if args.short else 3000)
    run = untraced if args.short else traced
    programs.run_over(tap, args.kernel, args.smp,
                      lambda *words: run(*words, calls))
    if not args.short:
        programs.run_over(tap, args.kernel, args.smp, full,
                          test='a full log')
    tap.done()


if __name__ == '__main__':
    main()
