#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Rules of `ka fault` make exactly those calls fail that they are about, and
modules with known errors break as their table says. Oracle: the module
kf_calls says of each call whether it failed; the guest's kernel says what
became of the modules kf_*.

usage: test_faults.py [--short] [--kernel K]... [--smp N]... [--case NAME]...
"""
import difflib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

from lib import fault_random, oracle, programs
from lib.tap import Tap
from scripts.lib.guest import Guest, GuestPanic
from scripts.lib.prepared import paths

MODULES = ('calls', 'name', 'loop', 'null', 'swallow', 'errptr', 'double',
           'put', 'good', 'retry', 'late')

WORDS = 'no_hash_pointers'


class World:
    """A guest with a shell, and its rules. What runs in the background is no
    child of the shell: the end of a child can end a shell that reads."""

    def __init__(self, guest):
        self.guest = guest

    def rows(self, line):
        text = self.guest.hmp_qmp('ka fault ' + line + ' -j')
        return [json.loads(row) for row in text.splitlines()]

    def add(self, what):
        row = self.rows('add ' + what)[0]
        assert row.get('type') == 'fault_added', row
        return row['rule']

    def refused(self, what):
        row = self.rows('add ' + what)[0]
        assert 'fail' in row, row
        return row['fail']

    def rule(self, number):
        return next(r for r in self.rows('list') if r['rule'] == number)

    def log(self, number):
        return [r for r in self.rows('log -n 0 -s') if r.get('rule') == number]

    def clear(self):
        self.rows('del all')

    def calls(self, what, a=0, b=0, n=10, command='{}'):
        """Make calls in the guest; return the letters, one for each."""
        line = command.format(f"echo '{what} {a} {b} {n}' >/proc/kf_calls")
        text = self.guest.shell(f'dmesg -c >/dev/null; {line}; dmesg')
        found = re.search(rf'kf_calls: {what} ([.F]+)', text)
        assert found, text
        return found[1]

    def dmesg(self, command):
        """Run a command; return the kernel's lines, also if it panics."""
        try:
            return self.guest.shell(f'dmesg -c >/dev/null; {command}; dmesg')
        except GuestPanic:
            return self.guest.hmp_qmp('ka log -n 200')


def check_rule(w, what, pattern, *args, expect=None, **words):
    """Add a rule, make calls, and compare: the calls that failed, those that
    ka counted, and those of the log."""
    number = w.add(what)
    got = w.calls(*args, **words)
    rule, log = w.rule(number), w.log(number)
    w.clear()
    assert got == pattern, f'{what}: {got}, not {pattern}'
    want = pattern.count('F') if expect is None else expect
    assert rule['done'] == want, f'{what}: {rule}'
    assert len(log) == want, f'{what}: {len(log)} lines'
    return log


# --- the expressions of KEDR's manual ----------------------------------------

ALL, NONE = 'F' * 10, '.' * 10
OURS = '--module kf_calls'


def every_call(w):
    for log in check_rule(w, f'kmalloc {OURS}', ALL, 'kmalloc', 320):
        assert log['function'] and log['size'] == 320, log
        assert 'kf_calls' in log['frames'], log


def not_in_init(w):
    number = w.add(f"kmalloc {OURS} --if '!in_init'")
    text = w.dmesg('rmmod kf_calls; insmod /share/kf_calls.ko')
    again = w.calls('kmalloc', 320)
    done = w.rule(number)['done']
    w.clear()
    assert re.search(r'kf_calls: exit FFFFF', text), text
    assert re.search(r'kf_calls: init \.\.\.\.\.', text), text
    assert again == ALL and done == 15, f'{again} {done}'
    number = w.add(f"kmalloc {OURS} --if in_init")
    text = w.dmesg('rmmod kf_calls; insmod /share/kf_calls.ko')
    w.clear()
    assert re.search(r'kf_calls: exit \.\.\.\.\.', text), text
    assert re.search(r'kf_calls: init FFFFF', text), text


