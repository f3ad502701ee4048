#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""ka access on --verify: an object that was handed out by a call that ka did
not see is no error, is counted, and ends the checks of its cache; a use of an
object that is free is an error as without it. Oracle: the module ka_unseen,
which calls the allocator behind its first instruction, and knows which of its
accesses are right.

usage: test_access_verify.py [--short] [--kernel K]... [--smp N]...
"""
import json
import os
import tempfile

from lib import oracle, programs
from lib.tap import Tap
from scripts.lib.guest import Guest

TIMES = 20


def functions(guest):
    """Return {function that accessed: how often} of all errors."""
    rows = [json.loads(line) for line in
            guest.hmp_qmp('ka error -n 0 -j -s').splitlines()]
    return {r['error_stack_symbols'][0].split('+')[0]: r['error_count']
            for r in rows if r.get('type') == 'error'}


def run(guest, what):
    """Return what the module did: 'ran', or its error."""
    text = guest.shell(f'echo {TIMES} >/sys/module/ka_unseen/parameters/{what} '
                       '&& echo ran')
    return 'ran' if '\nran' in '\n' + text.replace('\r', '') else text


def check(tap, kernel, guest):
    guest.wait_marker('KA-END')
    guest.hmp_qmp('ka access on')
    guest.shell('insmod /share/ka_unseen.ko')
    possible = run(guest, 'unseen') == 'ran'
    if possible:
        with tap.test(f'{kernel}: without --verify they are errors'):
            assert 'ka_unseen_write' in functions(guest), functions(guest)
    else:
        tap.skip(f'{kernel}: allocations that are not seen',
                 'the allocator has no first instruction that does nothing')
    before = functions(guest)
    guest.hmp_qmp('ka access on --verify')
    with tap.test(f'{kernel}: with it, a free object is an error'):
        assert run(guest, 'stale') == 'ran'
        assert functions(guest).get('ka_stale_write') == TIMES, \
            guest.hmp_qmp('ka error -s')
        assert not guest.stat()['access.unseen_alloc'], guest.stat()
    if not possible:
        return
    with tap.test(f'{kernel}: and one that was handed out unseen is none'):
        assert run(guest, 'unseen') == 'ran'
        assert functions(guest)['ka_unseen_write'] == \
            before['ka_unseen_write'], guest.hmp_qmp('ka error -s')
        stat, text = guest.stat(), guest.hmp_qmp('ka access -w')
        assert stat['access.unseen_alloc'] == TIMES, stat
        assert 'allocations are not seen: ka_unseen' in text, text


def main():
    args = programs.parse(programs.arguments(
        __doc__, short='6.12 on 1 vCPU'))
    tap = Tap()
    with tempfile.TemporaryDirectory(prefix='ka-verify.') as tmp:
        for kernel in args.kernel:
            share = oracle.make_share(os.path.join(tmp, kernel), [], kernel,
                                      modules=True)
            for smp in args.smp:
                with Guest(kernel=kernel, smp=smp, end='shell', share=share,
                           timeout=600,
                           name=f'verify-{kernel}-{smp}') as g:
                    check(tap, f'{kernel}, {smp} vCPU', g)
    tap.done()


if __name__ == '__main__':
    main()
