# SPDX-License-Identifier: GPL-2.0-or-later
"""What a guest did when its time was over and nobody had asked for that: how
far it was between boot and shutdown, what its vCPUs executed, which tasks ran
or were blocked, and the end of its console. The VM is stopped."""
import dataclasses
import re

from scripts.ka import KaError

from ..qmp import GuestError
from . import clean, collect

MOST_FRAMES = 40        # of a vCPU
MOST_STACKS = 400       # lines of all vCPUs
MOST_TASKS = 20
MOST_LINES = 15         # of the console
MOST_CONSOLE = 4096     # characters of these
MOST_LOG = 2000         # lines of the kernel's log that are searched

INIT = re.compile(r'Run \S+ as init process|^KA-READY', re.M)
GOING_DOWN = re.compile(
    'reboot: (Power down|System halted|Restarting system)|'
    'systemd-shutdown|The system is going down|sysrq: Power off')
SHUTDOWN_CALL = re.compile(
    r'^(kernel_(power_off|halt|restart)|(__do_sys|__se_sys|ksys)_reboot|'
    r'device_shutdown|(native_)?machine_(power_off|halt|restart)|'
    r'do_kernel_power_off)\b')
SHUTDOWN_TASK = re.compile('(poweroff|reboot|halt|systemd-shutdow)$')
PROGRAM_COUNTER = re.compile(r'\b(?:RIP|PC|pc)[ =]+([0-9a-f]{8,16})\b')


@dataclasses.dataclass
class Signs:
    """What tells how far a guest is. text: its console and the kernel's log;
    calls: functions on the stacks of its vCPUs; tasks: rows of ka task."""
    text: str
    calls: list
    tasks: list


def goes_down(s):
    return GOING_DOWN.search(s.text) or \
        any(map(SHUTDOWN_CALL.match, s.calls)) or \
        any(SHUTDOWN_TASK.match(t.get('comm') or '') for t in s.tasks)


def has_init(s):
    return INIT.search(s.text) or any(
        t.get('pid') == 1 and t.get('mm') not in (None, '0x0')
        for t in s.tasks)


def has_kernel(s):
    return s.tasks or 'Linux version ' in s.text


# The first one that holds is the phase of the guest.
PHASES = (
    (goes_down, 'the kernel was shutting down'),
    (has_init, 'user space was running'),
    (has_kernel, 'the kernel was booting, and had not started its first '
                 'process'),
    (lambda s: True, 'no kernel was running yet'),
)


def phase(signs):
    return next(text for holds, text in PHASES if holds(signs))


# --- questions ---------------------------------------------------------------

def ask(vm, *words):
    """Return (rows, why there are none)."""
    try:
        return collect.rows(vm, *words), None
    except (KaError, GuestError) as e:
        return [], clean.line(str(e))


def counters(guest):
    """Where each vCPU was, if its stack cannot be walked."""
    try:
        text = guest.hmp_qmp('info registers -a')
    except GuestError as e:
        return [clean.line(str(e))]
    return [f'vcpu{n} at {at}' for n, at in
            enumerate(PROGRAM_COUNTER.findall(text))]


# What the end of a stack without frames says of the vCPU, as ka bt prints it.
NO_STACK = {'user': 'runs user code', 'unplugged': 'has no registers'}


def stack_lines(rows):
    for row in rows:
        frames = row.get('stack_symbols') or row.get('stack') or []
        stop = row.get('stop')
        known = NO_STACK.get(stop) if not frames else None
        yield f"vcpu{row.get('cpu')} " + (
            known or f'{len(frames)} frames, {stop}')
        yield from (f'  {frame}' for frame in frames[:MOST_FRAMES])
        if len(frames) > MOST_FRAMES:
            yield f'  ({len(frames) - MOST_FRAMES} more frames)'


def task_lines(tasks):
    """Tasks that a vCPU executes, or that wait and cannot be interrupted."""
    busy = [t for t in tasks if t.get('pid') and (
        t.get('running') == 'yes' or t.get('state') == 'D')]
    yield from (f"  {t.get('text')}" for t in busy[:MOST_TASKS])
    if len(busy) > MOST_TASKS:
        yield f'  ({len(busy) - MOST_TASKS} more tasks)'


def console_lines(console):
    lines = console[-MOST_CONSOLE:].rstrip().split('\n')
    return [f'  {line}' for line in lines[-MOST_LINES:] if line.strip()]


def cut_lines(lines, most, what):
    more = len(lines) - most
    return lines if more <= 0 else [*lines[:most], f'  ({more} more {what})']


def describe(guest, console):
    """Return (the phase of a guest, lines about what it did)."""
    rows, why = ask(guest.ka, 'bt')
    stacks = [r for r in rows if r.get('type') == 'vcpu_stack']
    tasks, _ = ask(guest.ka, 'task', '--threads', '-n', '0')
    log, _ = ask(guest.ka, 'log', '-n', MOST_LOG)
    tasks = [t for t in tasks if t.get('type') == 'task']
    text = '\n'.join([console, *(r.get('text') or '' for r in log)])
    calls = [f for row in stacks for f in row.get('stack_symbols') or []]
    lines = cut_lines([*stack_lines(stacks)], MOST_STACKS, 'lines')
    if why:
        lines = [f'ka bt: {why}', *counters(guest)]
    busy, said = [*task_lines(tasks)], console_lines(console)
    lines += ['tasks that ran or were blocked:', *busy] if busy else []
    lines += ['the end of the console:', *said] if said else []
    return phase(Signs(text, calls, tasks)), '\n'.join(lines)