def percent(w):
    """The seed, the stack and the number of the call say which calls fail."""
    for name, limit in ('rnd100', 20), ('rnd10000', 4000):
        for seed in 1, 1, 2, 2**64 - 1:
            w.rows(f'seed {seed}')
            number = w.add(f"kmalloc {OURS} --if '{name} < {limit}'")
            got = w.calls('kmalloc', 320, n=200)
            stack, = {row['stackid'] for row in w.log(number)}
            w.clear()
            want = ''.join('F' if fault_random.below(
                seed, stack, n, int(name[3:])) < limit else '.'
                for n in range(1, 201))
            assert got == want, f'{name}, seed {seed}: {got}, not {want}'


def address_range(w):
    """Outside of the addresses of one function."""
    text = w.guest.shell("grep 'call_kmalloc.*kf_calls' /proc/kallsyms")
    start = int(re.search(r'([0-9a-f]{16}) t call_kmalloc', text)[1], 16)
    what = f"kmalloc {OURS} --if 'caller_address < {start:#x} || " \
        f"caller_address > {start + 0x40:#x}'"
    check_rule(w, what, NONE, 'kmalloc', 320)
    check_rule(w, what, ALL, 'other', 320)


def by_caller(w):
    for what in 'caller(call_other)', 'stack(call_other)':
        check_rule(w, f"kmalloc --if '{what}'", NONE, 'kmalloc', 320)
        check_rule(w, f"kmalloc --if '{what}'", ALL, 'other', 320)
    what = 'stack("mod:kf_calls") && size == 320'
    check_rule(w, f"kmalloc --if '{what}'", ALL, 'kmalloc', 320)


def first_call(w):
    check_rule(w, f"kmalloc {OURS} --if 'times = 1'", 'F' + '.' * 9,
               'kmalloc', 320)
    check_rule(w, f'kmalloc {OURS} --times 1', 'F' + '.' * 9, 'kmalloc', 320)


def every_third(w):
    check_rule(w, f"kmalloc {OURS} --if 'times % 3 = 0'", '..F..F..F.',
               'kmalloc', 320)
    check_rule(w, f"kmalloc {OURS} --if 'n % 3 == 0'", '..F..F..F.',
               'kmalloc', 320)


def children(w):
    """Descendants of a shell that sleeps now and makes its calls later; calls
    of other tasks do not count."""
    w.guest.shell('(sleep 100000 & echo $! >/tmp/other); '
                  'mkfifo /tmp/go /tmp/done; '
                  'sh -c \'while read x; do sh -c "$x"; echo k >/tmp/done;'
                  'done\' <>/tmp/go & echo $! >/tmp/pid')
    pid = int(w.guest.shell('cat /tmp/pid').split()[-1])
    inside = '({}) 2>&1'
    through = "cat >/tmp/run <<'KF'\n{}\nKF\necho 'sh /tmp/run' >/tmp/go; " \
        'read x </tmp/done'
    for what in (f"kmalloc {OURS} --if 'child({pid})'",
                 f'kmalloc {OURS} --task {pid}'):
        number = w.add(what)
        assert w.calls('kmalloc', 320, command=inside) == NONE, what
        assert w.calls('kmalloc', 320, command=through) == ALL, what
        assert w.rule(number)['done'] == 10, w.rule(number)
        w.clear()
    other = int(w.guest.shell('cat /tmp/other').split()[-1])
    check_rule(w, f"kmalloc {OURS} --if 'child({other})'", NONE, 'kmalloc', 320)


def size_and_flags(w):
    what = "size > 100 && (flags & GFP_KERNEL) == GFP_KERNEL"
    check_rule(w, f"kmalloc {OURS} --if '{what}'", ALL, 'kmalloc', 320)
    check_rule(w, f"kmalloc {OURS} --if '{what}'", NONE, 'kmalloc', 96)
    check_rule(w, f"kmalloc {OURS} --if '{what}'", NONE, 'kmalloc', 320, 1)
    check_rule(w, f"kmalloc {OURS} --if 'flags == GFP_NOFS'", ALL, 'kmalloc',
               320, 1)


