#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Each call of watched functions is recorded with its task, arguments, result
and caller. Oracle: the guest's own probes at the entry and at the return of the
same functions (kprobes and kretprobes; see inside/calls.sh for riscv64).

usage: test_calls.py [--short] [--kernel K]... [--smp N]...

Compared are the tasks that live within the window of the guest's trace: those
that the workload starts. For each of them the sequence of calls must be the
same on both sides: 0 missing, 0 extra.
"""
import json
import os
import re
import tempfile
from collections import Counter, defaultdict, namedtuple

from lib import oracle, programs
from lib.tap import Tap
from scripts.lib.guest import Guest
from scripts.lib.prepared import kernel_arch

# Functions of KEDR's sets and others, by the names of several kernels.
FUNCTIONS = '''
__kmalloc __kmalloc_noprof __kmalloc_node_noprof kmalloc_trace
__kmalloc_cache_noprof kfree krealloc krealloc_noprof kvfree kfree_sensitive
kmem_cache_alloc kmem_cache_alloc_noprof kmem_cache_free
kmem_cache_alloc_lru_noprof kmem_cache_alloc_node_noprof vmalloc_noprof vfree
__alloc_pages __alloc_pages_noprof __free_pages free_pages get_free_pages_noprof
kstrdup kstrdup_const kmemdup kmemdup_noprof memdup_user strndup_user
kasprintf kvasprintf
mutex_lock mutex_unlock mutex_trylock mutex_lock_interruptible
mutex_lock_killable down_read up_read down_write up_write
_copy_from_user _copy_to_user copy_from_kernel_nofault strncpy_from_user
capable ns_capable schedule_timeout io_schedule __wake_up
prepare_to_wait finish_wait add_wait_queue remove_wait_queue
vfs_read vfs_write vfs_open do_filp_open filp_close path_openat dput
'''.split()
ARGS = {'x86_64': 'di si dx cx r8 r9', 'aarch64': 'x0 x1 x2 x3 x4 x5',
        'riscv64': 'a0 a1 a2 a3 a4 a5'}

Call = namedtuple('Call', 'function args ret caller')
LINE = re.compile(r'\s*(?P<comm>.{1,16})-(?P<pid>\d+)\s+\[(?P<cpu>\d+)\]\s+\S+'
                  r'\s+(?P<s>\d+)\.(?P<us>\d+): (?P<kind>[er])_(?P<f>\w+): '
                  r'(?P<rest>.*)')
CALLER = re.compile(r'\((?P<caller>\S+?)(?:/0x[0-9a-f]+)?(?: \[(?P<mod>\w+)\])?'
                    r' <- ')
ARG = re.compile(r'a\d=0x([0-9a-f]+)')
PROBED = re.compile(r'^p:ka/e_(\w+)', re.M)
RET = re.compile(r'ret=0x([0-9a-f]+)')
# Without kretprobes: the return address and the stack pointer of a call.
FRAME = re.compile(r' ra=(0x[0-9a-f]+) sp=(0x[0-9a-f]+)')
SP = re.compile(r' sp=(0x[0-9a-f]+)')


def read(path):
    with open(path, encoding='utf-8', errors='replace') as f:
        return f.read()


def result_of(text):
    """Return the result, None for a void function."""
    m = RET.search(text)
    return int(m[1], 16) if m else None


def drop_stale(stack, f, frame):
    """Remove calls whose return was not seen: F uses their place on the
    stack. Return their number."""
    keep = [c for c in stack if c[2][1] != frame[2] or
            c[2][0] == frame[1] and c[0] != f]
    n = len(stack) - len(keep)
    stack[:] = keep
    return n


def their_returns(m, stack, calls):
    """Finish the calls of one task that return with the event M. Those that
    wait are in STACK, with their index in CALLS."""
    sp = SP.search(m['rest'])
    if sp:      # the address that is returned to is probed
        at = [i for i, (_, _, frame) in enumerate(stack)
              if frame == ('0x' + m['f'], sp[1])]
    else:
        at = [i for i, (name, _, _) in enumerate(stack) if name == m['f']][-1:]
    for i in reversed(at):
        _, index, frame = stack.pop(i)
        calls[index] = calls[index]._replace(ret=result_of(m['rest']))
        if not frame:
            c = CALLER.search(m['rest'])
            calls[index] = calls[index]._replace(
                caller=None if c['caller'].startswith('[unknown')
                else c['caller'])


def their_calls(text):
    """Return ({pid: [Call]} in the order of entries, {pid: number of calls
    whose return is not in the trace})."""
    calls, open_calls = defaultdict(list), defaultdict(list)
    unfinished = Counter()
    for line in text.splitlines():
        m = LINE.fullmatch(line)
        if not m:
            continue
        pid, f = int(m['pid']), m['f']
        if m['kind'] == 'e':
            args = tuple(int(a, 16) for a in ARG.findall(m['rest']))
            frame = FRAME.search(m['rest'])
            if frame:
                unfinished[pid] += drop_stale(open_calls[pid], f, frame)
            calls[pid].append(Call(f, args, None, frame and frame[1]))
            open_calls[pid].append((f, len(calls[pid]) - 1,
                                    frame and frame.groups()))
        else:
            their_returns(m, open_calls[pid], calls[pid])
    for pid, stack in open_calls.items():
        unfinished[pid] += len(stack)
    return calls, unfinished


def our_calls(text, addresses):
    """The same of `ka calls -j -s`, and the set of pids of kworkers, which live
    longer than the window. ADDRESSES: callers are compared by address, not by
    name."""
    calls, workers = defaultdict(list), set()
    for line in text.splitlines():
        row = json.loads(line)
        if row['type'] != 'call':
            continue
        args = tuple(int(a, 16) for a in row['regs'])
        ret = int(row['ret'], 16) if row['returned'] == 'yes' else None
        calls[row['pid']].append(
            Call(row['function'], args, ret, row['caller']
                 if addresses or gone(row['caller_symbol'])
                 else row['caller_symbol']))
        if row['comm'].startswith('kworker'):
            workers.add(row['pid'])
    return calls, workers


def outside(base, workers):
    """Return pids that do not live within the window: of WORKERS and of
    ka-perf."""
    perf = os.path.join(base, 'perf')
    return workers | ({int(read(perf))} if os.path.exists(perf) else set())


def gone(name):
    """The guest names no function of a module that it has unloaded: compare
    addresses."""
    return name.endswith(']')


def key(call, n, callers):
    """What must be equal of a call: N arguments, and the caller if it is known
    (CALLERS)."""
    return (call.function, call.args[:n], call.ret,
            call.caller if callers else None)


def take(ours, theirs, n, callers):
    """Remove from both lists the calls that are equal; the order of entries
    differs if an interrupt comes between a function's entry and its probe."""
    have = defaultdict(list)
    for c in ours:
        have[key(c, n, callers)].append(c)
    left = []
    for c in theirs:
        same = (callers and c.caller is None) or have.get(key(c, n, callers))
        if same and not (callers and c.caller is None):
            same.pop()
        else:
            left.append(c)
    return [c for cs in have.values() for c in cs], left


