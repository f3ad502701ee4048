#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`ka bt TASK` prints the stack of each task of a stopped VM, running or
sleeping, and what it waits for.

Oracle: /proc/PID/stack of the guest, which its own unwinder writes, for all
tasks that did not run between two readings around the stop: functions, offsets
and order. The kernel leaves out its scheduler there (.sched.text), so these
frames are left out of ours. For locks: processes that the guest's shell makes
wait, in ways that say for what they wait.

usage: test_bt.py [--short] [--kernel K]...
"""
import json
import os
import re
import tempfile
from collections import Counter

from lib.programs import kernel_options
from lib.tap import Tap
from scripts.lib.guest import Guest

KERNELS = '6.12', 'arm64-6.12', '6.1', '6.18', '7.3', 'riscv64-6.12'
SMP = 2
# Two readers of one open /dev/kmsg: one waits for messages and holds the mutex
# for which the other one waits. A reader of a pipe; a shell that waits for a
# child; a task that runs.
MAKE = '''
exec 7</dev/kmsg
cat <&7 >/dev/null &
sleep 2
cat <&7 >/dev/null &
mkfifo /tmp/fifo
cat <>/tmp/fifo >/dev/null &
sh -c 'sleep 10000; true' &
sh -c 'while :; do :; done' &
sleep 2
'''
LIST = '''
for d in /proc/[0-9]*/task/[0-9]*; do
    echo "=T ${d##*/}"
    cat $d/stack
    grep ctxt $d/status
done 2>/dev/null
'''
FRAME = re.compile(r'\[<[0-9a-f]*>\] ([^+ ]+)\+(0x[0-9a-f]+)/0x[0-9a-f]+')


def read_stacks(guest):
    """Return {pid: (frames as "NAME+OFFSET", numbers of switches)}."""
    found = {}
    for part in guest.shell('sh /share/list').split('=T ')[1:]:
        pid = int(part.split(None, 1)[0])
        found[pid] = [f'{n}+{o}' for n, o in FRAME.findall(part)], \
            re.findall(r'ctxt\w*:\s*(\d+)', part)
    return found


def scheduler(guest):
    """Return [begin, end) of the scheduler's code."""
    return guest.symbol('__sched_text_start'), guest.symbol('__sched_text_end')


def stack_rows(guest, command):
    """Return {pid: row}, with the list of registers of its exceptions. Idle
    tasks have no pid of their own: they have their address."""
    rows = {}
    last = None
    for line in guest.hmp_qmp(command + ' -j').splitlines():
        row = json.loads(line)
        if row['type'] == 'task_stack':
            last = row
            last['saved'] = []
            rows[row['pid'] or row['va']] = row
        else:
            assert row['type'] == 'exception', row
            last['saved'].append(row)
    return rows


def plain(name):
    """Return a name of ka as the kernel's %pB prints it, without the module,
    the size, and the suffixes of copies."""
    return name.partition('[')[0]


def our_frames(row, sched):
    lo, hi = sched
    return [plain(name) for pc, name in zip(row['stack'], row['stack_symbols'])
            if not lo <= int(pc, 16) < hi]


def compare(before, after, rows, sched):
    """Compare all tasks that did not run in between; return how many, and a
    list of those that differ."""
    same, wrong = 0, []
    for pid, (frames, switches) in before.items():
        if after.get(pid) != (frames, switches) or pid not in rows or \
                'vcpu' in rows[pid] or not frames:
            continue
        ours = our_frames(rows[pid], sched)
        same += 1
        if ours != frames:
            wrong.append(f'{pid} {rows[pid]["comm"]}: guest {frames}, '
                         f'ka {ours}')
    return same, wrong