def admin(w):
    what = "capable --module kf_calls --if 'cap == CAP_SYS_ADMIN'"
    check_rule(w, what, ALL, 'capable', 21)
    check_rule(w, what, NONE, 'capable', 12)


# --- points, functions, refusals ---------------------------------------------

def points(w):
    for point, call, a in (('kmalloc', 'kvmalloc', 320), ('pages', 'pages', 1),
                           ('vmalloc', 'vmalloc', 8192),
                           ('percpu', 'percpu', 0),
                           ('mem_util', 'kstrdup', 0),
                           ('kmalloc', 'cache', 0)):
        check_rule(w, f'{point} {OURS}', ALL, call, a)
    check_rule(w, f"kmalloc {OURS} --if 'cache(\"kf_*\")'", ALL, 'cache')
    check_rule(w, f"kmalloc {OURS} --if 'cache(\"kf_*\")'", NONE, 'kmalloc', 8)


def copies(w):
    """The write that starts the calls copies once itself, and once more if that
    fails."""
    number = w.add(f'uaccess {OURS} --if stack(call_copy)')
    got = w.calls('copy')
    rule = w.rule(number)
    w.clear()
    assert got == ALL and rule['done'] == 10, f'{got} {rule}'


def functions(w):
    what = 'kf_calls:kf_errno --return -ENOMEM'
    for row in check_rule(w, what, ALL, 'errno'):
        assert row['value'] == '0xfffffffffffffff4', row
    check_rule(w, f"{what} --if 'arg0 == 5 && n > 5'", '.' * 5 + 'F' * 5,
               'errno', 5)


def sets(w):
    """A rule about a set of functions; those that only free are left out."""
    for what, call, a in (('@common_mm', 'kmalloc', 320),
                          ('@common_mm', 'cache', 0), ('@vmm', 'vmalloc', 8192),
                          ('@mem_util', 'kstrdup', 0),
                          ('@capable', 'capable', 21)):
        check_rule(w, f'{what} {OURS}', ALL, call, a)
    number = w.add(f'@common_mm {OURS}')
    rule = w.rule(number)
    assert rule['functions'] > 5 and rule['left_out'] > 3, rule


def outermost(w):
    """What an allocator allocates for itself does not fail: only kvmalloc() as
    a whole does."""
    rows = check_rule(w, "kmalloc --if 'stack(call_kvmalloc)'", ALL,
                      'kvmalloc', 3 * 4096)
    assert all('kvmalloc' in r['function'] for r in rows), rows
    check_rule(w, "pages --if 'stack(call_kmalloc)'", NONE, 'kmalloc', 320,
               n=200 and 10)


def nofail(w):
    number = w.add(f'kmalloc {OURS}')
    got = w.calls('nofail', 320)
    rule = w.rule(number)
    w.clear()
    assert got == NONE and rule['refused_nofail'] == 10, f'{got} {rule}'
    assert rule['done'] == 0, rule


def panics(w):
    """A cache with SLAB_PANIC is not made to fail: the kernel would panic, and
    not return."""
    text = w.guest.shell("grep -wE '__kmem_cache_create_args|kmem_cache_create'"
                         ' /proc/kallsyms')
    name = re.search(r' T (\w+)', text)[1]
    check_rule(w, f"{name} --if 'stack(call_create)'", ALL, 'create')
    number = w.add(f"{name} --if 'stack(call_create)'")
    got, rule = w.calls('create', 1), w.rule(number)
    w.clear()
    assert got == NONE and rule['refused_panics'] == 10, f'{got} {rule}'


