#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`ka task`, `ka files` and `ka mod` say the same as the guest of its tasks,
their open files, and modules.

Oracle: /proc of the guest, read before and after the VM stands: a task that did
not run in between has the same facts in both, and ka must have them, too. Tasks
that only one of the readings has may have begun or ended. Open files are those
of /proc/*/fd and fdinfo, modules those of /proc/modules and /sys/kernel/btf.
With DWARF (dwarf-6.12) also drgn's walk of the tasks in a dump of the standing
VM.

Without types (nobtf-6.12) pid, name and what a task allocated are right, and
ka says what it does not know.

usage: test_tasks.py [--short] [--kernel K]...
"""
import json
import os
import shutil
import tempfile
from collections import Counter, defaultdict, namedtuple

from lib import ksyms, oracle, programs
from lib.tap import Tap
from lib.vmcore import add_note
from scripts.lib.guest import Guest
from scripts.lib.prepared import kernel_file

try:
    import drgn
    from drgn.helpers.linux.fs import for_each_file
    from drgn.helpers.linux.pid import for_each_task
except ImportError:
    drgn = None

KERNELS = ('6.12', '5.10', '6.1', '6.18', '7.3', 'arm64-6.12', 'riscv64-6.12',
           'nobtf-6.12', 'dwarf-6.12')
SMP = 2
LISTER = 'ka-tasks'
MADE = {'ka-user', 'ka-parent', 'ka-zombie', 'ka-stopped', 'ka-files',
        'ka\x07\xff\\odd', 'ka thread 1', 'ka-thread-2', 'fifteen-letters'}
# Modules with users, loaded in this order; the last one is unloaded.
MODULES = 'dm_crypt', 'raid1', 'vfat', 'dummy'
OWN = 'ka_life'
File = namedtuple('File', 'flags ino path')
Module = namedtuple('Module', 'size refs users state code')
Task = namedtuple('Task', 'tgid pid ppid state cpu uid ran vm start comm')


# --- the guest's answers -----------------------------------------------------

def text_of(word):
    return bytes.fromhex(word.strip('-')).decode('latin-1')


class Listing:
    """What ka-tasks printed: tasks by pid, files by process and fd, modules by
    name."""

    def __init__(self, text):
        self.tasks, self.files, self.modules = {}, defaultdict(dict), {}
        for line in text.splitlines():
            words = line.split()
            if words[:1] == ['T'] and len(words) == 11:
                task = Task(*map(int, words[1:4]), words[4],
                            *map(int, words[5:10]), text_of(words[10]))
                self.tasks[task.pid] = task
            elif words[:1] == ['F'] and len(words) == 6:
                self.files[int(words[1])][int(words[2])] = \
                    File(int(words[3], 8), int(words[4]), text_of(words[5]))
            elif words[:1] == ['M']:
                self._add_module(*words[1:7])

    def _add_module(self, name, size, refs, users, state, code):
        used = {u for u in users.split(',') if u and u[0] not in '-['}
        self.modules[name] = Module(int(size), int(refs), used, state,
                                    int(code, 16))


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


# --- files -------------------------------------------------------------------

def files_of(guest, pid):
    """Return {fd: File} by ka, and the rows."""
    rows = [json.loads(line) for line in
            guest.hmp_qmp(f'ka files {pid} -j -v').splitlines()]
    found = [row for row in rows if row['type'] == 'file']
    assert all(row['whole'] == 'yes' for row in found), found
    return {row['fd']: File(row['flags'], row['ino'], row['path'])
            for row in found}, rows


def check_files(guest, reading):
    """Compare the open files of each process; return how many there are, by
    kind."""
    kinds, compared = Counter(), 0
    ours = {pid: files_of(guest, pid) for pid in reading.before.files
            if reading.before.tasks[pid].comm != LISTER}
    reading.go_on(guest)
    for pid, files in reading.before.files.items():
        if pid not in reading.stable or reading.after.files[pid] != files:
            continue            # it has changed, or is the reader
        got, rows = ours[pid]
        assert got == files, (pid, sorted(set(got.items()) ^
                                          set(files.items())))
        compared += len(files)
        kinds.update(row['kind'] for row in rows if row['type'] == 'file')
        check_blocks(rows)
    return compared, kinds


def check_blocks(rows):
    """Behind each file is its block, which is live."""
    for row, block in zip(rows[::2], rows[1::2]):
        assert (row['type'], block['type']) == ('file', 'block'), (row, block)
        assert block['va'] == row['va'] and block['state'] == 'A' and \
            block['cache'] in ('filp', 'bfilp'), (row, block)


# --- modules -----------------------------------------------------------------

def add_modules(share, kernel):
    """Add modules of the kernel to the share; a kernel that was built here has
    none, so it gets one of the tests'."""
    oracle.add_drivers(share, kernel, *MODULES)
    folder = os.path.join(share, 'modules')
    if not os.listdir(folder):
        shutil.copy(os.path.join(oracle.build_modules(kernel), OWN + '.ko'),
                    folder)


def load_modules(guest):
    """Load all of the share, and unload the last of MODULES. Return the names
    of modules that have BTF."""
    guest.shell('for m in /share/modules/*.ko; do insmod $m; done; '
                f'rmmod {MODULES[-1]}')
    return set(guest.shell('ls /sys/kernel/btf').split()) - {'vmlinux'}


def check_modules(guest, want, with_types):
    rows = [json.loads(line)
            for line in guest.hmp_qmp('ka mod -j -n 0').splitlines()]
    *rows, end = rows
    ours = {row['name']: row for row in rows}
    assert set(ours) == set(want) and end['modules'] == len(want), (rows, want)
    assert OWN in want or any(m.users for m in want.values()), want
    sums = defaultdict(lambda: [0, 0, 0])
    for line in guest.hmp_qmp('ka top --by module -n 0 -j').splitlines():
        row = json.loads(line)
        if row['type'] == 'top':
            sums[row['module']] = [row[k] for k in ('blocks', 'live', 'allocs')]
    for name, module in want.items():
        row = ours[name]
        users = set(row['users'].split(',')) - {'none'}
        assert Module(row['size'], row['refs'], users, row['state'],
                      int(row['code'], 16)) == module, (row, module)
        assert (row['types'] == 'yes') == (name in with_types), row
        assert row['where'] in ('both', None), row
        assert [row['blocks'], row['live'], row['allocs']] == sums[name], row
    return end


def check_one_module(guest, want):
    """The areas of a module are blocks; one that was unloaded is known."""
    name = max(want, key=lambda m: want[m].size)
    row, *areas = [json.loads(line) for line in
                   guest.hmp_qmp(f'ka mod {name} -j -v').splitlines()]
    assert row['name'] == name and areas, areas
    # Since 6.13 several modules share a large area for their code.
    assert int(row['code'], 16) in \
        [int(a['va'], 16) + a.get('offset', 0) for a in areas], (row, areas)
    for area in areas:
        assert area['type'] == 'block' and area['state'] == 'A' and \
            area['layer'] == 'vmalloc', area
    if name == OWN:
        return len(areas)
    gone, = [json.loads(line) for line in
             guest.hmp_qmp(f'ka mod {MODULES[-1]} -j').splitlines()]
    assert gone['state'] == 'unloaded' and gone['unloaded_us'], gone
    assert 'no module of this name' in guest.hmp_qmp('ka mod nonsense')
    return len(areas)


# --- drgn --------------------------------------------------------------------

def vmcoreinfo(kernel, symbols):
    """Return what drgn must know of a kernel whose dump has no such note,
    because it is built without CONFIG_VMCORE_INFO."""
    with open(kernel_file(kernel, 'System.map'), 'rb') as f:
        linked = ksyms.Symbols(f.read())
    slide = symbols['_text'] - linked.address('_text')
    root = symbols['init_top_pgt']
    lines = ('OSRELEASE=6.12', 'PAGESIZE=4096', f'KERNELOFFSET={slide:x}',
             f'SYMBOL(swapper_pg_dir)={root:x}', 'NUMBER(phys_base)=0',
             'NUMBER(pgtable_l5_enabled)=0')
    return '\n'.join(lines).encode() + b'\n'


def open_dump(kernel, guest, symbols):
    """Dump the VM, which stands, and return it as a program of drgn."""
    path = guest.path('core')
    guest.qmp('dump-guest-memory', paging=True, protocol='file:' + path)
    add_note(path, 'VMCOREINFO', vmcoreinfo(kernel, symbols))
    program = drgn.Program()
    program.set_core_dump(path)
    program.load_debug_info([kernel_file(kernel, 'vmlinux')])
    return program


def check_drgn(tap, kernel, guest, reading, symbols):
    """Compare with the kernel's own structures, as drgn walks them: tasks from
    the kernel's table of pids, and files."""
    theirs = {}
    program = open_dump(kernel, guest, symbols)
    theirs = {t.value_(): t for t in for_each_task(program)}
    ours = {int(row['va'], 16): row for row in reading.ours
            if row['where'] == 'both'}
    assert set(ours) == set(theirs), (set(ours) ^ set(theirs))
    files = 0
    for va, task in theirs.items():
        row = ours[va]
        want = [task.pid.value_(), task.tgid.value_(),
                task.real_parent.tgid.value_(), task.mm.value_(),
                task.real_cred.uid.val.value_(), task.files.value_(),
                task.comm.string_().decode('latin-1')]
        got = [row['pid'], row['tgid'], row['ppid'], int(row['mm'], 16),
               row['uid'], int(row['files'], 16), row['comm']]
        assert got == want, (got, want)
        if row['pid'] == row['tgid'] and task.files:
            _, rows = files_of(guest, row['pid'])
            got = {r['fd']: int(r['va'], 16) for r in rows
                   if r['type'] == 'file'}
            want = {fd: f.value_() for fd, f in for_each_file(task)}
            assert got == want, (row, got, want)
            files += len(want)
    tap.note(f'{kernel}: drgn has {len(theirs)} tasks and {files} files')


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


def check_names(reading):
    names = {t.comm for t in reading.stable.values()}
    assert MADE <= names, MADE - names


def check_typed(tap, kernel, guest, reading, symbols):
    with tap.test(f'{kernel}: one task and its objects'):
        caches = check_one(guest, reading)
        tap.note(', '.join(f'{o} of {c}' for o, c in sorted(caches)))
    with tap.test(f'{kernel}: tasks that run'):
        tap.note(f'{check_running(reading)} of {SMP} vCPUs')
    if drgn and symbols:
        with tap.test(f'{kernel}: drgn walks the same tasks and files'):
            check_drgn(tap, kernel, guest, reading, symbols)
    with tap.test(f'{kernel}: open files'):
        n, kinds = check_files(guest, reading)
        assert n > 30 and len(kinds) >= 5, kinds
        tap.note(f'{kernel}: {n} open files: {dict(kinds)}')
    with tap.test(f'{kernel}: tasks and their facts'):
        check_names(reading)
        n, idle = check_facts(reading)
        check_no_others(reading)
        tap.note(f'{kernel}: {n} tasks, {idle} of them did not run meanwhile: '
                 f'{reading.end["text"]}')


def check_untyped(tap, kernel, guest, reading, _):
    with tap.test(f'{kernel}: what is not known is said'):
        text = guest.hmp_qmp('ka files 1 -w')
        assert 'this kernel has no types' in text and \
            'ka --cache filp' in text, text
        row, end = [json.loads(line) for line in
                    guest.hmp_qmp('ka mod -j').splitlines()]
        assert row['name'] == OWN and row['size'] is None, row
        assert 'see types=FILE' in end['text'], end
        reading.go_on(guest)
        check_names(reading)
        n = check_without_types(reading)
        tap.note(f'{kernel}: {n} tasks have the right pid and name')


def check(tap, kernel, guest):
    with_types = load_modules(guest)
    symbols = {}
    if 'dwarf' in kernel:
        symbols = {n: guest.symbol(n) for n in ('_text', 'init_top_pgt')}
    guest.shell('/share/ka-tasks make')
    reading = Reading(guest)
    typed = reading.end['types'] != 'learned'
    with tap.test(f'{kernel}: what a task allocated'):
        check_sums(guest, reading)
    if typed:
        with tap.test(f'{kernel}: modules'):
            end = check_modules(guest, reading.before.modules, with_types)
            n = check_one_module(guest, reading.before.modules)
            tap.note(f'{kernel}: {end["text"]}; {n} areas')
    rest = check_typed if typed else check_untyped
    rest(tap, kernel, guest, reading, symbols)


def plugin_options(kernel):
    """A kernel that was built here has no types, but may have DWARF."""
    vmlinux = kernel_file(kernel, 'vmlinux')
    return f'types={vmlinux}' if os.path.exists(vmlinux) and \
        'dwarf' in kernel else None


def main():
    ap = programs.arguments(__doc__, short='6.12 only', smp=False)
    args, tap = programs.parse(ap, KERNELS), Tap()
    for kernel in args.kernel:
        with tap.test(f'{kernel}: runs and is read'), \
                tempfile.TemporaryDirectory(prefix='ka-tasks.') as tmp:
            share = os.path.join(tmp, 'share')
            os.mkdir(share)
            shutil.copy(oracle.build_tool('ka_tasks', kernel),
                        os.path.join(share, 'ka-tasks'))
            add_modules(share, kernel)
            with Guest(kernel=kernel, smp=SMP, share=share, end='shell',
                       plugin_opts=plugin_options(kernel), timeout=300,
                       name=f'tasks-{kernel}') as g:
                check(tap, kernel, g)
    tap.done()


if __name__ == '__main__':
    main()
