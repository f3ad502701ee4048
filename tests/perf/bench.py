#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Measure the tracer; called by scripts/bench. One line a metric."""
import argparse
import json
import math
import mmap
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'guest'))

from lib import ksyms, oracle               # noqa: E402
from scripts.lib.guest import Guest         # noqa: E402
from scripts.lib.prepared import paths      # noqa: E402
from scripts.lib.qmp import GuestError      # noqa: E402

Metric = namedtuple('Metric', 'name unit group help')
METRICS = [Metric(*row) for row in (
    ('overhead.boot_workload', 'ratio', 'boot',
     'CPU time of boot and workload, of 20 s at least without ka: with ka / '
     'patched QEMU without it'),
    ('overhead.boot_workload_wall', 'ratio', 'boot',
     'the same by the wall clock'),
    ('event.count', 'events', 'boot',
     'slab and vmalloc events of that boot and workload'),
    ('event.mean_ns', 'ns', 'boot',
     'host time per event with its backtrace that the guest waits for, '
     'measured inside the tracer'),
    ('event.apply_ns', 'ns', 'boot',
     'CPU time per event of applying it to the map, on another thread'),
    ('against.boot_workload', 'ratio', 'against',
     'CPU time of that boot and workload: this tracer / that of --against'),
    ('against.event_mean', 'ratio', 'against',
     'event.mean_ns: this tracer / that of --against'),
    ('access.boot_workload', 'ratio', 'access',
     'CPU time of that boot and workload: with access=on / without'),
    ('access.one_cache', 'ratio', 'access',
     'the same with access=cache:dentry'),
    ('access.one_module', 'ratio', 'access',
     'the same with access=module:NAME, of a module that is loaded first'),
    ('access.boot_dense', 'ratio', 'access',
     'the same with access=on, of a workload that does next to nothing but '
     'make events'),
    ('access.traffic', 'ratio', 'access',
     'the same with access=on, of files in the page cache and data over the '
     'loopback device'),
    ('kasan.ka', 'ratio', 'kasan',
     'CPU time of boot and workload: with ka and access=on / patched QEMU '
     'without ka'),
    ('kasan.kasan', 'ratio', 'kasan',
     'without ka: the kernel kasan-6.12 / the same without KASAN, nobtf-6.12'),
    ('overhead.boot_dense', 'ratio', 'dense',
     'CPU time of that workload: with ka / patched QEMU without it'),
    ('overhead.journal', 'ratio', 'journal',
     'CPU time of that: with ka and its journal / patched QEMU without it'),
    ('journal.bytes_per_event', 'bytes', 'journal',
     'size of that journal by its events, symbols and all included'),
    ('journal.pack_ns', 'ns', 'journal',
     'CPU time per event of packing and writing it, on another thread'),
    ('overhead.patched_no_plugin', 'ratio', 'patched',
     'CPU time of boot and workload: patched QEMU without ka / stock QEMU'),
    ('overhead.alloc_storm', 'ratio', 'storm',
     'CPU time of a module that only calls kmalloc and kfree, of 64, 1000 and '
     '8192 bytes, which the kernel clears: with / without'),
    ('overhead.alloc_storm_64', 'ratio', 'storm',
     "the same of 64 bytes, by the guest's clock: next to nothing but events"),
    ('storm.ns_per_pair', 'ns', 'storm',
     'guest time of one kmalloc and kfree with ka, mean over the sizes'),
    ('log.line_ns', 'ns', 'log',
     "host time per line of the kernel's log that the guest waits for, with "
     'its writer and stack, measured inside the tracer'),
    ('call.ns', 'ns', 'calls',
     'CPU time per monitored call, for its entry and its return'),
    ('call.stack_ns', 'ns', 'calls', 'the same with its stack (--stack)'),
    ('call.rule_ns', 'ns', 'calls',
     'CPU time per call of a function with a fault rule that never matches'),
    ('scale.bytes_per_live_block', 'bytes', 'scale',
     'host memory for a live block, 10 million of them'),
    ('scale.bytes_per_history_row', 'bytes', 'scale',
     'host memory for a past life, 10 million of them'),
    ('scale.events_per_s', 'events/s', 'scale',
     'synthetic events applied on one core'),
    ('scale.show_us', 'us', 'scale', 'ka show among 10 million blocks'),
    ('scale.range_ms', 'ms', 'scale',
     'ka <va>-<va> of 4 KiB there, without its output'),
    ('scale.alloc_pc_ms', 'ms', 'scale', 'ka alloc <pc>, without its output'),
    ('leak.scan_gib_per_s', 'GiB/s', 'leak',
     'ka leak scan of 1 GiB after that workload: memory of the guest'),
    ('leak.scan_read_gib_per_s', 'GiB/s', 'leak',
     'the same: memory that is really read'),
    ('refs.ms', 'ms', 'leak', 'ka refs there, host time'),
    ('leak.list_gib_per_s', 'GiB/s', 'marks',
     'a scan of synthetic blocks of 256 bytes, a million that one after the '
     'other leads to'),
    ('leak.sparse_gib_per_s', 'GiB/s', 'marks',
     'the same of a tree of them: two words of 32 are pointers'),
    ('leak.eighth_gib_per_s', 'GiB/s', 'marks',
     'the same, and each eighth word leads to any one of them'),
    ('leak.dense_gib_per_s', 'GiB/s', 'marks', 'the same, each word does'),
    ('leak.list_bytes_per_block', 'bytes', 'marks',
     'host memory that a scan takes for a block, without what is known of it'),
    ('hit.tcg_ns', 'ns', 'hit',
     'median of what a call or return of an allocator costs, with a backtrace '
     'of 16 frames, after the guest has used 1 MiB: the callback of TCG'),
    ('hit.kvm_ns', 'ns', 'hit',
     "the same with KVM, between two entries of the guest: the callback and "
     "QEMU's code for breakpoints. No KVM is needed; the exit is not measured"),
    ('hit.tcg_cached_ns', 'ns', 'hit',
     'mean of the first, with all in the caches'),
    ('hit.kvm_cached_ns', 'ns', 'hit', 'the same with KVM'),
    ('peer.gdb_events_per_s', 'events/s', 'peer',
     'a gdb breakpoint on kfree with a backtrace of 10 frames'),
    ('peer.ka_events_per_s', 'events/s', 'peer',
     'ka on the same guest and workload, all allocators, whole backtraces'),
)]
# About 800,000 slab events with the boot.
ROUNDS = 24
STORM_PAIRS = 1000000
TRAFFIC_ROUNDS = 40
LOG_LINES = 20000
# Calls of write_null(), one for each byte that is copied.
CALLS = 1000000
COPY_BYTES = 'dd if=/dev/zero of=/dev/null bs=1 count=%d 2>/dev/null'
CALL_METRICS = (
    ('call.ns', 'ka calls add write_null', 'ka calls del all'),
    ('call.stack_ns', 'ka calls add write_null --stack', 'ka calls del all'),
    ('call.rule_ns', "ka fault add write_null --if 'count > 4k'",
     'ka fault del all'),
)
# The tracer measures one callback in so many: COST_PERIOD of capture.c.
COST_PERIOD = 64
GDB_SECONDS = 15
# Of boot and workload without ka; a try tells what to add for it.
BOOT_SECONDS = 20
SUMS_TRIED = 4
# Of the two runs of a pair, and more.
WARM_BYTES = 2 << 30
# Roles of the hook table whose return is seen too.
RETURNS = 'ALLOC', 'ALLOC_BULK', 'REALLOC', 'MODULE_ADD', 'LOG'