def compare_function(ours, theirs):
    """The same for the calls of one function in one task. Our records have
    only the registers of its arguments; the guest has no result of a void
    function, or of a call whose return it did not see."""
    n = min((len(c.args) for c in ours), default=0)
    ours, theirs = take(ours, theirs, n, True)
    if any(c.ret is None for c in theirs):
        known = [c for c in theirs if c.ret is not None]
        ours = [c._replace(ret=None) for c in ours]
        ours, theirs = take(ours, [c for c in theirs if c.ret is None], n, True)
        theirs += known
    return take(ours, theirs, n, False) if \
        any(c.caller is None for c in theirs) else (ours, theirs)


def by_function(calls):
    found = defaultdict(list)
    for c in calls:
        found[c.function].append(c)
    return found


def compare(ours, theirs):
    """Return (compared, [missing], [extra])."""
    n, missing, extra = 0, [], []
    for pid, calls in theirs.items():
        mine, others = by_function(ours.get(pid, [])), by_function(calls)
        n += len(calls)
        for f in {*mine, *others}:
            more, less = compare_function(mine[f], others[f])
            extra += more
            missing += less
    return n, missing, extra


def watched(guest, functions):
    """Watch those functions that the kernel has; return their names."""
    names = set(guest.shell(
        'cut -d" " -f3 /proc/kallsyms | sort | uniq -u').split())
    found = [f for f in functions if f in names]
    answer = guest.hmp_qmp('ka calls add ' + ','.join(found))
    assert answer.startswith('request '), answer
    return found


