# SPDX-License-Identifier: GPL-2.0-or-later
"""Readers of exports that are not ours, or that follow a format's rules: what
each says of a file, as Python has it. For the tests of ka export.

The variable KA_READERS is the folder in which scripts/setup --only readers
installs packages of npm.
"""
import contextlib
import json
import os
import re
import sqlite3
import subprocess

import exports

HERE = os.path.dirname(os.path.realpath(__file__))
READERS = os.environ.get('KA_READERS', '')


# --- folded ------------------------------------------------------------------

# As a reader of folded stacks has it.
LINE = re.compile(r'^(.*) (\d+)$')


def read_folded(data):
    """({stack, root first: number}, the comments) of folded stacks."""
    stacks, comments = {}, []
    for line in data.decode('ascii').splitlines():
        found = LINE.match(line)
        if not found:
            assert line.startswith('# [') and line.endswith(']'), line
            comments.append(line[3:-1])
            continue
        stack = tuple(found[1].split(';'))
        assert stack not in stacks, line
        stacks[stack] = int(found[2])
    return stacks, comments


def folded_of(rows, value, frames='function'):
    """What a folded file has of the rows of ka top."""
    sums = {}
    for row in rows:
        names = [n.replace(';', '\\x3b')
                 for n in exports.stack_names(row, frames)]
        stack = tuple(reversed(names))
        sums[stack] = sums.get(stack, 0) + row[value]
    return {stack: n for stack, n in sums.items() if n > 0}


# --- pprof -------------------------------------------------------------------

# The sample types, and the fields of ka top.
TYPES = (('alloc_objects', 'count', 'allocs'),
         ('alloc_space', 'bytes', 'reserved'),
         ('inuse_objects', 'count', 'blocks'),
         ('requested_space', 'bytes', 'live_asked'),
         ('inuse_space', 'bytes', 'live'))
PPROF_FIELDS = [field for _, _, field in TYPES]


def has_npm(package):
    return os.path.isdir(os.path.join(READERS, 'node_modules', package))


def signed(text):
    number = int(text)
    return number - (1 << 64) if number >> 63 else number


def read_pprof(path):
    """A profile as the package pprof-format reads it, its ids as int."""
    out = subprocess.run(['node', os.path.join(HERE, 'read_pprof.js'),
                          READERS, path], check=True, timeout=60,
                         stdout=subprocess.PIPE).stdout
    profile = json.loads(out)
    for kind in 'mappings', 'functions', 'locations':
        profile[kind] = {int(row['id']): row for row in profile[kind]}
    check_pprof(profile)
    return profile


def check_pprof(profile):
    """What readers check (CheckValid of go's pprof): no id is 0 or there twice,
    each id that is named exists, each sample has a value of each type."""
    assert profile['first'] == '', profile['first']
    assert [tuple(t) for t in profile['types']] == \
        [(name, unit) for name, unit, _ in TYPES], profile['types']
    for kind in 'mappings', 'functions', 'locations':
        assert 0 not in profile[kind]
    for row in profile['locations'].values():
        mapping = profile['mappings'][int(row['mapping'])]
        assert int(mapping['start']) <= int(row['address']) < \
            int(mapping['limit']), (row, mapping)
        assert mapping['functions'] and mapping['file'], mapping
        assert len(row['functions']) == 1, row
        profile['functions'][int(row['functions'][0])]
    for sample in profile['samples']:
        assert len(sample['values']) == len(TYPES), sample
        assert sample['locations'], sample
        for location in sample['locations']:
            profile['locations'][int(location)]


def go_merges(paths, into):
    """Merge profiles by go tool pprof. Return the result, as read_pprof()."""
    subprocess.run(['go', 'tool', 'pprof', '-proto', '-output', into, *paths],
                   check=True, timeout=120, stdout=subprocess.DEVNULL,
                   stderr=subprocess.PIPE)
    return read_pprof(into)


def go_total(path, kind):
    """The total of a sample type, as go tool pprof prints it."""
    out = subprocess.run(
        ['go', 'tool', 'pprof', '-top', '-unit=B', '-sample_index=' + kind,
         path], check=True, timeout=120, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE).stdout
    return int(re.search(r' of (\d+)B? total', out)[1])


def name_of(profile, location):
    row = profile['locations'][int(location)]
    return profile['functions'][int(row['functions'][0])]['name']


def pprof_sums(profile):
    """{names, leaf first: values}"""
    result = {}
    for sample in profile['samples']:
        stack = tuple(name_of(profile, i) for i in sample['locations'])
        values = [signed(v) for v in sample['values']]
        old = result.setdefault(stack, [0] * len(values))
        result[stack] = [a + b for a, b in zip(old, values)]
    return result


def pprof_of(rows, frames='function'):
    """What a profile has of the rows of ka top."""
    result = {}
    for row in rows:
        stack = tuple(exports.stack_names(row, frames))
        values = [row[field] for field in PPROF_FIELDS]
        if any(values):
            old = result.setdefault(stack, [0] * len(values))
            result[stack] = [a + b for a, b in zip(old, values)]
    return result


def places(profile):
    """What a reader merges locations by: the mapping (its size and its build
    or file), the distance to its start, and the function."""
    result = set()
    for row in profile['locations'].values():
        m = profile['mappings'][int(row['mapping'])]
        size = (int(m['limit']) - int(m['start']) + 0xfff) // 0x1000
        result.add((size, m['build'] or m['file'],
                    int(row['address']) - int(m['start']),
                    name_of(profile, row['id'])))
    return result


# --- heaptrack ---------------------------------------------------------------