def only_logged(w):
    number = w.add(f'kmalloc {OURS} --do log')
    assert w.calls('kmalloc', 320) == NONE
    assert len(w.log(number)) == 10
    stacks = [s for s in w.rows('stacks') if s['rule'] == number]
    w.clear()
    assert len(stacks) == 1 and stacks[0]['selected'] == 10, stacks


def repeats(w):
    """The command of each line of the log repeats that fault alone."""
    number = w.add(f"kmalloc {OURS} --if 'rnd100 < 30'")
    got = w.calls('kmalloc', 320, n=30)
    log = w.log(number)
    w.clear()
    assert len(log) == got.count('F') > 2, got
    for row in log[:3]:
        w.guest.hmp_qmp(row['command'])
        again = w.calls('kmalloc', 320, n=30)
        w.clear()
        want = '.' * (row['n'] - 1) + 'F' + '.' * (30 - row['n'])
        assert again == want, f"{row['command']}: {again}, not {want}"


def reloaded(w):
    """The stack has the same hash after a reload of the module."""
    found = []
    for _ in range(2):
        number = w.add(f"kmalloc {OURS} --do log")
        w.calls('kmalloc', 320)
        found.append({r['stackid'] for r in w.log(number)})
        w.clear()
        w.guest.shell('insmod /share/kf_good.ko; rmmod kf_calls; '
                      'insmod /share/kf_calls.ko; rmmod kf_good')
    assert found[0] == found[1] and len(found[0]) == 1, found


def bad_input(w):
    for what, why in (
            ('kmallok', 'near it: '),
            ("kmalloc --if 'siez > 1'", 'column 1: no name'),
            ("kmalloc --if 'size >'", 'column 7: expected'),
            ('kfree', 'returns nothing'),
            ('capable --return 7', 'true or false'),
            ('kmalloc --return -ENOMEN', 'ENOMEM'),
            ('kmalloc --do nothing', 'fail, log, stop')):
        text = w.refused(what)
        assert why in text, f'{what}: {text}'
    assert not [r for r in w.rows('list') if 'rule' in r], 'there is a rule'


def stops(w):
    """The VM stops at the call; the call goes on when the VM does."""
    w.add(f'kmalloc {OURS} --do stop --times 1')
    w.guest.shell("(sh -c 'sleep 1; echo kmalloc 320 0 3 >/proc/kf_calls' &)")
    wait_stopped(w.guest)
    assert len([r for r in w.rows('log') if r.get('action') == 'stop']) == 1
    w.guest.qmp('cont')
    text = w.guest.shell('sleep 1; dmesg | tail -n 3')
    w.clear()
    assert 'kf_calls: kmalloc ...' in text, text


def wait_stopped(guest, seconds=30):
    for _ in range(seconds * 10):
        if guest.qmp('query-status')['status'] != 'running':
            return
        time.sleep(0.1)
    raise AssertionError('the VM does not stop')


EXPRESSIONS = (every_call, not_in_init, percent, address_range, by_caller,
               first_call, every_third, children, size_and_flags, admin,
               points, copies, functions, sets, outermost, nofail, panics,
               only_logged, repeats, reloaded, bad_input, stops)


# --- modules that break ------------------------------------------------------

def insmod(w, name):
    return w.dmesg(f'insmod /share/kf_{name}.ko; lsmod')


def load_breaking(w, name):
    """Load a module that oopses, once; see ka_load.c."""
    return w.dmesg(f'/share/ka-load -i /share/kf_{name}.ko; lsmod')


def unload(w, name):
    return w.dmesg(f'rmmod kf_{name}')


def leaks(w, name):
    """Return the leaks of the last report of a module."""
    text = w.guest.hmp_qmp(f'ka leak module kf_{name} -s -j -a -n 0')
    rows = [json.loads(line) for line in text.splitlines()]
    heads = [i for i, r in enumerate(rows) if r['type'] == 'module']
    assert heads, text
    return [r for r in rows[heads[-1] + 1:] if r['type'] == 'block']


