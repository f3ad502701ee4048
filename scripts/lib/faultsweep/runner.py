# SPDX-License-Identifier: GPL-2.0-or-later
"""One run of the scenario: add rules, let it run to its end, ask ka what
became of it. The result is a dict of plain values (a *run*), which can be kept
as JSON. What it means is the business of verdict.py.

    end      marker, stopped (the guest panicked or ended), limit (of guest
             time), host-limit, died (QEMU ended)
    why      more about the end, in words
    status   exit status of the scenario, None if it did not end
    us       guest time of the run
    faults   rows of `ka fault log`: the calls that failed, the first and the
             last of them; made: how many there were; full: how many more ones
             did not fail, because the log of faults was full
    usual    how often the stack is called without a fault
    log      lines of the kernel: rows of `ka log`
    errors   rows of `ka error`
    leaks    {stack, size, cache, task, where} of each leaked block, and its
             identity (IDENTITY)
    vcpus    stacks of the vCPUs, if the end is a limit
    calls    how often the stack of the rule was called, failed calls included
    unloaded  names of the modules that were unloaded, of a run without a fault
    stuck    those of them that the guest cannot unload: rows of modules.stuck()
    references  calls that take or drop references to modules, if WATCH
"""
import re
import time

from . import modules
from ..qmp import GuestError
from .scenario import DONE

POLL_SECONDS = 0.02
ASK_SECONDS = 0.25          # between questions for the guest's time
LINES_MAX = 1000            # of the kernel's log that are looked at
LINE = ('text', 'stack', 'ns', 'us', 'boot', 'cpu', 'caller_cpu', 'caller_pid',
        'pid', 'comm')
END = re.compile(rf'^{DONE} (\d+)$', re.M)
# What makes two errors or leaks the same one: see docs/errors.md.
IDENTITY = 'title', 'alt', 'fold', 'exact', 'weak'


class Limits:
    """When a run that does not end is ended: seconds of the guest, and of the
    host."""

    def __init__(self, guest, host):
        self.guest, self.host = guest, host


def guest_us(guest):
    """Return the time of the VM's clock."""
    return next(r['us'] for r in guest.rows('ka top -n 1')
                if r.get('type') == 'top_all')


def begin(vm):
    """Let the scenario begin: it waits for a line."""
    vm.guest.type('\n')
    # The line arrives while the VM is paused: always at the same guest time.
    for _ in range(3):
        vm.guest.qmp('query-status')
    vm.guest.qmp('cont')


def wait(vm, limits, start_us, pattern=END):
    """Wait for the end of a run, or until the console has a line that matches.
    Return (end, why, match)."""
    host_end = time.monotonic() + limits.host
    next_question = time.monotonic() + ASK_SECONDS
    while True:
        found = pattern.search(vm.console())
        if found:
            return 'marker', '', found
        now = time.monotonic()
        if now > host_end:
            return 'host-limit', f'no end in {limits.host:.0f} s of the ' \
                'host', None
        if now > next_question:
            next_question = now + ASK_SECONDS
            state = vm.guest.qmp('query-status')
            if not state['running']:
                return 'stopped', state['status'], None
            if guest_us(vm.guest) - start_us > limits.guest * 1e6:
                return 'limit', f'no end in {limits.guest:.0f} s of guest ' \
                    'time', None
        time.sleep(POLL_SECONDS)


# --- questions after a run ---------------------------------------------------

def log_lines(vm):
    rows = vm.guest.rows(f'ka log -n {LINES_MAX} -s')
    return [{k: r[k] for k in LINE if k in r} for r in rows
            if r.get('type') == 'log' and r['seq'] > vm.seq
            and not r['facility']]


def errors(vm, since_us):
    rows = vm.guest.rows('ka error -v -s -n 0')
    keys = ('error', 'error_id', 'va', 'alloc_symbols', 'free_symbols',
            'error_stack_symbols', 'cache', 'requested', 'pid', 'comm',
            *IDENTITY)
    return [{k: r.get(k) for k in keys} for r in rows
            if r.get('type') == 'error' and r.get('error_us', 0) >= since_us]


def leak(row, where):
    return {'va': row['va'], 'stack': row.get('alloc_symbols') or [],
            'size': row.get('requested'), 'cache': row.get('cache'),
            'task': f"{row.get('comm')}/{row.get('pid')}", 'where': where,
            **{k: row.get(k) for k in IDENTITY}}


