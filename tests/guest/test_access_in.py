#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Access checks of the code of one module, which is loaded later: the bad
accesses of its own instructions, and of memset() and the like that it calls,
are errors; other code has no callbacks. Rules of a file count for functions of
a module that is loaded later, and --only chooses kinds of errors. Oracle: what
the module ka_access prints.

On 5.10 accesses to slack are errors, unless ksize() granted it.

usage: test_access_in.py [--short] [--kernel K]...
"""
import json
import os
import tempfile

from lib import accesses, oracle, programs
from lib.tap import Tap
from scripts.lib.guest import Guest

# The instruction is in the module, or in a function that is checked by its
# arguments.
OWN = ('oob_store', 'oob_load', 'oob_partial', 'oob_big', 'oob_large',
       'oob_cache', 'krealloc_less', 'uaf_load', 'uaf_store', 'uaf_later',
       'uaf_large', 'uaf_often', 'memset_oob', 'memset_uaf', 'memcpy_from',
       'memcpy_to', 'memmove_to', 'set_bit', 'atomic_inc', 'asm_load', 'in_irq',
       'in_work', 'of_gone')
# Functions of the kernel make these.
# These do nothing wrong: ksize() grants slack until 6.1.
QUIET = 'quiet_ksize', 'quiet_realloc'
OTHERS = 'memcmp', 'memchr', 'strnlen', 'copy_to_user', 'strscpy_to'
# Callbacks of the same guest with all code checked: some 100,000.
CALLBACKS_MAX = 10000
RULES = 'allocator ka_case_uaf_load\nplain ka_case_uaf_store\n'


def run(kernel, cases, commands=(), **guest_args):
    """Run cases of the module; return (what it printed, errors by case, the
    other errors, ka stat). COMMANDS are of the monitor, before it."""
    with tempfile.TemporaryDirectory(prefix='ka-access.') as tmp:
        share = oracle.make_share(os.path.join(tmp, 'share'), ['access.sh'],
                                  kernel, modules=True)
        with open(os.path.join(share, 'cases'), 'w', encoding='ascii') as f:
            f.write(' '.join(cases))
        with Guest(kernel=kernel, share=share, end='shell', timeout=600,
                   **guest_args) as g:
            said = [g.hmp_qmp(line) for line in commands]
            g.shell('sh /share/access.sh')
            log = accesses.Log(g.settled_console())
            rows = [json.loads(line) for line in
                    g.hmp_qmp('ka error -n 0 -j -v -s').splitlines()]
            return log, [r for r in rows if r.get('type') == 'error'], \
                g.stat(), said


def cases_of(errors, cases):
    """Return the cases whose function is in the stack of an error, and the
    errors that are of none."""
    found, rest = set(), []
    for e in errors:
        trace = accesses.functions(e['error_stack_symbols']) + \
            accesses.functions(e.get('alloc_symbols'))
        names = [c for c in cases if 'ka_case_' + c in trace]
        found.update(names)
        rest += [] if names else [e]
    return found, rest


def check_ran(log, cases):
    wrong = [c for c in cases if not log.was_run(c)]
    assert not wrong, f'the module did not run {wrong}'


def test_module(tap, kernel):
    with tap.test(f'{kernel}: only code of the module is checked'):
        log, errors, stat, _ = run(kernel, OWN + OTHERS + QUIET,
                                   name='access-in',
                                   plugin_opts='access=module:ka_acc*ss')
        check_ran(log, OWN + QUIET)
        found, rest = cases_of(errors, OWN + OTHERS)
        assert found == set(OWN), (found ^ set(OWN), errors)
        assert not rest and not stat['access.disagreed'], rest
        tap.figures('one module', kernel=kernel,
                    callbacks=stat['cost.callbacks'])
        assert stat['cost.callbacks'] < CALLBACKS_MAX, stat['cost.callbacks']


def test_rules(tap, kernel):
    with tap.test(f'{kernel}: rules for a later module, kinds of errors'), \
            tempfile.NamedTemporaryFile('w', suffix='.rules') as rules:
        rules.write(RULES)
        rules.flush()
        cases = 'uaf_load', 'uaf_store', 'oob_store'
        log, errors, _, said = run(
            kernel, cases + ('uaf_later',),
            ['ka access on --module ka_access --only use-after-free'],
            name='access-rules', plugin_opts='access-rules=' + rules.name)
        check_ran(log, cases)
        assert 'no such module is loaded yet' in said[0], said
        found, rest = cases_of(errors, cases)
        assert found == {'uaf_store'}, (found, errors)
        assert len(rest) == 1 and rest[0]['error'] == 'use-after-free', rest


def test_slack(tap, kernel):
    with tap.test(f'{kernel}: slack is checked until ksize() grants it'):
        wrong = 'oob_store', 'krealloc_less'
        log, errors, _, _ = run(kernel, wrong + QUIET, name='access-slack',
                                plugin_opts='access=module:ka_access')
        check_ran(log, wrong + QUIET)
        found, rest = cases_of(errors, wrong + QUIET)
        assert found == set(wrong) and not rest, errors


def main():
    ap = programs.arguments(__doc__, short='6.12 only', smp=False)
    args = programs.parse(ap)
    tap = Tap()
    for kernel in args.kernel:
        test_module(tap, kernel)
        test_rules(tap, kernel)
    if not args.short:
        test_slack(tap, '5.10')
    tap.done()


if __name__ == '__main__':
    main()
