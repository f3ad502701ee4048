# SPDX-License-Identifier: GPL-2.0-or-later
"""One fault, whose VM is left where the symptom shows, with gdb."""
from . import runner
from .scenario import rule
from ..prepared import paths
from ..qmp import GuestError

# Functions that the kernel calls at a symptom, while its stack is whole.
SYMPTOMS = 'panic', 'oops_enter', '__warn'


def add_stops(vm):
    """Let the VM stop when the kernel calls one of these; return the names of
    those that this kernel has."""
    found = []
    for name in SYMPTOMS:
        try:
            vm.guest.rows(rule(name, '', None, '--do stop', '--times 1',
                               '--early', '--force'))
            found.append(name)
        except GuestError:
            continue
    return found


def stopped_at(vm):
    rows = [r for r in vm.guest.rows('ka fault log -n 1 -s')
            if r.get('action') == 'stop']
    return f"the call of {rows[0]['function']}()" if rows else None


def keep(vm, command, limits, say):
    """Make the run, say how to look at it, and wait until QEMU ends."""
    vm.guest.rows(command)
    add_stops(vm)
    start_us = runner.guest_us(vm.guest)
    runner.begin(vm)
    end, why, status = runner.wait(vm, limits, start_us)
    vm.guest.qmp('stop')
    place = stopped_at(vm) or (
        f'the end of the scenario, with status {status}' if end == 'marker'
        else why)
    ka = f"{paths()['build']}/monitor-cmds/ka -q {vm.guest.path('qmp.sock')}"
    say(f'the VM is paused at {place}')
    say(f"  gdb:      gdb -ex 'target remote {vm.guest.path('gdb.sock')}'")
    say('  monitor:  socat - UNIX-CONNECT:' + vm.guest.path('monitor.sock'))
    for what in ('log -n 40', 'error -s', 'fault log -s', 'bt', 'leak scan -s'):
        say(f'  ka:       {ka} {what}')
    say(f'Ctrl-C, or "kill {vm.guest.proc.pid}", ends it')
    vm.guest.proc.wait()
