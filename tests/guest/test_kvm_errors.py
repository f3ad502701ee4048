#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Each kind of error that test_errors.py knows is reported in a guest of KVM,
too: once, with the right block and stacks.

Oracle: the addresses that the modules print.

All cases of the same options are committed in one guest. A module cannot be
loaded twice, so each case has a copy of it by another name.

usage: test_kvm_errors.py [--short] [--kernel K]... [--smp N]... [--case C]...
"""
import json
import os
import tempfile

import test_errors
import test_kvm
from lib import oracle
from scripts.lib import outer

MODULE = 'ka_errors', 'ka_page_errors'
# The kernel ends the task that commits it, so it comes last.
LAST = 'wrong-family-oops'
COMMIT = '''dmesg -c >/dev/null
insmod /share/{module}.ko kind={case}
for file in /sys/module/{module}/sections/.*text*; do
    echo "ka_section ${{file##*/}} $(cat "$file")"
done
case {case} in
*-rcu) sleep 2 ;;
esac
dmesg
'''


def module_of(case):
    return MODULE[case in test_errors.PAGE_CASES]


def renamed(module, number):
    """Return another name for a module, as long as its own."""
    return f'{module[:-2]}{number:02}'


def make_share(folder, kernel, cases):
    os.makedirs(folder)
    built = oracle.build_modules(kernel)
    for number, case in enumerate(cases):
        old = module_of(case)
        new = renamed(old, number)
        with open(os.path.join(built, old + '.ko'), 'rb') as f:
            data = f.read()
        with open(os.path.join(folder, new + '.ko'), 'wb') as f:
            f.write(data.replace(old.encode() + b'\0', new.encode() + b'\0'))
        with open(os.path.join(folder, case + '.sh'), 'w',
                  encoding='ascii') as f:
            f.write(COMMIT.format(module=new, case=case))
    return folder


def commit(guest, case, share, number):
    before = test_errors.errors_of(guest)
    text = guest.shell(f'sh /share/{case}.sh 2>&1')
    errors = [e for e in test_errors.errors_of(guest) if e not in before]
    # Functions are named from the module's file, whose name test_errors knows.
    os.replace(os.path.join(share, renamed(module_of(case), number) + '.ko'),
               os.path.join(share, module_of(case) + '.ko'))
    test_errors.check_report(case, text, errors, share)
    return json.dumps(errors[0])


def cases_of(kernel, options, wanted):
    names = test_errors.PAGE_CASES if options else test_errors.CASES
    cases = [c for c in names if c in wanted]
    assert oracle.has_types(kernel)
    return sorted(cases, key=lambda c: c == LAST)


def run(tap, kernel, smp, label, wanted):
    for options in '', 'pages=on':
        cases = cases_of(kernel, options, wanted)
        if not cases:
            continue
        with tempfile.TemporaryDirectory(prefix='ka-kvm.') as tmp:
            share = make_share(os.path.join(tmp, 'share'), kernel, cases)
            with outer.worked(
                    kernel=kernel, smp=smp, end='shell', share=share,
                    plugin_opts=options, timeout=test_kvm.TIMEOUT,
                    cmdline=f'{test_kvm.WORDS} {test_kvm.QUICK}',
                    name=f'kvm-errors-{kernel}-{smp}') as g:
                for number, case in enumerate(cases):
                    with tap.test(f'{label}: {case}: reported once, rightly',
                                  guest=g):
                        commit(g, case, share, number)
                tap.note(test_kvm.figures(g.stat()))


if __name__ == '__main__':
    test_kvm.run_chosen(__doc__, test_errors.CASES + test_errors.PAGE_CASES,
                        run)
