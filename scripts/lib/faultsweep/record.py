# SPDX-License-Identifier: GPL-2.0-or-later
"""Which calls a scenario makes: it is run twice, with rules that only record.
The first of these runs is the control, too: what it shows is no finding."""
import re

from . import runner
from .verdict import judge_control

LIKELY_FIRST = 'likely', 'cgroup', '-', 'rare'
KEPT = ('stackid', 'selected', 'function', 'size', 'flags', 'chance', 'cut',
        'frames')


class RecordError(Exception):
    """The scenario does not work without a fault; the text says why."""


def record_once(restorer, scenario, limits, watch=False):
    """Return (run, {stackid: row}); a row has the key point. WATCH: record
    who takes references to modules."""
    vm = restorer.restore()
    found = {}

    def keep_stacks(vm, rules):
        for row in runner.stacks(vm, rules):
            row['point'] = scenario.points[rules.index(row['rule'])]
            found.setdefault(row['stackid'], {
                k: row[k] for k in (*KEPT, 'point')})

    run = runner.perform(vm, scenario.log_rules(vm.pid), limits,
                         look_more=keep_stacks, watch=watch)
    restorer.collect(vm)
    if run['end'] != 'marker':
        symptom = judge_control(run).symptom or run['why']
        raise RecordError(f'the scenario does not end without a fault: '
                          f"{run['end']}: {symptom}")
    run['made'], run['faults'] = 0, []
    return run, found


def record(restorer, scenario, limits):
    """Return the record of a scenario, as a dict: control, stacks, unstable
    (stacks that only one run had)."""
    control, first = record_once(restorer, scenario, limits)
    watched, second = record_once(restorer, scenario, limits, watch=True)
    control['references'] = watched['references']
    # The guest goes on until the host has seen the end, which can take long.
    control['us'] = min(control['us'], watched['us'])
    stable = [first[h] for h in first if h in second]
    for row in stable:
        row['selected'] = min(row['selected'], second[row['stackid']]
                              ['selected'])
    return {'control': control, 'stacks': stable,
            'unstable': [both[h] for both, other in
                         ((first, second), (second, first))
                         for h in both if h not in other]}


# --- what is to be run -------------------------------------------------------

def read_excluded(path):
    """Return {stackid: reason} of a file with lines 'STACKID REASON'."""
    found = {}
    with open(path, encoding='utf-8') as f:
        for number, line in enumerate(f, 1):
            words = line.split(None, 1)
            if not words or words[0].startswith('#'):
                continue
            if not re.fullmatch('0x[0-9a-f]{1,16}', words[0]) or \
                    len(words) < 2:
                raise ValueError(f'{path}, line {number}: not "STACKID '
                                 'REASON"')
            found[words[0]] = words[1].strip()
    return found


def plan(record, only=(), excluded=()):
    """Return the stacks in the order of the runs: calls that can fail in
    practice first, then stacks with few calls."""
    def is_in(row, hashes):     # with leading zeros or without
        return int(row['stackid'], 16) in {int(h, 16) for h in hashes}

    rows = [r for r in record['stacks'] if not r['cut'] and
            not is_in(r, excluded) and (not only or is_in(r, only))]
    return sorted(rows, key=lambda r: (LIKELY_FIRST.index(r['chance']),
                                       r['selected'], r['stackid']))