def errors(w, kind):
    rows = [json.loads(line) for line in
            w.guest.hmp_qmp(f'ka error --kind {kind} -s -j').splitlines()]
    return [r for r in rows if r['type'] == 'error']


def one_fault(w, name, what, command=None):
    number = w.add(what)
    text = (command or insmod)(w, name)
    rule = w.rule(number)
    w.clear()
    assert rule['done'] >= 1, f'{rule}\n{text}'
    return text


def kf_name(w):
    one_fault(w, 'name',
              "kmalloc --if 'caller(kf_name:kf_register)' --times 1")
    found = leaks(w, 'name')
    assert len(found) == 1, found
    assert any('dev_set_name' in f for f in found[0]['alloc_symbols']), found


def kf_loop(w):
    for n, left in (1, 0), (3, 2):
        one_fault(w, 'loop', "kmalloc --if 'caller(kf_loop:kf_fill) && "
                  f"n == {n}'")
        found = leaks(w, 'loop')
        assert len(found) == left, f'n = {n}: {found}'


def kf_null(w):
    text = one_fault(w, 'null',
                     "kmalloc --if 'caller(kf_null:kf_set)' --times 1",
                     load_breaking)
    # riscv64: 'kernel access to user memory ... at virtual address 00...0c'.
    assert re.search('NULL pointer|paging request|address 0+c$', text, re.M), \
        text
    assert 'kf_set' in text, text


def kf_swallow(w):
    text = one_fault(w, 'swallow',
                     "kmalloc --if 'caller(kf_add_part[kf_swallow])'",
                     load_breaking)
    assert 'BUG' not in text, text
    text = unload(w, 'swallow')
    assert 'kernel BUG' in text or 'Oops' in text, text


def kf_errptr(w):
    text = one_fault(w, 'errptr',
                     "kmalloc --if 'caller(kf_errptr:kf_make)' --times 1",
                     load_breaking)
    assert 'fffffffffffffff4' in text, text


def kf_double(w):
    before = len(errors(w, 'double-free'))
    one_fault(w, 'double', "kmalloc --if 'size > 8k && "
              "caller(kf_double:kf_create_groups)' --times 1", load_breaking)
    found = errors(w, 'double-free')
    assert len(found) == before + 1, found


def kf_put(w):
    before = len(errors(w, 'double-free'))
    one_fault(w, 'put', "sysfs_create_dir_ns --if 'stack(\"mod:kf_put\")' "
              '--times 1', load_breaking)
    found = errors(w, 'double-free')
    assert len(found) == before + 1, found


def kf_good(w):
    for part in 'first', 'second', 'third':
        text = one_fault(w, 'good', f"kmalloc --if 'caller(kf_good:kf_{part})'")
        assert not re.search('BUG|Oops|WARNING', text), text
        assert not leaks(w, 'good')
    insmod(w, 'good')
    unload(w, 'good')
    assert not leaks(w, 'good')


def kf_retry(w):
    """It hangs as long as the rule is there."""
    number = w.add("kmalloc --if 'caller(kf_retry:kf_try)'")
    w.guest.shell('(insmod /share/kf_retry.ko &); sleep 2')
    one = w.rule(number)['done']
    w.guest.shell('sleep 1')
    assert w.rule(number)['done'] > one > 10, w.rule(number)
    assert 'Loading' in w.guest.shell('grep kf_retry /proc/modules')
    w.clear()
    assert 'Live' in w.guest.shell('sleep 1; grep kf_retry /proc/modules')
    unload(w, 'retry')


def kf_late(w):
    insmod(w, 'late')
    unload(w, 'late')
    w.guest.shell('sleep 2')
    assert not leaks(w, 'late')
    one_fault(w, 'late', 'kmalloc --module kf_late')
    unload(w, 'late')


# Those that leave a module behind that cannot be unloaded come last.
BREAKING = (kf_name, kf_loop, kf_good, kf_late, kf_retry, kf_put, kf_double,
            kf_swallow, kf_errptr, kf_null)


