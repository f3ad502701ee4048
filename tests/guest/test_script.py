#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands of a script run at their moments: when the kernel is found, before a
module's init, and when it is unloaded. A wrong script stops QEMU, and a block
that fails is undone. Oracle: the module prints what its init allocated and did
not free.

usage: test_script.py [--short] [--kernel K]... [--smp N]...
"""
import json
import os
import re
import subprocess
import tempfile
import time

from lib import oracle, programs
from lib.tap import Tap
from scripts.lib.guest import RUN, Guest
from scripts.lib.prepared import ROOT

READY = os.path.join(ROOT, 'scripts', 'ready')

LEFT = re.compile(r'ka_leaky: (\w+)=([0-9a-f]{16})')
HEAD = re.compile(r'-- (?P<file>[^:]+):(?P<line>\d+)(?P<block>[^:]*'
                  r'(: on (?:un)?load [\w-]+)?): ka (?P<command>.*)')

WATCH = '''# The module's blocks are allocated after the mark of its load.
mark found
on load $MODULE
    mark loading
end
on unload $MODULE
    mark unloading
    leak module $MODULE -a -s -j -n 0
    diff loading unloading --by module -j -n 0
end
# A block that fails: it is undone, and the guest goes on.
on load ka_life
    mark gone
    leak scan --every 60
    diff gone nothing
    clear
end
'''
# The module's init runs while recording is off, so its blocks are not known.
OFF = '''on load ka-leaky
    off
end
on unload ka-leaky
    on
    leak module ka_leaky -j -n 0
end
'''
WRONG = 'mark found\non load ka_leaky\n    leek module\nend\n'


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text)
    return path


def joined(folder, *names):
    """Return the path of a script that has the ready scripts NAMES."""
    texts = [read(os.path.join(READY, name + '.ka')) for name in names]
    return write(folder, '+'.join(names), ''.join(texts))


def read(path):
    with open(path, encoding='utf-8') as f:
        return f.read()


def answers(path):
    """Return [(line of the script, block, command, output)]."""
    found = []
    for line in read(path).splitlines():
        m = HEAD.fullmatch(line)
        if m:
            block = m['block'].removeprefix(': ')
            found.append((int(m['line']), block, m['command'], []))
        else:
            found[-1][3].append(line)
    return found


def rows(answer):
    return [json.loads(line) for line in answer[3]]


def left_behind(guest):
    """Return [{address: site}] that each load of ka_leaky printed."""
    loads = []
    for line in guest.shell("dmesg | grep 'ka_leaky: '").splitlines():
        if line.endswith('ka_leaky: loaded'):
            loads.append({})
        m = LEFT.search(line)
        if m:
            loads[-1][int(m[2], 16)] = m[1]
    return loads


def run(share, kernel, smp, n, script, output, module=None):
    options = f'script={script},script-output={output}'
    if module:
        options += f',script-module={module}'
    return Guest(kernel=kernel, smp=smp, share=share, run='script', n=n,
                 timeout=600, cmdline='no_hash_pointers', end='shell',
                 plugin_opts=options, name=f'script-{kernel}-{smp}')


def check_order(found, n):
    """Each load runs its block, then each unload; the first is the kernel."""
    want = [(2, '', 'mark found')]
    for _ in range(n):
        want += [(4, 'on load ka_leaky', 'mark loading'),
                 (13, 'on load ka_life', 'mark gone'),
                 (14, 'on load ka_life', 'leak scan --every 60'),
                 (15, 'on load ka_life', 'diff gone nothing'),
                 (7, 'on unload ka_leaky', 'mark unloading'),
                 (8, 'on unload ka_leaky',
                  'leak module ka_leaky -a -s -j -n 0'),
                 (9, 'on unload ka_leaky',
                  'diff loading unloading --by module -j -n 0')]
    got = [a[:3] for a in found]
    assert got == want, '\n'.join(map(str, got))


def last_report(answer):
    """Return the rows of the newest report of `ka leak module`."""
    reports = []
    for row in rows(answer):
        if row['type'] == 'module':
            reports.append([])
        else:
            reports[-1].append(row)
    return reports[-1]


def check_blocks(found, loads, n):
    """Each unload reports what the module left behind in that load, and the
    init code's allocation is younger than the mark of the load."""
    assert len(loads) == n, loads
    reports = [a for a in found if a[2].startswith('leak module')]
    diffs = [a for a in found if a[2].startswith('diff loading')]
    for left, report, diff in zip(loads, reports, diffs):
        got = {int(r['va'], 16) for r in last_report(report)}
        assert got == set(left), f'{got} instead of {left}'
        made = [r['allocs'] for r in rows(diff)
                if r.get('module') == 'ka_leaky']
        assert any('init_site' in site for site in left.values()), left
        assert made and made[0] >= len(left), diff[3]


def check_undone(guest, n):
    """Failed blocks say so once each; nothing of them is left."""
    lines = [x for x in guest.qemu_log.splitlines() if ': on load ka_life' in x]
    assert len(lines) == n, guest.qemu_log
    assert 'no such mark' in lines[0], lines[0]
    assert lines[0].endswith('; undone: line 14, line 13; 1 command after it '
                             'did not run'), lines[0]
    marks = guest.hmp_qmp('ka mark')
    assert 'gone ' not in marks and 'loading ' in marks, marks
    assert guest.stat()['tracing.state'] == 'on'
    assert guest.stat()['script.failed'] == n


def check_off(found, n):
    reports = [a for a in found if a[2].startswith('leak module')]
    assert len(reports) == n, found
    for a in reports:
        assert not last_report(a), a[3]