def check_waits(rows):
    """Return what tasks wait for."""
    kinds = Counter(r['waits_for'] for r in rows.values() if 'waits_for' in r)
    readers = [r for r in rows.values() if r['comm'] == 'cat']
    mutex = [r for r in readers if r.get('waits_for') == 'mutex']
    queue = [r for r in readers if r.get('waits_for') == 'wait queue']
    assert len(mutex) == 1 and len(queue) == 2, readers
    owner, = (r for r in rows.values() if r['va'] == mutex[0]['owner'])
    assert owner in queue and any('devkmsg_read' in n
                                  for n in owner['stack_symbols']), owner
    assert any('pipe_read' in ' '.join(r['stack_symbols']) for r in queue)
    waiting = [r for r in rows.values() if r['comm'] == 'sh' and
               any('do_wait' in n for n in r.get('stack_symbols', []))]
    assert waiting and all(r.get('waits_for') == 'wait queue'
                           for r in waiting), waiting
    return kinds


def check_registers(rows):
    """User processes that sleep have the registers of their system call, which
    are those of user code; kernel threads have none."""
    n = 0
    for row in rows.values():
        users = [s for s in row['saved'] if s['mode'] == 'user']
        assert len(users) == (row['stop'] == 'user' and bool(row['stack'])), row
        for saved in users:
            values = dict(r.split('=') for r in saved['registers'])
            pc = values.get('rip') or values.get('pc')
            sp = values.get('rsp') or values.get('sp')
            assert 0 < int(pc, 16) < 1 << 56 and 0 < int(sp, 16) < 1 << 56, row
            n += 1
    return n


def check_running(rows, n_vcpus):
    """Each vCPU executes one task, which is a busy one or an idle task."""
    on = [r for r in rows.values() if 'vcpu' in r]
    assert len({r['vcpu'] for r in on}) == len(on) <= n_vcpus, on
    assert any(r['comm'] == 'sh' for r in on), on
    return len(on)


def check_words(guest, rows):
    """One task by its pid, name and address is the same."""
    pid = 2
    row = rows[pid]
    want = guest.hmp_qmp(f'ka bt {pid}')
    assert want.startswith(f'task {pid} kthreadd '), want
    for word in row['comm'], row['va'][2:]:
        assert guest.hmp_qmp(f'ka bt {word}') == want, word
    assert '#0' in want, want


def check(tap, kernel, guest):
    guest.shell('sh /share/make')
    sched = scheduler(guest)
    before = read_stacks(guest)
    with tap.test(f'{kernel}: not while the VM runs'):
        assert 'the VM is running' in guest.hmp_qmp('ka bt 1')
    guest.qmp('stop')
    rows = stack_rows(guest, 'ka bt all')
    with tap.test(f'{kernel}: a task by pid, name and address'):
        check_words(guest, rows)
    guest.qmp('cont')
    after = read_stacks(guest)
    with tap.test(f'{kernel}: stacks are those of /proc/PID/stack'):
        same, wrong = compare(before, after, rows, sched)
        assert not wrong, '\n'.join(wrong)
        assert same > 30, (same, len(rows))
        tap.note(f'{kernel}: {same} of {len(rows)} tasks')
    with tap.test(f'{kernel}: locks and queues'):
        tap.note(f'{kernel}: {dict(check_waits(rows))}')
    with tap.test(f'{kernel}: registers of user code'):
        tap.note(f'{kernel}: {check_registers(rows)}')
    with tap.test(f'{kernel}: tasks that run'):
        tap.note(f'{kernel}: {check_running(rows, SMP)} of {SMP} vCPUs')


def main():
    tap = Tap()
    for kernel in kernel_options(KERNELS, short=2):
        with tap.test(f'{kernel}: runs and is read'), \
                tempfile.TemporaryDirectory(prefix='ka-bt.') as share:
            for name, text in (('make', MAKE), ('list', LIST)):
                with open(os.path.join(share, name), 'w',
                          encoding='ascii') as f:
                    f.write(text)
            with Guest(kernel=kernel, smp=SMP, end='shell', timeout=300,
                       share=share, name=f'bt-{kernel}') as g:
                check(tap, kernel, g)
    tap.done()


if __name__ == '__main__':
    main()
