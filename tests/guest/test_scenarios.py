#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Each scenario for fault sweeps does all that it says while nothing fails,
twice in a row: no step fails, there is no error, the modules are gone, and the
kernel warned of nothing. Oracle: a kernel of the distribution is in order. The
stacks that reach each point of `ka fault` are counted.

usage: test_scenarios.py [--short] [--kernel K]... [--scenario NAME]...
"""
import json
import os
import re
import tempfile

from lib import programs, scenarios
from lib.pause import pause
from lib.tap import Tap
from scripts.lib.guest import Guest

POINTS = 'kmalloc', 'pages', 'vmalloc', 'percpu'
SHORT = 'dummy', 'nft'
# 6.12.117 loses a hardware queue context of each device of null_blk, and its
# name: functions on the stacks of these blocks.
LEAKS = {'null_blk': ('blk_mq_alloc_and_init_hctx', 'blk_mq_register_hctx')}
TROUBLE = re.compile(r'.*(?:WARNING:|BUG:|Oops|Call Trace|stack-protector).*')


def rows(guest, line):
    return [json.loads(row) for row in
            guest.hmp_qmp(f'ka {line} -j').splitlines()]


def run_once(guest, name):
    """Run a scenario; return its output and the guest's seconds."""
    text = guest.shell('read begin rest </proc/uptime; '
                       f'sh /share/{name}.sh 2>&1; echo "status $?"; '
                       'read end rest </proc/uptime; echo "time $begin $end"; '
                       'cat /proc/modules')
    begin, end = re.search(r'^time (\S+) (\S+)$', text, re.M).groups()
    status = re.search(r'^status (\d+)$', text, re.M)[1]
    assert status == '0', f'status {status}:\n{text}'
    left = text.partition(end + '\n')[2].strip()
    assert not left, f'loaded: {left}'
    return text, round(float(end) - float(begin), 2)


def check(guest, name):
    """The tracer found no error, and no leak but those that are known."""
    errors = guest.hmp_qmp('ka error -n 20 -s')
    assert errors.startswith('no errors'), errors
    trouble = TROUBLE.findall(guest.hmp_qmp('ka log -n 0'))
    assert not trouble, trouble
    leaks = [json.dumps(row) for row in rows(guest, 'leak module -a -s -n 0')
             if 'leak' in row]
    known = LEAKS.get(name, ())
    new = [row for row in leaks if not any(part in row for part in known)]
    assert not new, '\n'.join(new)


def add_rules(guest, of):
    """Ask which calls would fail, for all points and for those with condition
    OF; return {rule: (point, kind)}."""
    rules = {}
    for point in POINTS:
        for kind, words in ('all', ''), ('module', f" --if '{of}'"):
            row, = rows(guest, f'fault add {point}{words} --do log')
            rules[row['rule']] = point, kind
    return rules


def count_stacks(guest, rules):
    """Return {kind: {point: different stacks}}."""
    counts = {'all': dict.fromkeys(POINTS, 0),
              'module': dict.fromkeys(POINTS, 0)}
    for row in rows(guest, 'fault log --by stack -n 0'):
        if row.get('type') == 'fault_stack':
            point, kind = rules[row['rule']]
            counts[kind][point] += 1
    return counts


def run(tap, scenario, kernel, tmp):
    share = scenarios.make_share(os.path.join(tmp, f'{scenario.name}-{kernel}'),
                                 scenario, kernel)
    plugged = [word for d in scenario.plug for word in ('-device', d)]
    with Guest(kernel=kernel, share=share, end='shell', mem='512M',
               plugin_opts='pages=on', qemu=scenario.qemu + plugged,
               timeout=300,
               name=f'scenario-{scenario.name}-{kernel}') as g:
        g.shell('cat /proc/modules')
        with tap.test(f'{kernel}: {scenario.name} is in order'):
            seconds = [run_once(g, scenario.name)[1] for _ in range(2)]
            try:
                pause(g)
                check(g, scenario.name)
            finally:
                g.qmp('cont')
        with tap.test(f'{kernel}: {scenario.name} reaches points of faults'):
            rules = add_rules(g, scenarios.condition(scenario))
            run_once(g, scenario.name)
            counts = count_stacks(g, rules)
            tap.figures('scenario', name=scenario.name, kernel=kernel,
                        guest_seconds=seconds, **counts)
            assert sum(counts['all'].values()) > 10, counts


def main():
    ap = programs.arguments(__doc__, short='two scenarios', smp=False)
    ap.add_argument('--scenario', action='append', metavar='NAME',
                    choices=scenarios.names(), help='only this one')
    args = ap.parse_args()
    names = args.scenario or (SHORT if args.short else scenarios.names())
    tap = Tap()
    with tempfile.TemporaryDirectory(prefix='ka-scenarios.') as tmp:
        for name in names:
            scenario = scenarios.read(name)
            for kernel in args.kernel or (scenario.kernel,):
                without = scenarios.missing(scenario, kernel)
                if without is None or without:
                    tap.skip(f'{kernel}: {name}', 'the kernel is not here' if
                             without is None else f'no {" ".join(without)}')
                    continue
                with tap.test(f'{kernel}: {name} starts'):
                    run(tap, scenario, kernel, tmp)
    tap.done()


if __name__ == '__main__':
    main()