def check_leak_check(found, loads):
    """The ready script counts what the module left behind, per load."""
    reports = [a[3] for a in found if a[2] == 'leak module ka_leaky -s']
    assert len(reports) == len(loads), found
    for i, left in enumerate(loads):
        heads = [x for x in reports[i] if x.startswith('module ka_leaky ')]
        assert len(heads) == i + 1, reports[i]
        blocks = re.findall(r'(\d+) blocks? (?:leaked|still in use)',
                            heads[-1])
        assert sum(map(int, blocks)) == len(left), heads


def check_log_copy(found, guest):
    """The last copy has what the module printed, as the guest's own log. The
    kernel prints about the module, too, when it is loaded."""
    copy = [a[3] for a in found if a[2] == 'log --module ka_leaky -v'][-1]
    want = guest.shell("dmesg | grep 'ka_leaky: [kl]' | "
                       "grep -v taint").splitlines()
    want = [line.partition('ka_leaky: ')[2] for line in want]
    got = [line.partition('ka_leaky: ')[2] for line in copy
           if 'ka_leaky: ' in line]
    assert want and got == want, f'{copy}\ninstead of\n{want}'


def check_calls(found, loads):
    """Each load's trace has the allocations that the module printed, of which
    all are of 700 bytes, and no call of another module."""
    traces = [a[3] for a in found if a[2] == 'calls --format ftrace']
    assert len(traces) == len(loads), found
    for left, trace in zip(loads, traces):
        lines = [x for x in trace if 'ka_call: ' in x]
        assert all('[ka_leaky]' in x for x in lines), trace
        made = [x for x in lines if 'init_site' in x or 'core_site' in x]
        assert len(made) >= len(left), f'{len(made)}: {trace}'


def check_wrong(tmp, kernel):
    """QEMU does not start, and the file of the output is not made."""
    output = os.path.join(tmp, 'none')
    script = write(tmp, 'wrong', WRONG)
    done = subprocess.run(
        [RUN, '--kernel', kernel, '--plugin-opts',
         f'script={script},script-output={output}', '--dir',
         os.path.join(tmp, 'vm')], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=120, check=False)
    want = (f'{script}:3: "leek": no such command; near: leak scan; ka help '
            'lists them')
    assert done.returncode and want in done.stdout, done.stdout
    assert not os.path.exists(output)


def test(tap, kernel, smp, label, n, tmp):
    share = os.path.join(tmp, kernel)
    oracle.make_share(share, ['script.sh'], kernel, modules=True)
    output = os.path.join(tmp, f'{kernel}-{smp}')
    with run(share, kernel, smp, n, write(tmp, 'watch', WATCH), output,
             'ka_leaky') as g:
        with tap.test(f'{label}: runs'):
            assert g.wait_done() == 0
        loads = left_behind(g)
        found = answers(output)
        with tap.test(f'{label}: each command at its moment'):
            check_order(found, n)
        with tap.test(f'{label}: blocks run before init, and after exit'):
            check_blocks(found, loads, n)
        with tap.test(f'{label}: a block that fails is undone'):
            check_undone(g, n)
    with run(share, kernel, smp, n, write(tmp, 'off', OFF), output) as g:
        with tap.test(f'{label}: "off" takes effect before init'):
            assert g.wait_done() == 0
            assert all(left_behind(g))
            check_off(answers(output), n)
    script = joined(tmp, 'leak-check', 'log-copy', 'calls')
    with run(share, kernel, smp, n, script, output, 'ka_leaky') as g:
        with tap.test(f'{label}: leak-check.ka'):
            assert g.wait_done() == 0
            check_leak_check(answers(output), left_behind(g))
        with tap.test(f'{label}: log-copy.ka'):
            check_log_copy(answers(output), g)
        with tap.test(f'{label}: calls.ka'):
            check_calls(answers(output), left_behind(g))


def stops_at_error(guest):
    """Crash the guest; return the status of the VM once it does not run."""
    guest.shell('((sleep 1; echo c > /proc/sysrq-trigger) &)')
    for _ in range(120):
        status = guest.qmp('query-status')
        if not status['running']:
            return status['status']
        time.sleep(0.5)
    return 'running'


def test_faults(tap, kernel, smp, label, tmp):
    share = os.path.join(tmp, kernel)
    output = os.path.join(tmp, f'faults-{kernel}-{smp}')
    script = joined(tmp, 'error-stop', 'faults')
    with run(share, kernel, smp, 1, script, output, 'ka_leaky') as g:
        with tap.test(f'{label}: faults.ka'):
            g.wait_done()
            assert not g.stat()['script.failed'], g.qemu_log
            lists = [a[3] for a in answers(output) if a[2] == 'fault list -v']
            rules = [x for x in lists[0] if '--module ka_leaky' in x]
            assert len(rules) == 2, lists[0]
            assert all(' calls=0 ' not in x for x in rules), rules
        with tap.test(f'{label}: error-stop.ka'):
            status = stops_at_error(g)
            assert status not in ('running', 'shutdown'), status


def main():
    ap = programs.arguments(__doc__, short='6.12 only, 2 loads instead of 10')
    args, tap = programs.parse(ap), Tap()
    n = 2 if args.short else 10
    with tempfile.TemporaryDirectory(prefix='ka-script.') as tmp:
        with tap.test('a wrong script stops QEMU before the VM runs'):
            check_wrong(tmp, args.kernel[0])
        programs.run_over(
            tap, args.kernel, args.smp, lambda tap, kernel, smp, label:
            (test(tap, kernel, smp, label, n, tmp),
             test_faults(tap, kernel, smp, label, tmp)), test=None)
    tap.done()


if __name__ == '__main__':
    main()