def heaptrack_costs(path, kind):
    """{stack, root first: number} as heaptrack_print has them."""
    folded = path + '.' + kind
    subprocess.run(['heaptrack_print', '-f', path, '-F', folded,
                    '--flamegraph-cost-type', kind], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    result = {}
    with open(folded, encoding='utf-8') as f:
        for line in f:
            stack, number = line.rstrip('\n').rsplit(' ', 1)
            stack = tuple(stack.rstrip(';').split(';'))
            result[stack] = result.get(stack, 0) + int(number)
    return {stack: n for stack, n in result.items() if n}


def heaptrack_of(rows, field):
    """What heaptrack_print has of the rows of ka top."""
    result = {}
    for row in rows:
        stack = tuple(reversed(exports.stack_names(row)))
        result[stack] = result.get(stack, 0) + row[field]
    return {stack: n for stack, n in result.items() if n}


# --- OpenMetrics -------------------------------------------------------------

METRICS = {'ka_live_bytes': 'live', 'ka_live_requested_bytes': 'live_asked',
           'ka_live_blocks': 'blocks', 'ka_allocations_total': 'allocs',
           'ka_allocated_bytes_total': 'reserved', 'ka_frees_total': 'frees',
           'ka_freed_bytes_total': 'freed_reserved'}


def openmetrics_parser():
    """The strict parser of prometheus_client, or None."""
    try:
        # pylint: disable-next=import-outside-toplevel,import-error
        from prometheus_client.openmetrics import parser
    except ImportError:
        return None
    return parser.text_string_to_metric_families


def read_openmetrics(data):
    """{name: {value of the first label: number}}"""
    result = {}
    for family in openmetrics_parser()(data.decode('ascii')):
        for sample in family.samples:
            values = result.setdefault(sample.name, {})
            label = '\n'.join(sample.labels.values())
            assert label not in values, sample
            values[label] = sample.value
    return result


# --- SQLite ------------------------------------------------------------------

SQLITE_FIELDS = ('live', 'blocks', 'slack', 'peak', 'allocs', 'asked', 'frees',
                 'freed', 'cross', 'life', 'oldest', 'live_asked', 'reserved',
                 'freed_reserved')


def open_sqlite(path):
    """A database that was checked. Use it with `with`."""
    db = sqlite3.connect(path)
    assert db.execute('PRAGMA integrity_check').fetchall() == [('ok',)]
    assert not db.execute('PRAGMA foreign_key_check').fetchall()
    return contextlib.closing(db)


# --- Chrome's JSON -----------------------------------------------------------

COUNTERS, POINTS = 40, 2000
ALL, CACHES, MODULES = 1, 2, 3
KINDS = {'missing', 'recording', 'gap', 'module', 'mark', 'error'}
# The members of an event, and of its args, by phase. "?" may be missing.
COMMON = {'ph': str, 'pid': int, 'tid': int, 'ts': int, 'name': str}
SCHEMA = {'M': {'args': {'name': str}},
          'C': {'args': {'live': int}},
          'i': {'s': str, 'cat': str, '?args': {'?id': int, '?live': int}},
          'X': {'dur': int, 'cat': str,
                'args': {'unloaded': bool, 'loaded_earlier': bool}}}
FILE = {'displayTimeUnit': str, 'otherData': {
    'source': str, 'live': str, 'kernel': str, 'complete': bool,
    'missing': int, 'corrected': int, 'left_out': int, 'notes': list},
        'traceEvents': list}


def check_members(o, schema, where):
    """All members are there, of the right type, and no other ones."""
    keys = {k.lstrip('?') for k in schema}
    assert set(o) <= keys, (where, o)
    for key, kind in schema.items():
        name = key.lstrip('?')
        if name not in o:
            assert key != name, (where, name)
        elif isinstance(kind, dict):
            check_members(o[name], kind, where)
        else:
            # isinstance() takes true for a number
            assert type(o[name]) is kind, (where, name, o[name])


def once(pairs):
    assert len({k for k, _ in pairs}) == len(pairs), pairs
    return dict(pairs)


def check_lanes(events):
    """What overlaps is not in one thread."""
    ends = {}
    for e in events:
        if e['ph'] == 'X':
            lane = (e['pid'], e['tid'])
            assert ends.get(lane, 0) <= e['ts'], e
            ends[lane] = e['ts'] + e['dur']


def read_chrome(data):
    """(otherData, events) of a timeline; both were checked."""
    text = data.decode('ascii')
    whole = json.loads(text, object_pairs_hook=once)
    check_members(whole, FILE, 'file')
    events = whole['traceEvents']
    assert text.count('\n') == len(events) + 2, 'one line an event'
    before = 0
    for e in events:
        schema = COMMON | SCHEMA[e['ph']]
        check_members(e, schema, e)
        assert e['pid'] in (ALL, CACHES, MODULES), e
        assert e['ts'] >= before, e
        before = e['ts']
        assert e.get('s', 'g') == 'g' and e.get('cat', 'gap') in KINDS, e
        assert e['ph'] != 'X' or e['dur'] >= 0, e
    check_lanes(events)
    named = {(e['pid'], e['tid']) for e in events if e['ph'] == 'M'}
    assert {(e['pid'], e['tid']) for e in events} <= named
    return whole['otherData'], events


def counters(events):
    """{(pid, name): its points, as (us, bytes)}"""
    result = {}
    for e in events:
        if e['ph'] == 'C':
            points = result.setdefault((e['pid'], e['name']), [])
            points.append((e['ts'], e['args']['live']))
    assert len(result) <= COUNTERS, len(result)
    assert all(len(points) <= POINTS for points in result.values())
    return result


def instants(events, kind):
    """The events of a kind, as (us, name)"""
    return [(e['ts'], e['name']) for e in events
            if e['ph'] == 'i' and e['cat'] == kind]
