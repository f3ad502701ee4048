#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""ka export openmetrics, read by the strict parser of prometheus_client: the
samples of each cache are what ka top --by cache has.

usage: test_openmetrics.py KA KA-JOURNAL
"""
import json
import shutil
import subprocess
import sys

import exports
import readers
from readers import read_openmetrics as read

P = exports.Program(*sys.argv[1:3])
def by_cache(journal):
    status, out, err = P.run('-f', journal, 'top', '--by', 'cache', '-j', '-n',
                             '0')
    assert status == 0, err
    return [json.loads(line) for line in out.splitlines()]


def samples_are_those_of_ka_top():
    for name in exports.cases():
        journal = P.case(name)
        everything, *rows = by_cache(journal)
        got = read(P.export(journal, 'openmetrics'))
        for metric, field in readers.METRICS.items():
            assert sum(got[metric].values()) == everything[field], metric
            assert len(got[metric]) == len(rows), (name, got[metric])
            assert sorted(got[metric].values()) == \
                sorted(row[field] for row in rows), (name, metric)


def caches_have_their_names():
    got = read(P.export(P.case('032-top'), 'openmetrics'))
    assert got['ka_live_bytes'] == {
        '[vmalloc]': 12288, '[pages]': 12288, 'kmalloc-128': 128,
        'kmalloc-64': 64, '[kmalloc]': 32}, got['ka_live_bytes']
    assert got['ka_missing'] == {'': 0}, got['ka_missing']


def what_is_missing_is_said():
    got = read(P.export(P.journal('alloc va=ffff888000001000 size=10 us=1\n'
                                  'gap\n'), 'openmetrics'))
    assert got['ka_missing'][''] >= 1, got['ka_missing']
    assert any('before tracing began' in note for note in got['ka_note_info'])


def filters_are_those_of_ka_top():
    got = read(P.export(P.case('032-top'), 'openmetrics', '--task', 'a b'))
    assert set(got['ka_live_bytes']) == {'kmalloc-64', 'kmalloc-128'}, got


def prometheus_reads_it():
    """Its format has no family whose name is not that of the samples, so it
    finds no help text of counters."""
    if not shutil.which('promtool'):
        return ' # SKIP no promtool: scripts/setup --only viewers'
    for journal in (P.journal(exports.hostile_script()),
                    *map(P.case, exports.cases())):
        done = subprocess.run(
            ['promtool', 'check', 'metrics'], check=False, timeout=60,
            input=P.export(journal, 'openmetrics'), stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
        others = [line for line in done.stdout.decode().splitlines()
                  if not line.endswith('_total no help text')]
        assert done.returncode in (0, 3) and not others, others
    return ''


def bad_lines_are_refused():
    for words in ('--base', '@3'), ('--value', 'live'), ('--frames', 'offset'):
        status, _, err = P.run('-f', P.case('032-top'), 'export',
                               'openmetrics', *words)
        assert status == 1 and f'omit {words[0]}' in err, err


if not readers.openmetrics_parser():
    print('1..0 # SKIP no reader: scripts/setup --only openmetrics')
    sys.exit(0)
sys.exit(exports.run_tests([
    samples_are_those_of_ka_top, caches_have_their_names,
    what_is_missing_is_said, filters_are_those_of_ka_top,
    prometheus_reads_it, bad_lines_are_refused]))