def controls(w):
    """Without a rule nothing happens."""
    for name in MODULES[1:]:
        text = insmod(w, name) + unload(w, name)
        assert not re.search('BUG|Oops|WARNING', text), text
    w.guest.shell('sleep 2')
    for name in MODULES[1:]:
        assert not leaks(w, name), name
    assert not errors(w, 'double-free')


# --- runs --------------------------------------------------------------------

def boot(kernel, smp, tmp, options=(), **words):
    share = oracle.make_share(os.path.join(tmp, 'share'), [], kernel,
                              modules=True)
    shutil.copy(oracle.build_tool('ka_load', kernel),
                os.path.join(share, 'ka-load'))
    return Guest(kernel=kernel, smp=smp, share=share, end='shell',
                 cmdline=WORDS, name=f'faults-{kernel}-{smp}',
                 options=['--panic', 'pause', *options], **words)


def run_case(tap, label, w, case):
    with tap.test(f'{label}: {case.__name__.replace("_", " ")}'):
        w.clear()
        case(w)


def check_journal(guest, path):
    """`ka -f` prints what the VM printed."""
    forms = ('fault log -n 0 -s', 'fault log -n 0 -s -j', 'fault log -n 3 -w')
    guest.hmp('stop')       # it may be on its way to the panic that pauses it
    live = {line: guest.hmp_qmp('ka ' + line) for line in forms}
    program = os.path.join(paths()['build'], 'monitor-cmds', 'ka')
    guest.qmp('quit')
    guest.wait_exit()
    for line, want in live.items():
        got = subprocess.run([program, '-f', path, *line.split()], check=True,
                             text=True, stdout=subprocess.PIPE).stdout
        assert got.split('\n') == want.rstrip('\n').split('\n') + [''], \
            f'{line}: {got[-2000:]}\n---\n{want[-2000:]}'


def run_guest(tap, kernel, smp, label, cases):
    """Run cases in one guest, until its kernel panics; return the others."""
    with tempfile.TemporaryDirectory(prefix='ka-faults.') as tmp, \
            boot(kernel, smp, tmp, journal=os.path.join(tmp, 'j')) as guest:
        w = World(guest)
        guest.shell('insmod /share/kf_calls.ko')
        while cases and not guest.panicked():
            run_case(tap, label, w, cases[0])
            cases = cases[1:]
        with tap.test(f'{label}: the tracer is in order'):
            assert guest.hmp_qmp('ka check').startswith('ok'), \
                guest.hmp_qmp('ka check')
        with tap.test(f'{label}: the journal has the same log'):
            check_journal(guest, os.path.join(tmp, 'j'))
    return cases


def run(tap, kernel, smp, label, wanted):
    """An error of a module can end the guest: riscv64 panics at each BUG(). The
    next case then has another guest."""
    cases = [c for c in (*EXPRESSIONS, controls, *BREAKING)
             if not wanted or c.__name__ in wanted]
    while cases:
        cases = run_guest(tap, kernel, smp, label, cases)


# --- the same run again ------------------------------------------------------

REPEAT = "fault seed 3\nfault add kmalloc --module kf_calls --if " \
    "'rnd100 < 30'\nfault add kmalloc --if 'stack(do_filp_open) && " \
    "pid > 20 && n % 50 == 2' --do log\n"


def script_file(folder, text):
    path = os.path.join(folder, 'faults.ka')
    with open(path, 'w', encoding='ascii') as f:
        f.write(text)
    return path


