# SPDX-License-Identifier: GPL-2.0-or-later
"""Modules that a run leaves loaded: the guest is asked to unload them, and who
takes and drops references to them is recorded."""
import collections
import re

from .scenario import UNLOADED

NAME = re.compile(r'[\w-]{1,64}')
# Functions of the kernel that take and drop a reference to a module.
TAKE, DROP = ('try_module_get', '__module_get'), ('module_put',)


def rows(vm, words):
    return [r for r in vm.guest.rows(f'ka mod {words} -n 0')
            if r.get('type') == 'loaded_module']


def loaded(vm):
    """Return {name: row of ka mod} of the modules that are loaded, the newest
    first."""
    return {r['name']: r for r in rows(vm, '') if r['state'] != 'unloaded'}


def unloaded(vm, since_us):
    """Return the names of the modules that were unloaded."""
    return [r['name'] for r in rows(vm, '-v') if r['state'] == 'unloaded' and
            r['unloaded_us'] >= since_us]


def unload(vm, names, wait):
    """Let the guest unload modules; return whether it came back. wait(pattern)
    lets it run until the console has a line that matches."""
    vm.guest.rows('ka fault del all')
    vm.guest.type(' '.join(n for n in names if NAME.fullmatch(n)) + '\n')
    vm.guest.qmp('cont')
    back = wait(re.compile(f'^{UNLOADED}$', re.M))[0] == 'marker'
    vm.guest.qmp('stop')
    return back


def stuck(vm, wanted, wait):
    """Unload those modules of WANTED that are loaded; return {name, state,
    refs, users, back} of each that stays."""
    left = [n for n in loaded(vm) if n in wanted]
    if not left:
        return []
    back = unload(vm, left, wait)
    return [{'name': n, 'state': r['state'], 'refs': r['refs'],
             'users': r['users'], 'back': back}
            for n, r in loaded(vm).items() if n in left]


# --- references --------------------------------------------------------------

def watch(vm):
    """Record the calls that take and drop references. ka refuses this for a
    kernel without types, which has no name of the module."""
    for function in (*TAKE, *DROP):
        vm.guest.hmp_qmp(f'ka calls add {function} --if arg0 --stack '
                         '--deref module->name')


def references(vm):
    """Return [{module, function, stack, calls}] of what watch() recorded."""
    found = collections.Counter()
    for row in vm.guest.rows('ka calls -s -n 0'):
        names = [d['value'] for d in row.get('deref') or ()
                 if isinstance(d['value'], str)]
        failed = row.get('function') == 'try_module_get' and \
            row.get('result') in ('false', '0')
        if row.get('type') == 'call' and names and not failed:
            found[names[0].strip('"'), row['function'],
                  tuple(row.get('stack_symbols') or ())] += 1
    return [{'module': module, 'function': function, 'stack': list(stack),
             'calls': calls}
            for (module, function, stack), calls in sorted(found.items())]


def holders(run, control, name):
    """Return the stacks that took more references than without a fault, or
    dropped fewer, as [(words, stack)]; the likeliest first: code that dropped
    fewer and took as many."""
    def calls(of):
        return {(r['function'], tuple(r['stack'])): r['calls']
                for r in of.get('references', ()) if r['module'] == name}

    now, before = calls(run), calls(control)
    fewer, more = [], []
    for key in sorted({*now, *before}):
        function, stack = key
        change = now.get(key, 0) - before.get(key, 0)
        if function in DROP and change < 0:
            fewer.append((f'{function}() was called {now.get(key, 0)} times, '
                          f'not {before[key]}', stack))
        elif function in TAKE and change > 0:
            more.append((f'{function}() was called {now[key]} times, not '
                         f'{before.get(key, 0)}', stack))
    return fewer + more
