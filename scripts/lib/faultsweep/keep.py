# SPDX-License-Identifier: GPL-2.0-or-later
"""One fault, whose VM is left where the symptom shows, with gdb."""
from . import runner
from .scenario import rule
from ..prepared import ROOT, paths
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


def how_to_look(guest):
    """Return the commands for gdb, the monitor and ka. With ka-gdb.py gdb has
    the symbols of the kernel and of its modules."""
    ka = f"{paths()['program']} -q {guest.path('qmp.sock')}"
    return [f"gdb:      {guest.arch.gdb} -ex 'source {ROOT}/scripts/ka-gdb.py' "
            f"-ex 'target remote {guest.path('gdb.sock')}' -ex bt",
            f"monitor:  socat - UNIX-CONNECT:{guest.path('monitor.sock')}",
            *(f'ka:       {ka} {what}' for what in (
                'log -n 40', 'error -w', 'fault log -s -w', 'bt',
                'leak scan -w'))]


def keep(vm, command, limits, say):
    """Make the run, say how to look at it, and wait until QEMU ends."""
    vm.guest.rows(command)
    add_stops(vm)
    start_us = runner.guest_us(vm.guest)
    runner.begin(vm)
    end, why, found = runner.wait(vm, limits, start_us)
    vm.guest.qmp('stop')
    place = stopped_at(vm) or (
        f'the end of the scenario, with status {found[1]}' if end == 'marker'
        else why)
    vm.guest.disconnect()
    say(f'the VM is paused at {place}')
    for line in how_to_look(vm.guest):
        say('  ' + line)
    say(f'Ctrl-C, or "kill {vm.guest.proc.pid}", ends it')
    vm.guest.proc.wait()