Sample = namedtuple('Sample', 'cpu wall events mean_ns apply_ns pack_ns '
                    'console')


# --- one run -----------------------------------------------------------------

def mean_event_ns(numbers):
    """Host time by event: the mean callback times the callbacks by event. An
    allocation has two, at entry and at return."""
    calls = numbers.get('cost.sampled_calls')
    if not calls:
        return None
    roles, hits = ksyms.HookTable().roles, numbers['hits']
    callbacks = sum(hits.values()) + numbers.get('return.foreign', 0) + sum(
        n for name, n in hits.items() if roles.get(name) in RETURNS)
    return numbers['cost.sampled_ns'] / calls * callbacks / \
        numbers['events.checked']


def apply_event_ns(numbers):
    return numbers.get('cost.apply_ns', 0) / numbers['events.checked']


def measure(since, with_ka, **how):
    """CPU and wall time from SINCE ('start' or a console marker) to the end
    of the workload."""
    with Guest(plugin=with_ka, timeout=900, name='bench', **how) as g:
        cpu = wall = 0
        if since == 'start':
            wall = g.started
        else:
            g.wait_marker(since)
            cpu, wall = g.cpu_seconds(), time.monotonic()
        status = g.wait_done()
        cpu = g.cpu_seconds() - cpu
        wall = time.monotonic() - wall
        if status:
            raise GuestError(f'workload status {status}')
        numbers = g.stat() if with_ka else {}
        mean = mean_event_ns(numbers) if with_ka else None
        apply = apply_event_ns(numbers) if with_ka else None
        pack = numbers.get('cost.journal_ns', 0) / \
            numbers['events.checked'] if with_ka else None
        return Sample(cpu, wall, numbers.get('events.checked'),
                      mean, apply, pack, g.console)


