#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`ka task` says the same of the guest's tasks as the guest.

Oracle: /proc of the guest, read before and after the VM stands: a task that did
not run in between has the same facts in both, and ka must have them, too. Tasks
that only one of the readings has may have begun or ended. With DWARF
(dwarf-6.12) also drgn's walk of the tasks in a dump of the standing VM.

Without types (nobtf-6.12) pid, name and what a task allocated are right, and
ka says what it does not know.

usage: test_tasks.py [--short] [--kernel K]...
"""
import json
import os
import re
import shutil
import tempfile
from collections import Counter, defaultdict, namedtuple

from lib import oracle
from lib.programs import kernel_options
from lib.tap import Tap
from scripts.lib.guest import Guest
from scripts.lib.prepared import kernel_file

try:
    import drgn
    from drgn.helpers.linux.pid import for_each_task
except ImportError:
    drgn = None

KERNELS = ('6.12', '5.10', '6.1', '6.18', '7.3', 'arm64-6.12', 'riscv64-6.12',
           'nobtf-6.12', 'randstruct-6.12')
SMP = 2
LISTER = 'ka-tasks'
MADE = {'ka-user', 'ka-parent', 'ka-zombie', 'ka-stopped', 'ka-files',
        'ka\x07\xff\\odd', 'ka thread 1', 'ka-thread-2', 'fifteen-letters'}
Task = namedtuple('Task', 'tgid pid ppid state cpu uid ran vm start comm')


# --- the guest's answers -----------------------------------------------------

class Listing:
    """What ka-tasks printed: tasks by pid."""

    def __init__(self, text):
        self.tasks = {}
        for line in text.splitlines():
            words = line.split()
            if words[:1] == ['T'] and len(words) == 11:
                task = Task(*map(int, words[1:4]), words[4],
                            *map(int, words[5:10]),
                            bytes.fromhex(words[10].strip('-'))
                            .decode('latin-1'))
                self.tasks[task.pid] = task


def read_proc(guest):
    return Listing(guest.shell('/share/ka-tasks list'))


class Reading:
    """The guest's answers before and after the VM stood, and ka's meanwhile.
    The tasks that read /proc themselves are left out."""

    def __init__(self, guest):
        self.before = read_proc(guest)
        guest.qmp('stop')
        self.text = guest.hmp_qmp('ka task --threads -j -v -n 0')
        rows = [json.loads(line) for line in self.text.splitlines()]
        self.ours = [r for r in rows if r['type'] == 'task']
        self.end, = (r for r in rows if r['type'] == 'tasks')

    def go_on(self, guest):
        guest.qmp('cont')
        self.after = read_proc(guest)
        before, after = self.before.tasks, self.after.tasks
        self.stable = {pid: task for pid, task in before.items()
                       if pid in after and after[pid].start == task.start and
                       task.comm != LISTER}
        self.any = set(before) | set(after)

    def idle(self, pid):
        """Did the task not run while /proc was read?"""
        return self.before.tasks[pid] == self.after.tasks[pid]


# --- comparing ---------------------------------------------------------------

def right_name(ours, task):
    """The guest makes longer names of those of kernel threads."""
    ours = ours.strip('\0')
    if task.vm:
        return ours == task.comm
    return task.comm.startswith(ours.rstrip('-+')) or \
        ours.startswith(task.comm[:15])


def differences(ours, task, idle):
    """Return what is wrong in our row of a task."""
    want = {'tgid': task.tgid, 'ppid': task.ppid, 'uid': task.uid}
    if idle:
        want.update(state=task.state, cpu=task.cpu)
    wrong = [f'{key}: {ours[key]} is not {value}'
             for key, value in want.items() if ours[key] != value]
    if not right_name(ours['comm'], task):
        wrong.append(f'comm: {ours["comm"]!r} is not {task.comm!r}')
    if (ours['mm'] != '0x0') != bool(task.vm):
        wrong.append(f'mm: {ours["mm"]}, VmSize: {task.vm}')
    return wrong


def check_facts(reading):
    """Compare all tasks; return how many were compared, and how many in each
    fact."""
    ours = {row['pid']: row for row in reading.ours
            if row['pid'] and row['where'] in ('both', 'list')}
    bad, idle = [], 0
    for pid, task in reading.stable.items():
        assert pid in ours, f'{task} is missing'
        calm = reading.idle(pid)
        idle += calm
        bad += [f'{pid} {task.comm!r}: {wrong}'
                for wrong in differences(ours[pid], task, calm)]
    assert not bad, bad
    return len(reading.stable), idle


def check_no_others(reading):
    """What is in the kernel's list and not in /proc began or ended meanwhile:
    it runs, or is the reader of /proc. What is in no list has ended."""
    for row in reading.ours:
        if row['where'] == 'both':
            assert row['pid'] in reading.any or \
                int(row['pid']) > max(reading.before.tasks), row
        elif row['where'] == 'map':
            assert row['pid'] == 0 or row['state'] == 'X', row
        else:
            assert row['where'] == 'image' and row['pid'] == 0, row
    idle = [row for row in reading.ours if row['pid'] == 0]
    assert len(idle) == SMP, idle
    assert reading.end['only_list'] == 0, reading.end


def check_running(reading):
    """A vCPU runs one task; between two tasks it may be none that says so."""
    cpus = Counter(row['cpu'] for row in reading.ours
                   if row['running'] == 'yes')
    assert set(cpus) <= set(range(SMP)) and set(cpus.values()) <= {1, 2}, cpus
    return len(cpus)


def check_sums(guest, reading):
    """What a task allocated is what `ka top` counts for its pid."""
    sums = defaultdict(lambda: [0, 0, 0])
    for line in guest.hmp_qmp('ka top --by task -n 0 -j').splitlines():
        row = json.loads(line)
        if row.get('type') == 'top' and row['pid']:
            for i, key in enumerate(('blocks', 'live', 'allocs')):
                sums[row['pid']][i] += row[key]
    for row in reading.ours:
        if row['pid']:
            assert [row['blocks'], row['live'], row['allocs']] == \
                sums[row['pid']], (row, sums[row['pid']])


def check_one(guest, reading):
    """The objects of a task are live blocks that begin where it says."""
    by_name = {row['comm']: row for row in reading.ours}
    caches = Counter()
    for name in 'ka-user', 'ka-files', 'fifteen-letters':
        row = by_name[name]
        text = guest.hmp_qmp(f'ka task {row["pid"]} -j -v')
        task, *objects = map(json.loads, text.splitlines())
        assert task == row, (task, row)
        assert [o['object'] for o in objects] == \
            ['mm', 'files', 'fs', 'cred', 'signal', 'sighand', 'stack'], text
        for o in objects:
            assert o['type'] == 'block' and o['state'] == 'A', o
            assert o['va'] == row[o['object']], o
            caches[o['object'], o['cache']] += 1
        for word in name, row['va'], f'{int(row["va"], 16) + 64:x}':
            again = guest.hmp_qmp(f'ka task {word} -j -v').splitlines()
            assert json.loads(again[0]) == row, again
    # Threads share all but the stack with the first task of their process.
    odd = by_name['ka\x07\xff\\odd']
    text = guest.hmp_qmp(f'ka task {odd["pid"]} --threads -j -v')
    threads = [json.loads(line) for line in text.splitlines()][:-1]
    assert len(threads) == 4, text
    for key in 'mm', 'files', 'fs', 'signal', 'sighand', 'tgid':
        assert len({t[key] for t in threads}) == 1, (key, threads)
    assert len({t['stack'] for t in threads}) == 4
    return caches


# --- drgn --------------------------------------------------------------------

def check_drgn(tap, kernel, guest, reading):
    name = f'{kernel}: drgn walks the same tasks in a dump'
    vmlinux = kernel_file(kernel, 'vmlinux')
    if drgn is None or not os.path.exists(vmlinux) or 'dwarf' not in kernel:
        return
    with tap.test(name):
        path = guest.path('core')
        guest.qmp('dump-guest-memory', paging=False, protocol='file:' + path)
        program = drgn.Program()
        program.set_core_dump(path)
        program.load_debug_info([vmlinux])
        theirs = {t.value_(): t for t in for_each_task(program)}
        ours = {int(row['va'], 16): row for row in reading.ours
                if row['where'] == 'both'}
        assert set(ours) == set(theirs), (set(ours) ^ set(theirs))
        for va, task in theirs.items():
            row = ours[va]
            want = [task.pid.value_(), task.tgid.value_(),
                    task.real_parent.tgid.value_(), task.mm.value_(),
                    task.real_cred.uid.val.value_(),
                    task.comm.string_().decode('latin-1')]
            got = [row['pid'], row['tgid'], row['ppid'], int(row['mm'], 16),
                   row['uid'], row['comm']]
            assert got == want, (got, want)
        tap.note(f'{kernel}: {len(theirs)} tasks')


# --- one guest ---------------------------------------------------------------

def check_without_types(reading):
    """Without types pid and name are learned, and nothing else is said."""
    ours = {row['pid']: row for row in reading.ours}
    missing = [t for pid, t in reading.stable.items() if pid not in ours]
    assert not missing, missing
    for pid, task in reading.stable.items():
        assert right_name(ours[pid]['comm'], task), (ours[pid], task)
    for row in reading.ours:
        for key in 'tgid', 'ppid', 'state', 'cpu', 'uid', 'mm', 'where':
            assert row[key] is None, row
    assert reading.end['types'] == 'learned', reading.end
    assert 'this kernel has no types' in reading.end['text'], reading.end
    return len(reading.stable)


def check(tap, kernel, guest):
    guest.shell('/share/ka-tasks make')
    reading = Reading(guest)
    typed = reading.end['types'] != 'learned'
    with tap.test(f'{kernel}: what a task allocated'):
        check_sums(guest, reading)
    if typed:
        with tap.test(f'{kernel}: one task and its objects'):
            caches = check_one(guest, reading)
            tap.note(', '.join(f'{o} of {c}' for o, c in sorted(caches)))
        with tap.test(f'{kernel}: tasks that run'):
            tap.note(f'{check_running(reading)} of {SMP} vCPUs')
        check_drgn(tap, kernel, guest, reading)
    with tap.test(f'{kernel}: tasks and their facts'):
        reading.go_on(guest)
        names = {t.comm for t in reading.stable.values()}
        assert MADE <= names, MADE - names
        if not typed:
            n = check_without_types(reading)
            tap.note(f'{kernel}: {n} tasks have the right pid and name')
            return
        n, idle = check_facts(reading)
        check_no_others(reading)
        tap.note(f'{kernel}: {n} tasks, {idle} of them did not run meanwhile: '
                 f'{reading.end["text"]}')


def main():
    tap = Tap()
    for kernel in kernel_options(KERNELS):
        with tap.test(f'{kernel}: runs and is read'), \
                tempfile.TemporaryDirectory(prefix='ka-tasks.') as tmp:
            share = os.path.join(tmp, 'share')
            os.mkdir(share)
            shutil.copy(oracle.build_tool('ka_tasks', kernel),
                        os.path.join(share, 'ka-tasks'))
            with Guest(kernel=kernel, smp=SMP, share=share, end='shell',
                       timeout=300, name=f'tasks-{kernel}') as g:
                check(tap, kernel, g)
    tap.done()


if __name__ == '__main__':
    main()
