# SPDX-License-Identifier: GPL-2.0-or-later
"""Wrong accesses by the module ka_vcpus, on several vCPUs at once, each of
which is counted. READERS vCPUs or more are needed."""
import json
import re

READERS = 4             # threads that read freed objects
TIMES = 1000            # that each of them does


def counts_of(guest):
    """Return {function: how often its errors were counted}."""
    counts = {}
    for line in guest.hmp_qmp('ka error -n 0 -j -s').splitlines():
        row = json.loads(line)
        if row.get('type') == 'error':
            name = re.match(r'\w+', row['error_stack_symbols'][0])[0]
            counts[name] = counts.get(name, 0) + row['error_count']
    return counts


def run_part(guest, part, rounds):
    """Let the module do PART, and wait for its end."""
    text = guest.shell(f'echo {rounds} >/sys/module/ka_vcpus/parameters/{part} '
                       '&& echo done')
    assert 'done' in text, text


def check(guest, vcpus):
    """Return how many wrong accesses were not judged. Each other one is
    counted, and nothing else is.

    Two threads store, and move from vCPU to vCPU. A vCPU's first store after a
    free by another vCPU is not judged if the former has recorded nothing
    meanwhile. That can happen to the second thread, once a vCPU.
    """
    before = guest.stat()
    run_part(guest, 'stale', TIMES)
    stat = guest.stat()
    new = {name: stat[name] - before[name] for name in
           ('access.unjudged', 'access.dropped', 'events.access')}
    unjudged = new['access.unjudged']
    want = {f'ka_vcpus_read_{i}': TIMES for i in range(READERS)}
    want['ka_vcpus_modify_late'] = TIMES
    want['ka_vcpus_modify'] = TIMES - unjudged
    counts = counts_of(guest)
    assert counts == want, (counts, new)
    assert unjudged < vcpus, (counts, new)
    assert new['events.access'] == sum(want.values()) + unjudged, new
    assert not new['access.dropped'], new
    assert not stat['access.disagreed'], stat['access.disagreed']
    return unjudged
