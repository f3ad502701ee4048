#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Each rule of the tracer is right: kind, address, sizes, layer and caller of
each event, in order, and no other event. Oracle: the module ka_rules, which
calls every kind of allocator function and prints what it got; and the bytes of
kmalloc()'s objects in /proc/slabinfo.

usage: test_rules.py [--short] [--kernel K]...
"""
import json
import os
import re
import tempfile
from collections import Counter, defaultdict

from lib import kmodsyms, oracle
from lib.programs import kernel_options
from lib.tap import Tap
from scripts.lib.guest import Guest

SLOT = re.compile(r'kmalloc-(\d+)(k?) +\d+ +\d+ +(\d+) ')
LINE = re.compile(r'ka_rules: (\S+) (\w+) (\w+=.*)')
# In these cases a library function is between the module and kmalloc.
LIBRARY = {'kmemdup': 4, 'kstrdup': 4, 'kasprintf': 4}


def read_truth(console):
    """Parse the console: [(case, what, {key: value})] in the order of lines."""
    truth = []
    for case, what, rest in LINE.findall(console):
        values = dict(word.split('=', 1) for word in rest.split())
        for key in ('va', 'req', 'act'):
            if key in values:
                values[key] = int(values[key], 16 if key == 'va' else 10)
        truth.append((case, what, values))
    return truth


def read_slots(console):
    """Parse /proc/slabinfo in the console: {size: bytes of an object}. SLAB
    aligns objects to cache lines, and ksize() does not count what that adds."""
    return {int(size) << (10 if kilo else 0): int(slot)
            for size, kilo, slot in SLOT.findall(console)}


def use_slots(truth, slots):
    """Let /proc/slabinfo, if there is one, say what kmalloc() reserves."""
    for _, _, want in truth:
        if want.get('layer') == 'kmalloc' and slots:
            want['act'] = slots[min(size for size in slots
                                    if size >= want['req'])]


def our_rules(events, names, truth):
    """Return {va: [(kind, event, function)]} of the events of the module: their
    first frame is a function ka_rule_*. vfree() ends with a jump to kfree(),
    which then has the stack of vfree() but frees another block."""
    near = {want['va']: LIBRARY[case] for case, what, want in truth
            if case in LIBRARY and what == 'alloc'}
    found, vfree = defaultdict(list), set()
    for event in events:
        if event.family == 'vfree':
            vfree.add(event.frames)
        elif event.hook == 'kfree' and event.frames in vfree:
            vfree.discard(event.frames)
            continue
        depth = near.get(event.va, 1) if event.kind == 'alloc' else 1
        for pc in event.frames[:depth]:
            name = names.name(pc)
            if name and name.startswith('ka_rule_'):
                found[event.va].append((event.kind, event, name))
                break
    return found


KIND = {'alloc': 'alloc', 'free': 'free', 'resize': 'resize', 'queue': 'rcu'}


def check_event(case, what, want, got):
    kind, event, function = got
    text = f'{case} {what} {want}: we have {kind} in {function}: {event}'
    assert kind == KIND[what], text
    assert function == want['fn'], text
    if 'req' in want:
        assert event.req == want['req'], text
    if want.get('act'):
        assert event.act == want['act'], text
    if 'layer' in want:
        assert event.layer == want['layer'], text


def free_follows(events, got):
    """Return whether a later event frees the block of this event."""
    _, event, _ = got
    return any(e.va == event.va and e.kind == 'free' and e.seq > event.seq
               for e in events)


def check_deferred(want, rows, events):
    assert rows, f'{want}: no event of ours'
    got = rows.pop(0)
    kind, _, function = got
    text = f'{want}: we have {kind} in {function}'
    assert function == want['fn'], text
    assert kind == 'free' or (kind == 'rcu' and free_follows(events, got)), text


def run(kernel):
    with tempfile.TemporaryDirectory(prefix='ka-rules.') as tmp:
        share = oracle.make_share(os.path.join(tmp, 'share'), ['rules.sh'],
                                  kernel, modules=True)
        log = os.path.join(tmp, 'journal')
        with Guest(kernel=kernel, run='rules', share=share, journal=log,
                   cmdline='no_hash_pointers', name='rules-' + kernel) as g:
            assert g.wait_done() == 0, 'insmod failed'
            truth = read_truth(g.console)
            use_slots(truth, read_slots(g.console))
            names = kmodsyms.of_kallsyms(g.console, 'ka_rules')
            shown = {w['va']: g.hmp_qmp(f"ka {w['va']:#x} -j -v")
                     for _, what, w in truth if what == 'keep'}
            errors = g.hmp_qmp('ka error')
        return truth, names, shown, list(oracle.our_events(log)), errors


def check(tap, kernel):
    truth, names, shown, events, errors = run(kernel)
    found = our_rules(events, names, truth)
    queue = {va: list(rows) for va, rows in found.items()}
    for case, what, want in truth:
        if what in KIND:
            with tap.test(f'{kernel}: {case} {what}'):
                rows = queue.get(want['va'])
                assert rows, f'{want}: no event of ours; all: ' \
                    f"{found.get(want['va'])}"
                check_event(case, what, want, rows.pop(0))
        elif what == 'later':
            with tap.test(f'{kernel}: {case} is released later'):
                assert free_follows(events, found[want['va']][-1])
        elif what == 'defer':
            with tap.test(f'{kernel}: {case} is released now or later'):
                check_deferred(want, queue.get(want['va']), events)
        elif what == 'keep':
            with tap.test(f'{kernel}: {case} is shown as live'):
                row = json.loads(shown[want['va']].splitlines()[0])
                assert row['state'] == 'A', row
                assert int(row['va'], 16) == want['va'], row
    left = [row for rows in queue.values() for row in rows]
    tap.note(Counter(f'{kind} {name}' for kind, _, name in left))
    tap.ok(truth and not left, f'{kernel}: no event without a cause',
           '\n'.join(str(row) for row in left[:20]))
    tap.ok(errors.startswith('no errors;'),
           f'{kernel}: nothing of it is an error', errors)


def main():
    tap = Tap()
    for kernel in kernel_options():
        with tap.test(f'{kernel}: runs and is read'):
            check(tap, kernel)
    tap.done()


if __name__ == '__main__':
    main()