def leaks(vm, since_us):
    """Return blocks to which nothing in use refers. A block that a module left
    and something still uses is no leak: caches of the kernel, such as that of
    radix_tree_preload(), are filled in the name of whoever comes first."""
    found = {}
    module = None
    for row in vm.guest.rows('ka leak module -a -s -n 0'):
        if row['type'] == 'module':
            module = row
        elif row['type'] == 'block' and not row.get('kept') and \
                module['unloaded_us'] >= since_us:
            found[row['va']] = leak(row, 'left by module ' + module['name'])
    for row in vm.guest.rows('ka leak scan -a -s -n 0'):
        if row['type'] == 'block':
            found.setdefault(row['va'], leak(row, 'nothing refers to it'))
    return sorted(found.values(), key=lambda b: b['va'])


def fault_rows(vm, rules):
    """Return the first and the last call that rules made fail."""
    rows = [r for r in vm.guest.rows('ka fault log -n 5 -s')
            if r.get('rule') in rules]
    return rows[:1] + rows[1:][-1:]


def made(vm, rules):
    """Return how many calls failed, and how many more would have."""
    found = [r for r in vm.guest.rows('ka fault list')
             if r.get('rule') in rules]
    return sum(r['done'] for r in found), \
        sum(r['refused_log_full'] for r in found)


def stacks(vm, rules):
    return [r for r in vm.guest.rows('ka fault log --by stack -s -n 0')
            if r.get('rule') in rules]


def vcpu_stacks(vm):
    return [r.get('stack_symbols') or [] for r in vm.guest.rows('ka bt')
            if r.get('type') == 'vcpu_stack']


def calls_of_stack(vm, rules):
    """Return how often the stack of a rule was called."""
    return max([r['calls'] for r in stacks(vm, rules)] or [0])


def look(vm, run, rules, start_us):
    """Ask the VM, which is paused, what became of a run."""
    run['us'] = guest_us(vm.guest) - start_us
    run['made'], run['full'] = made(vm, rules)
    run['faults'] = fault_rows(vm, rules)
    run['calls'] = calls_of_stack(vm, rules)


def look_later(vm, run, start_us):
    """The same, after modules were unloaded."""
    run['log'] = log_lines(vm)
    run['errors'] = errors(vm, start_us)
    if run['end'] == 'marker':
        run['leaks'] = leaks(vm, start_us)
    elif run['end'] != 'stopped':
        run['vcpus'] = vcpu_stacks(vm)


def look_at_modules(vm, run, limits, control, start_us):
    if control:
        now_us = guest_us(vm.guest)
        run['stuck'] = modules.stuck(
            vm, control['unloaded'],
            lambda pattern: wait(vm, limits, now_us, pattern))
    else:
        run['unloaded'] = modules.unloaded(vm, start_us)


def new_run():
    return {'end': 'died', 'why': '', 'status': None, 'us': 0, 'made': 0,
            'full': 0, 'usual': 0, 'faults': [], 'log': [], 'errors': [],
            'leaks': [], 'vcpus': [], 'calls': 0, 'unloaded': [], 'stuck': [],
            'references': []}


def perform(vm, commands, limits, look_more=None, control=None, watch=False):
    """Make one run in a VM that was restored, with the rules that COMMANDS
    add; return it. look_more(vm, rules) is called at its end. CONTROL: the run
    without a fault; modules that it unloaded, and that are loaded now, are
    unloaded. WATCH: record who takes references to modules."""
    run = new_run()
    try:
        rules = [vm.guest.rows(c)[0]['rule'] for c in commands]
        if watch:
            modules.watch(vm)
        start_us = guest_us(vm.guest)
        begin(vm)
        run['end'], run['why'], found = wait(vm, limits, start_us)
        run['status'] = int(found[1]) if found else None
        vm.guest.qmp('stop')
        look(vm, run, rules, start_us)
        if look_more:
            look_more(vm, rules)
        if watch:
            run['references'] = modules.references(vm)
        if run['end'] == 'marker':
            look_at_modules(vm, run, limits, control, start_us)
        look_later(vm, run, start_us)
    except GuestError as e:
        if vm.guest.alive():
            raise
        run['end'], run['why'] = 'died', str(e).splitlines()[0]
    return run