def on_cpu(cpu, run):
    """RUN, and the processes that it starts, on that CPU."""
    os.sched_setaffinity(0, {cpu})      # of this thread
    return run()


def side_by_side(run_a, run_b, swap):
    """Both at once, each on a CPU of its own: what else the machine, or the
    host of this virtual machine, does then slows both alike."""
    cpus = sorted(os.sched_getaffinity(0))[:2]
    with ThreadPoolExecutor(2) as pool:
        a = pool.submit(on_cpu, cpus[swap], run_a)
        b = pool.submit(on_cpu, cpus[not swap], run_b)
        return a.result(), b.result()


def one_after_the_other(run_a, run_b, swap):
    if swap:
        b, a = run_b(), run_a()
    else:
        a, b = run_a(), run_b()
    return a, b


def warm_memory():
    """A virtual machine has memory that its host has yet to find: the first
    touch of a page then takes 12 us here, and less than one else. Touched
    and given back, it is what the next processes get."""
    pages = os.sysconf('SC_AVPHYS_PAGES')
    with mmap.mmap(-1, min(WARM_BYTES, pages // 2 * mmap.PAGESIZE),
                   flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS |
                   mmap.MAP_POPULATE):
        pass


def pairs(count, run_a, run_b, what):
    """[(a, b)] of COUNT pairs, side by side where there are two CPUs, with
    the CPUs changed (or else the order) from pair to pair. One run before
    them warms the machine's caches and is not counted; its memory is warmed
    before each."""
    pair = side_by_side if len(os.sched_getaffinity(0)) > 1 else \
        one_after_the_other
    run_b()
    found = []
    for i in range(count):
        warm_memory()
        a, b = pair(run_a, run_b, i % 2)
        found.append((a, b))
        print(f'# {what} pair {i + 1}: cpu {a.cpu:.2f} s / {b.cpu:.2f} s = '
              f'{a.cpu / b.cpu:.4f}, wall {a.wall:.2f} s / {b.wall:.2f} s',
              flush=True)
    return found


def ratio(found, field):
    return statistics.median(getattr(a, field) / getattr(b, field)
                             for a, b in found)


# --- groups: each returns ({metric: value}, [raw samples]) -------------------

def raw(found):
    return [[s._replace(console='')._asdict() for s in pair]
            for pair in found]


def sums_for(args):
    """How many sums of files a round make boot and workload last so long: a
    fast machine is through with the events of it in half the time."""
    def seconds(sums):
        return measure('start', False, kernel=args.kernel, run='sums',
                       n=f'{ROUNDS}:{sums}').cpu

    least = seconds(0)
    each = (seconds(SUMS_TRIED) - least) / SUMS_TRIED
    sums = max(0, math.ceil((BOOT_SECONDS - least) / each))
    print(f'# boot and workload: {least:.2f} s, and {sums} sums of files a '
          f'round, {each:.2f} s each of them', flush=True)
    return sums


def group_boot(args):
    how = {'kernel': args.kernel, 'run': 'sums',
           'n': f'{ROUNDS}:{sums_for(args)}'}
    found = pairs(args.pairs, lambda: measure('start', True, **how),
                  lambda: measure('start', False, **how), 'boot and workload')
    events = statistics.median(a.events for a, _ in found)
    mean = statistics.median(a.mean_ns for a, _ in found)
    apply = statistics.median(a.apply_ns for a, _ in found)
    return {'overhead.boot_workload': ratio(found, 'cpu'),
            'overhead.boot_workload_wall': ratio(found, 'wall'),
            'event.count': events, 'event.mean_ns': mean,
            'event.apply_ns': apply}, raw(found)


def group_against(args):
    how = {'kernel': args.kernel, 'run': 'sums',
           'n': f'{ROUNDS}:{sums_for(args)}'}
    other = os.path.abspath(args.against)
    found = pairs(args.pairs, lambda: measure('start', True, **how),
                  lambda: measure('start', True, build=other, **how),
                  'this and the other tracer')
    for i, (a, b) in enumerate(found, 1):
        print(f'# pair {i}: event {a.mean_ns:.1f} ns / {b.mean_ns:.1f} ns = '
              f'{a.mean_ns / b.mean_ns:.4f}')
    return {'against.boot_workload': ratio(found, 'cpu'),
            'against.event_mean': ratio(found, 'mean_ns')}, raw(found)


def one_module(args, work):
    with tempfile.TemporaryDirectory(prefix='ka-bench.') as tmp:
        share = oracle.make_share(tmp, [os.path.join(HERE, 'module.sh')],
                                  args.kernel, modules=True)
        how = {**work, 'run': 'module', 'share': share}
        return pairs(args.pairs,
                     lambda: measure('start', True,
                                     plugin_opts='access=module:ka_life',
                                     **how),
                     lambda: measure('start', True, **how),
                     'access.one_module')


def traffic(args):
    with tempfile.TemporaryDirectory(prefix='ka-bench.') as tmp:
        how = {'kernel': args.kernel, 'run': 'traffic', 'n': TRAFFIC_ROUNDS,
               'share': oracle.make_share(
                   tmp, [os.path.join(HERE, 'traffic.sh')], args.kernel)}
        return pairs(args.pairs,
                     lambda: measure('start', True, plugin_opts='access=on',
                                     **how),
                     lambda: measure('start', True, **how), 'access.traffic')


def group_access(args):
    work = {'kernel': args.kernel, 'run': 'sums',
            'n': f'{ROUNDS}:{sums_for(args)}'}
    dense = {'kernel': args.kernel, 'run': 'work', 'n': ROUNDS}
    values, samples = {}, []
    for name, option, how in (
            ('access.boot_workload', 'access=on', work),
            ('access.one_cache', 'access=cache:dentry', work),
            ('access.boot_dense', 'access=on', dense)):
        found = pairs(args.pairs,
                      lambda: measure('start', True, plugin_opts=option, **how),
                      lambda: measure('start', True, **how), name)
        values[name] = ratio(found, 'cpu')
        samples += raw(found)
    for name, run in (('access.one_module', one_module(args, work)),
                      ('access.traffic', traffic(args))):
        values[name] = ratio(run, 'cpu')
        samples += raw(run)
    return values, samples


def group_kasan(args):
    """What each of the two costs on the kernel that it is made for."""
    def one(kernel, with_ka, opts=None):
        return measure('start', with_ka, kernel=kernel, run='work', n=ROUNDS,
                       plugin_opts=opts)

    ka = pairs(args.pairs, lambda: one(args.kernel, True, 'access=on'),
               lambda: one(args.kernel, False), 'access=on and plain')
    kasan = pairs(args.pairs, lambda: one('kasan-6.12', False),
                  lambda: one('nobtf-6.12', False), 'KASAN and plain')
    return {'kasan.ka': ratio(ka, 'cpu'),
            'kasan.kasan': ratio(kasan, 'cpu')}, \
        raw(ka) + raw(kasan)


def group_dense(args):
    how = {'kernel': args.kernel, 'run': 'work', 'n': ROUNDS}
    found = pairs(args.pairs, lambda: measure('start', True, **how),
                  lambda: measure('start', False, **how), 'dense')
    return {'overhead.boot_dense': ratio(found, 'cpu')}, raw(found)


def measure_journal(how, path, sizes):
    with tempfile.TemporaryDirectory(prefix='ka-bench.', dir=path) as tmp:
        journal = os.path.join(tmp, 'journal')
        sample = measure('start', True, journal=journal, **how)
        sizes.append(os.path.getsize(journal) / sample.events)
        return sample


def group_journal(args):
    how = {'kernel': args.kernel, 'run': 'work', 'n': ROUNDS}
    sizes = []
    found = pairs(args.pairs, lambda: measure_journal(how, None, sizes),
                  lambda: measure('start', False, **how), 'with a journal')
    return {'overhead.journal': ratio(found, 'cpu'),
            'journal.bytes_per_event': statistics.median(sizes),
            'journal.pack_ns': statistics.median(
                a.pack_ns for a, _ in found)}, raw(found)


def group_patched(args):
    how = {'kernel': args.kernel, 'run': 'work', 'n': ROUNDS}
    found = pairs(args.pairs, lambda: measure('start', False, **how),
                  lambda: measure('start', False, stock=True, **how),
                  'patched and stock')
    return {'overhead.patched_no_plugin': ratio(found, 'cpu')}, raw(found)


def storm_ns(sample):
    """{size: guest time of a pair}"""
    return {int(size): int(ns) for size, ns in re.findall(
        r'size=(\d+) pairs=\d+ ns_per_pair=(\d+)', sample.console)}


def group_storm(args):
    with tempfile.TemporaryDirectory(prefix='ka-bench.') as tmp:
        share = oracle.make_share(tmp, [os.path.join(HERE, 'storm.sh')],
                                  args.kernel, modules=True)
        how = {'kernel': args.kernel, 'run': 'storm', 'n': STORM_PAIRS,
               'share': share}
        found = pairs(args.pairs, lambda: measure('KA-READY', True, **how),
                      lambda: measure('KA-READY', False, **how), 'storm')
    ns = [(storm_ns(a), storm_ns(b)) for a, b in found]
    for a, b in ns:
        print('# guest time of a pair: ' + ', '.join(
            f'{size} bytes {a[size]} ns / {b[size]} ns' for size in a))
    return {'overhead.alloc_storm': ratio(found, 'cpu'),
            'overhead.alloc_storm_64': statistics.median(
                a[64] / b[64] for a, b in ns),
            'storm.ns_per_pair': statistics.median(
                statistics.mean(a.values()) for a, _ in ns)}, raw(found)


def group_log(args):
    """Recording is off, so that nearly all callbacks are those of lines. What
    else is measured, returns of allocations, counts for the lines."""
    print_lines = (f'(i=0; while [ $i -lt {LOG_LINES} ]; do echo line $i >&3; '
                   'i=$((i + 1)); done) 3>/dev/kmsg')
    with Guest(kernel=args.kernel, end='shell', name='bench',
               cmdline='printk.devkmsg=on loglevel=1') as g:
        g.shell('true')
        g.hmp_qmp('ka off')
        before = g.stat()
        g.shell(print_lines, timeout=300)
        after = g.stat()
    lines = after['log.lines'] - before['log.lines']
    ns = after['cost.sampled_ns'] - before['cost.sampled_ns']
    if lines != LOG_LINES:
        raise GuestError(f'{lines} lines of {LOG_LINES} were read')
    return {'log.line_ns': ns * COST_PERIOD / lines}, [before, after]


def copy_seconds(guest, before):
    """Run the command BEFORE of ka; return the CPU time of the calls after it.
    QEMU translates all code anew then: so there are some calls that are not
    measured."""
    guest.hmp_qmp(before)
    guest.shell(COPY_BYTES % (CALLS // 20))
    entered, since = guest.stat()['calls.entered'], guest.cpu_seconds()
    guest.shell(COPY_BYTES % CALLS, timeout=300)
    seconds = guest.cpu_seconds() - since
    entered = guest.stat()['calls.entered'] - entered
    if entered and abs(entered - CALLS) > CALLS // 1000:
        raise GuestError(f'{entered} calls of {CALLS} were seen')
    return seconds


def call_pairs(args, guest, metric, add, remove):
    """Return CPU time in ns per call, with and without, and the samples."""
    found = []
    for i in range(args.pairs):
        commands = (add, remove) if i % 2 == 0 else (remove, add)
        seconds = {c: copy_seconds(guest, c) for c in commands}
        a, b = seconds[add], seconds[remove]
        found.append((a, b))
        print(f'# {metric} pair {i + 1}: {a:.2f} s / {b:.2f} s = '
              f'{(a - b) / CALLS * 1e9:.0f} ns a call', flush=True)
    return statistics.median(a - b for a, b in found) / CALLS * 1e9, found


def group_calls(args):
    """One guest, in which a program makes the same calls again and again: with
    a point or a rule, and with nothing set."""
    values, samples = {}, []
    with Guest(kernel=args.kernel, end='shell', name='bench') as g:
        g.shell('true')
        for metric, add, remove in CALL_METRICS:
            values[metric], found = call_pairs(args, g, metric, add, remove)
            samples.append([metric, found])
    return values, samples


def program_lines(name, prefix):
    """Programs of tests/perf print the lines themselves."""
    program = os.path.join(paths()['build'], 'tests', 'perf', name)
    out = subprocess.run([program], check=True, text=True,
                         capture_output=True).stdout
    values = {}
    for line in out.splitlines():
        words = line.split()
        if len(words) >= 2 and words[0].startswith(prefix):
            values[words[0]] = float(words[1])
        else:
            print('# ' + line)
    return values, out.splitlines()


def group_scale(_args):
    return program_lines('bench-model', 'scale.')


def group_hit(_args):
    return program_lines('bench-hit', 'hit.')


def group_marks(_args):
    return program_lines('bench-leak', 'leak.')


def last_row(guest, line):
    """The figures that end what a command prints."""
    row = json.loads(guest.hmp_qmp(line).splitlines()[-1])
    if 'host_us' not in row:
        raise GuestError(f'{line}: {row}')
    return row


def group_leak(args):
    """Each of them several times on one guest, which stands still."""
    with Guest(kernel=args.kernel, run='work', n=ROUNDS, end='shell',
               timeout=900, name='bench-leak') as g:
        if g.wait_done():
            raise GuestError('the workload failed')
        g.qmp('stop')
        scans = [last_row(g, 'ka leak scan -j') for _ in range(args.pairs)]
        refs = [last_row(g, 'ka refs init_task -j') for _ in range(args.pairs)]

    def rate(key):
        return statistics.median(s[key] / 2**30 / (s['host_us'] / 1e6)
                                 for s in scans)
    print(f'# {scans[0]["blocks"]} blocks, {scans[0]["read_bytes"] >> 20} MiB '
          'read')
    return {'leak.scan_gib_per_s': rate('guest_bytes'),
            'leak.scan_read_gib_per_s': rate('read_bytes'),
            'refs.ms': statistics.median(r['host_us'] for r in refs) / 1000,
            }, scans + refs


def gdb_rate(args, share):
    """Hits a second of a breakpoint tracer on a guest under load."""
    with Guest(kernel=args.kernel, plugin=False, kaslr=False, run='peer',
               n=1000, share=share, timeout=300, name='bench-gdb') as g:
        line = g.wait_marker('KA-KFREE')
        text = g.gdb([f'set $ka_kfree = 0x{line.split()[1]}',
                      f'set $ka_seconds = {GDB_SECONDS}',
                      'source ' + os.path.join(HERE, 'gdbpeer.py')],
                     timeout=GDB_SECONDS + 60)
    m = re.search(r'^peer (\d+) ([\d.]+)$', text, re.M)
    if not m:
        raise GuestError('gdb as a tracer said:\n' + text)
    return int(m.group(1)) / float(m.group(2))


def ka_rate(args, share):
    """Events a second that the tracer records of the same workload."""
    with Guest(kernel=args.kernel, kaslr=False, run='peer', n=1000,
               share=share, timeout=300, name='bench-ka') as g:
        g.wait_marker('KA-KFREE')
        before, begin = g.stat()['events.checked'], time.monotonic()
        time.sleep(GDB_SECONDS)
        after, end = g.stat()['events.checked'], time.monotonic()
    return (after - before) / (end - begin)


def group_peer(args):
    with tempfile.TemporaryDirectory(prefix='ka-bench.') as tmp:
        share = oracle.make_share(tmp, [os.path.join(HERE, 'peer.sh')])
        values = {'peer.gdb_events_per_s': gdb_rate(args, share),
                  'peer.ka_events_per_s': ka_rate(args, share)}
    return values, []


GROUPS = {'boot': group_boot, 'against': group_against,
          'access': group_access, 'kasan': group_kasan, 'dense': group_dense,
          'journal': group_journal,
          'patched': group_patched, 'storm': group_storm, 'log': group_log,
          'calls': group_calls,
          'scale': group_scale, 'leak': group_leak,
          'hit': group_hit, 'marks': group_marks, 'peer': group_peer}


# --- main --------------------------------------------------------------------

def chosen(words):
    rows = [m for m in METRICS
            if not words or any(m.name.startswith(w) for w in words)]
    for word in words:
        if not any(m.name.startswith(word) for m in METRICS):
            sys.exit(f"scripts/bench: no metric '{word}' (--list shows them)")
    return rows


def number(value):
    if isinstance(value, float):
        return f'{value:.4f}' if value < 100 else f'{value:.1f}'
    return str(value)


def run_groups(args, wanted):
    """({metric: {value, unit}}, {group: samples}, all well)"""
    results, samples, well = {}, {}, True
    for group in dict.fromkeys(m.group for m in wanted):
        try:
            values, samples[group] = GROUPS[group](args)
        except (GuestError, OSError, KeyError,
                subprocess.SubprocessError) as e:
            print(f'scripts/bench: {group}: {e}', file=sys.stderr)
            well = False
            continue
        for m in (m for m in wanted if m.group == group):
            if values.get(m.name) is None:
                print(f'scripts/bench: {m.name}: no value', file=sys.stderr)
                well = False
                continue
            print(m.name, number(values[m.name]), m.unit, flush=True)
            results[m.name] = {'value': values[m.name], 'unit': m.unit}
    return results, samples, well


def is_wanted(args, metric):
    """Some need what only those have who ask for them."""
    return bool({'against': args.against,
                 'kasan': args.name}.get(metric.group, True))


def main():
    ap = argparse.ArgumentParser(prog='scripts/bench', description=__doc__)
    ap.add_argument('name', nargs='*')
    ap.add_argument('--json')
    ap.add_argument('--pairs', type=int, default=10)
    ap.add_argument('--kernel', default='6.12')
    ap.add_argument('--against')
    ap.add_argument('--list', action='store_true')
    args = ap.parse_args()
    if args.pairs < 1:
        sys.exit('scripts/bench: --pairs: at least 1')
    wanted = [m for m in chosen(args.name)
              if args.list or is_wanted(args, m)]
    if args.against and not os.path.exists(
            os.path.join(args.against, 'libka.so')):
        sys.exit(f'scripts/bench: --against {args.against}: a build folder '
                 'with libka.so is needed')
    if args.list:
        for m in wanted:
            print(f'{m.name:30} {m.unit:10} {m.help}')
        return
    results, samples, well = run_groups(args, wanted)
    if args.json:
        with open(args.json, 'w', encoding='utf-8') as f:
            json.dump({'schema': 1, 'pairs': args.pairs,
                       'kernel': args.kernel, 'cpus': os.cpu_count(),
                       'metrics': results, 'samples': samples}, f, indent=1)
            f.write('\n')
    sys.exit(0 if well else 1)


if __name__ == '__main__':
    main()