def test_condition(tap, guest, label):
    """A condition with an argument by name, the task, the stack, the result and
    the number of the call selects the calls that it should."""
    guest.shell('true')         # the kernel is found when a shell runs
    with tap.test(f'{label}: a condition selects two of three reads'):
        answer = guest.hmp_qmp(
            "ka calls add vfs_read --if 'count == 4242 && task(\"dd\") && "
            "stack(ksys_read) && !irq && ret == count && n != 2'")
        assert 'is watched' in answer, answer
        guest.shell('dd if=/dev/zero of=/dev/null bs=4242 count=3')
        rows = [json.loads(line) for line in
                guest.hmp_qmp('ka calls -j -n 0').splitlines()]
        assert [r['ret'] for r in rows] == [hex(4242)] * 2, rows
        assert not any('stack' in r for r in rows), rows
        assert guest.stat().get('calls.undecided', 0) == 0
        guest.hmp_qmp('ka calls del all')
        guest.hmp_qmp('ka calls clear')


def test(tap, kernel, smp, label, n, tmp):
    share = os.path.join(tmp, f'{kernel}-{smp}')
    oracle.make_share(share, ['calls.sh'], kernel, modules=True)
    out = os.path.join(tmp, f'out-{kernel}-{smp}')
    with Guest(kernel=kernel, smp=smp, share=share, out=out, mem='2G',
               timeout=900, end='shell', name=f'calls-{kernel}-{smp}',
               cmdline='no_hash_pointers', plugin_opts='calls=512M') as g:
        test_condition(tap, g, label)
        functions = watched(g, FUNCTIONS)
        g.shell('printf "%s\\n" ' + ' '.join(functions) + ' >/share/functions')
        regs = ARGS[kernel_arch(kernel)]
        g.shell(f'sh /share/calls.sh {n} {regs}')
        g.qmp('stop')
        text = g.hmp_qmp('ka calls -j -s -n 0')
        stat = g.stat()
        g.collect()
        base = os.path.join(out, 'share', 'out')
        trace = read(os.path.join(base, 'trace'))
        theirs, unfinished = their_calls(trace)
        ours, workers = our_calls(text, FRAME.search(trace))
        misses = [x.split() for x in
                  read(os.path.join(base, 'profile')).splitlines()]
        missed = {m[0]: int(m[2]) for m in misses if int(m[2])}
        script = int(read(os.path.join(base, 'pid')))
        theirs = {p: c for p, c in theirs.items()
                  if p > script and p not in outside(base, workers)}
        probed = set(PROBED.findall(read(os.path.join(base, 'events'))))
        ours = {p: [c for c in cs if c.function in probed]
                for p, cs in ours.items()}
        compared, missing, extra = compare(ours, theirs)
        results = sum(c.ret is not None for cs in theirs.values() for c in cs)
        kinds = Counter(c.function for cs in theirs.values() for c in cs)
        with tap.test(f'{label}: {compared} calls of {len(kinds)} functions in '
                      f'{len(theirs)} tasks, {results} results, '
                      f'{sum(unfinished[p] for p in theirs)} unfinished'):
            assert stat.get('calls.dropped', 0) == 0, stat
            assert compared > 1000, f'only {compared} calls'
            # A probe is not hit while another one is handled on that vCPU.
            more = Counter(c.function for c in extra) - Counter(
                {f.removeprefix('e_'): n for f, n in missed.items()})
            extra = [c for c in extra if c.function in more]
            assert not missing and not extra, \
                (f'{missing[:3]} missing of {len(missing)}, '
                 f'{extra[:3]} extra, {dict(more)}, missed {missed}')


def main():
    ap = programs.arguments(__doc__, short='6.12 on 1 vCPU only')
    args, tap = programs.parse(ap), Tap()
    with tempfile.TemporaryDirectory(prefix='ka-calls.') as tmp:
        programs.run_over(
            tap, args.kernel, args.smp, lambda tap, kernel, smp, label:
            test(tap, kernel, smp, label, 1 if args.short else 20, tmp),
            test=None)
    tap.done()


if __name__ == '__main__':
    main()