def log_of_run(kernel):
    """Return the log of a run that counts instructions, and the letters that
    the module printed. Nothing comes from outside: the console is a file,
    because a socket can be full, and the guest then waits for its reader; and
    the guest ends the run itself."""
    with tempfile.TemporaryDirectory(prefix='ka-faults.') as tmp:
        share = oracle.make_share(os.path.join(tmp, 'share'),
                                  ['fault-repeat.sh'], kernel, modules=True)
        script = script_file(tmp, REPEAT)
        with Guest(kernel=kernel, share=share, run='fault-repeat', n=200,
                   end='poweroff', mem='512M', cmdline=WORDS,
                   console='file', timeout=400,
                   name=f'faults-icount-{kernel}', options=['--icount'],
                   plugin_opts=f'script={script}',
                   qemu=['-no-shutdown']) as guest:
            guest.wait_marker('KA-DONE 0')
            wait_stopped(guest)
            got = re.search(r'kf_calls: kmalloc ([.F]+)',
                            guest.hmp_qmp('ka log -n 0'))
            return got[1], guest.hmp_qmp('ka fault log -n 0 -s -w')


def icount(kernel):
    """Tasks, stacks and times are the same, too."""
    found = [log_of_run(kernel) for _ in range(2)]
    letters, text = found[0]
    made = [line for line in text.splitlines()
            if ' rule=1 fail ' in line and 'write_calls+' in line]
    assert letters.count('F') == len(made) > 30, found[0]
    assert text.count(' rule=2 log ') > 3, text
    assert found[1][0] == letters, found
    other = found[1][1]
    assert other == text, '\n'.join(difflib.unified_diff(
        text.splitlines(), other.splitlines(), n=0, lineterm=''))


# --- record and replay -------------------------------------------------------

LIST = 'ka 0-ffffffffffffffff -j -v'
SCRIPT = "fault seed 3\nfault add kmalloc --if 'stack(do_filp_open) && " \
    "pid > 20 && n == 2' --times 1\n"


def with_rr(kernel, folder, how):
    script = script_file(folder, SCRIPT)
    rr = f'rr={how},rrfile={os.path.join(folder, "rr.bin")}'
    return Guest(kernel=kernel, run='files', mem='512M', timeout=900,
                 name=f'faults-{how}-{kernel}', options=['--icount'],
                 plugin_opts=f'script={script}',
                 qemu=['-icount', rr, '-no-shutdown'])


def found_in(guest):
    """What faults there were, and all blocks. Monitors change no rule."""
    w = World(guest)
    for line in 'add kmalloc', 'del all', 'seed 4':
        row = w.rows(line)[0]
        assert 'a recording has no commands' in row.get('fail', ''), row
    return w.rows('log -n 0 -s'), guest.hmp_qmp(LIST)


def record_and_replay(kernel):
    with tempfile.TemporaryDirectory(prefix='ka-faults.') as folder:
        with with_rr(kernel, folder, 'record') as g:
            g.wait_marker('KA-DONE')
            g.qmp('stop')
            at, recorded = g.qmp('query_replay')['icount'], found_in(g)
        with with_rr(kernel, folder, 'replay') as g:
            g.qmp('replay_break', icount=at)
            wait_stopped(g, 900)
            assert g.qmp('query_replay')['icount'] == at
            replayed = found_in(g)
    assert len(recorded[0]) == 1 and recorded[0][0]['rule'] == 1, recorded[0]
    assert recorded[0] == replayed[0], f'{recorded[0]}\n{replayed[0]}'
    assert recorded[1] == replayed[1], 'the listings differ'


LONG = ((icount, 'two runs with icount have the same log, byte for byte'),
        (record_and_replay, 'a replay has the fault of the recorded run'))


def main():
    ap = programs.arguments(
        __doc__, short='6.12 on 1 vCPU, without icount, record and replay')
    ap.add_argument('--case', action='append', metavar='NAME',
                    help='only this function of the program')
    args, tap = programs.parse(ap), Tap()
    programs.run_over(
        tap, args.kernel, args.smp,
        lambda *words: run(*words, args.case), test=None)
    for case, name in LONG:
        if case.__name__ in (args.case or ()) or \
                not (args.short or args.case):
            for kernel in args.kernel:
                with tap.test(f'{kernel}: {name}'):
                    case(kernel)
    tap.done()


if __name__ == '__main__':
    main()
