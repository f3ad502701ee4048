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


def check(guest):
    """Each wrong access is counted, and nothing else is. The first store by a
    vCPU that has recorded nothing since the free is not judged; the thread that
    stores moves from vCPU to vCPU."""
    before = guest.stat()['access.unjudged']
    run_part(guest, 'stale', TIMES)
    want = {f'ka_vcpus_read_{i}': TIMES for i in range(READERS)}
    stat = guest.stat()
    unjudged = stat['access.unjudged'] - before
    want['ka_vcpus_modify'] = TIMES - unjudged
    counts = counts_of(guest)
    assert counts == want, (counts, unjudged)
    assert stat['events.access'] >= sum(want.values()), stat
    assert not stat['access.disagreed'], stat['access.disagreed']
