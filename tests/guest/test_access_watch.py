#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""ka access watch records each access to one object, and no other. Oracle: the
module ka_watched, which says what its functions do: loads and stores, an atomic
operation, loops, memset() and memcpy(), in a timer, after the free, and by the
next owner. All other accesses must be the allocator's. The watch begins and
ends without a flush of QEMU's translated code. After it the VM runs the same
code without a record.

usage: test_access_watch.py [--short] [--kernel K]...
"""
import json
import os
import re
import tempfile
import time
from collections import namedtuple

from lib import oracle, programs
from lib.tap import Tap
from scripts.lib.guest import Guest
from scripts.lib.prepared import kernel_arch

KERNELS = ['6.12', '6.1', 'arm64-6.12', 'riscv64-6.12']
Access = namedtuple('Access', 'function rw offset size count')


def wait_for(guest, text):
    """Wait until the module has printed TEXT, and return the match: the console
    prints lines of the kernel's log later than those of the shell."""
    for _ in range(600):
        found = re.search(r'ka_watched: ' + text + r'\s*\n', guest.console)
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f'the module did not print {text}')


def truth_of(console):
    """What the module says that it did."""
    rows = re.findall(r'ka_watched: (watched_\w+) (r|w) (\d+) (\d+) (\d+)',
                      console)
    return [Access(f, rw, int(o), int(s), int(n)) for f, rw, o, s, n in rows]


def ask(guest, command):
    text = guest.hmp_qmp('ka ' + command)
    return [json.loads(line) for line in text.splitlines()]


def function_of(frame):
    return frame.partition('+')[0]


def access_of(row):
    """A record as the module describes it. Accesses of memset() and the like
    belong to the function that calls it, and are one."""
    frame = row['stack_symbols'][row['range']]
    return Access(function_of(frame), row['access'], row['offset'],
                  row['size'], 1 if row['range'] else row['count'])


def flushes(guest):
    """How often QEMU has dropped all translated code."""
    return int(re.search(r'TB flush count\s+(\d+)',
                         guest.hmp_qmp('info jit'))[1])


def join(accesses):
    """Add up accesses of one function to the same bytes: the compiler may have
    made more than one instruction of a loop."""
    out = []
    for a in accesses:
        if out and out[-1][:4] == a[:4]:
            a = a._replace(count=a.count + out.pop().count)
        out.append(a)
    return out


def check_watch(guest):
    """Watch the object, and compare the records with what the module says.
    Return the records."""
    guest.shell('insmod /share/ka_watched.ko')
    va = wait_for(guest, 'va=([0-9a-f]+)')[1]
    before = flushes(guest)
    block, begun = ask(guest, f'access watch {va} -j')
    assert (block['va'], begun['on'], begun['size']) == ('0x' + va, 1, 128), (
        block, begun)
    guest.shell('echo 1 >/sys/module/ka_watched/parameters/run')
    wait_for(guest, 'end')
    assert wait_for(guest, r'reused=(\d)')[1] == '1', 'another object'
    *rows, end = ask(guest, 'access watch -j -s')
    ours = [r for r in rows if not r['allocator']]
    said, truth = join(map(access_of, ours)), truth_of(guest.console)
    assert said == truth, '\n'.join(map(str, [*said, 'but', *truth]))
    assert end['accesses'] == sum(r['count'] for r in rows), end
    assert end['overwritten'] == 0, end
    assert flushes(guest) == before, 'code was translated anew'
    return rows


def check_allocator(rows):
    """The free and the allocation have stacks."""
    functions = {function_of(f) for r in rows if r['allocator']
                 for f in r['stack_symbols']}
    missing = {'watched_free', 'watched_again'} - functions
    assert not missing, (missing, functions)


def check_tasks(kernel, rows):
    """The shell made the accesses, by writing to the parameter. (The caller of
    a function without a frame is missing on arm64 and riscv64, on riscv64 the
    stack can end there.)"""
    ours = [r for r in rows if not r['allocator'] and
            'watched_timer' not in r['stack_symbols'][0]]
    assert len({(r['comm'], r['pid']) for r in ours}) == 1, ours
    for r in ours:
        assert r['us'] <= r['last_us'], r
        assert kernel_arch(kernel) == 'riscv64' or any(
            f.startswith('param_attr_store+')
            for f in r['stack_symbols']), r


def check_end(guest):
    """After the watch nothing is recorded."""
    before = flushes(guest)
    end, = ask(guest, 'access watch off -j')
    assert end['on'] == 0, end
    guest.shell('echo 1 >/sys/module/ka_watched/parameters/run')
    guest.shell('rmmod ka_watched')
    stat = guest.stat()
    assert stat['access.watched'] == end['accesses'], stat['access.watched']
    assert stat['access.watch_unknown'] == 0, stat['access.watch_unknown']
    assert ask(guest, 'access watch -j')[-1]['accesses'] == end['accesses']
    assert flushes(guest) == before, 'code was translated anew'


def check(tap, kernel, smp):
    """All tasks run on the first vCPU: an object that another one frees is not
    handed out next."""
    label = f'{kernel}, {smp} vCPU'
    with tempfile.TemporaryDirectory(prefix='ka-access-watch.') as tmp:
        share = oracle.make_share(os.path.join(tmp, 'share'), [], kernel,
                                  modules=True)
        with Guest(kernel=kernel, share=share, end='shell', mem='512M',
                   cmdline='no_hash_pointers isolcpus=1-3', timeout=600,
                   smp=smp, name=f'access-watch-{kernel}-{smp}') as g:
            rows = []
            with tap.test(f'{label}: records are what the module does'):
                rows = check_watch(g)
            with tap.test(f'{label}: the allocator is named'):
                check_allocator(rows)
            with tap.test(f'{label}: tasks and stacks'):
                check_tasks(kernel, rows)
            with tap.test(f'{label}: the end of the watch'):
                check_end(g)


def main():
    ap = programs.arguments(__doc__, short='6.12 only')
    args, tap = programs.parse(ap, kernels=KERNELS), Tap()
    for kernel in args.kernel:
        if oracle.can_build_modules(kernel):
            for smp in args.smp:
                check(tap, kernel, smp)
        else:
            tap.skip(f'{kernel}: ka access watch', 'no headers or compiler')
    tap.done()


if __name__ == '__main__':
    main()
