#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands of scripts/ka-gdb.py work in a real gdb. Oracle: the answers of
the monitor.
"""
import json
import os
import re
import subprocess
import tempfile

from lib.tap import Tap
from scripts.lib.guest import Guest

tap = Tap()
HELPER = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..',
                      'scripts', 'ka-gdb.py')


def gdb(guest, *commands):
    return guest.gdb(['source ' + HELPER, *commands])


def a_block(guest):
    text = guest.hmp_qmp('ka 0-ffffffffffffffff -j -s -v --layer kmalloc -n 1')
    return json.loads(text.splitlines()[0])


def task_member(guest, va, name):
    rows = [json.loads(line) for line in guest.hmp_qmp(
        f'ka struct task_struct.{name} {va} --zero -j').splitlines()]
    return next(r for r in rows if r['type'] == 'member')


def symbols_around(folder, va):
    """Build a file with debug information for one function around VA."""
    source = os.path.join(folder, 'around.c')
    with open(source, 'w', encoding='utf-8') as f:
        f.write('void around(int first, int second) '
                '{ __asm__(".skip 0x20000"); }\n')
    start = (va - 0x10000) & ~0xfff
    subprocess.run(['gcc', '-g', '-O0', '-nostdlib', '-static', '-w',
                    '-mcmodel=kernel', '-fno-pic', '-no-pie',
                    '-Wl,--build-id=none', '-Wl,-e,around',
                    f'-Wl,-Ttext={start:#x}', '-o', source + '.elf', source],
                   check=True)
    return f'{source}.elf {start:#x}'


def user_frames(text):
    """Return the lines of a backtrace from the first frame of user code on."""
    lines = re.findall(r'^#\d+ +0x[0-9a-f]+ in .*', text, re.M)
    n = next((i for i, line in enumerate(lines)
              if int(line.split()[1], 16) < 1 << 63), len(lines))
    return lines[n:]


# The pages that contain blocks are blocks too.
with Guest(name='gdb-helper', end='shell', plugin_opts='pages=on') as g:
    g.wait_marker('KA-END')
    g.qmp('stop')
    row = a_block(g)
    inside = int(row['va'], 16) + 8
    with tap.test('ka prints what the monitor prints'):
        want = g.hmp_qmp(f'ka show {inside:x} -s')
        said = gdb(g, f'ka show {inside:x} -s')
        assert want.strip('\n') in said, said
    with tap.test('ka takes expressions of gdb'):
        said = gdb(g, f'set $p = {inside - 8:#x}', 'ka show $p+8 -s',
                   'ka show (char *)$p+8 -s', 'ka show &nothing')
        assert said.count('> +8 ') == 2, said
        assert 'ka: &nothing: No symbol' in said, said
    with tap.test('a variable that nobody has set is named in one line'):
        said = gdb(g, 'ka show $nosuch', 'print $_ka($nosuch)',
                   'print $_ka_struct("file.f_flags", $nosuch)')
        assert 'ka: $nosuch has no value' in said, said
        assert '$_ka(): the argument has no value' in said, said
        assert '$_ka_struct(): the address has no value' in said, said
        assert 'Exception' not in said and 'Traceback' not in said, said
    with tap.test('symbols are loaded when gdb is attached already'):
        va, name = row['alloc'][0], row['alloc_symbols'][0].split('+')[0]
        said = gdb(g, f'info symbol {va}')
        assert re.search(rf'^{re.escape(name)} \+ \d+ in section', said,
                         re.M), said
        assert re.search(r'^ka: .*symbols', said, re.M), said
    with tap.test('$_ka() is the block in one line'):
        said = gdb(g, f'print $_ka({inside:#x})', 'print $_ka(0x1234)')
        assert (f'A {row["va"]}-{row["end"]} ({row["requested"]}/'
                f'{row["actual"]}) {row["cache"]} +0x8"') in said, said
        assert '$2 = "no block"' in said, said
    with tap.test('ka-bt prints its stacks, one frame a line'):
        said = gdb(g, f'ka-bt {inside:#x}', 'ka-bt 1234', 'ka-bt')
        for i, (va, name) in enumerate(zip(row['alloc'],
                                           row['alloc_symbols'])):
            assert f'#{i:<3}{va} in {name}' in said, said
        assert 'ka-bt: no block at 1234' in said, said
        assert 'one address is wanted' in said, said
    with tap.test('ka-bt shows lines and arguments where gdb knows them'):
        with tempfile.TemporaryDirectory() as tmp:
            said = gdb(g, 'add-symbol-file ' +
                       symbols_around(tmp, int(row['alloc'][0], 16)),
                       f'ka-bt {inside:#x}')
        name = row['alloc_symbols'][0].split('+')[0]
        assert re.search(rf'#0  {row["alloc"][0]} in {name} \(first, second\) '
                         r'at \S*around\.c:1', said), said
    with tap.test('$_ka_task() is the address of a task'):
        listed = [json.loads(line) for line in
                  g.hmp_qmp('ka task --threads -j -n 0').splitlines()][:-1]
        by_pid = {t['pid']: t for t in listed if t['pid']}
        # Both tasks say so while the kernel switches from one to the other.
        runs = [t['va'] for t in listed if t['running'] == 'yes']
        said = gdb(g, 'p/x $_ka_task()', 'p/x $_ka_task(1)',
                   'p/x $_ka_task("kthreadd")', 'set $pid = 11',
                   'ka task $pid -j', 'ka task $_ka_task(1) -j',
                   'p $_ka_task("nobody")')
        found = re.findall(r'^\$\d = (0x\w+)$', said, re.M)
        assert found[0] in runs and \
            found[1:] == [by_pid[1]['va'], by_pid[2]['va']], said
        rows = [json.loads(line) for line in said.splitlines()
                if line.startswith('{')]
        assert [(t['pid'], t['va']) for t in rows if 'pid' in t] == \
            [(pid, by_pid[pid]['va']) for pid in (11, 1)], said
        assert 'ka: "nobody": none of ' in said, said
    with tap.test('completion knows commands and their options'):
        said = gdb(g, 'complete ka sh', 'complete ka show -',
                   'complete ka show --h')
        assert 'ka show\n' in said, said
        assert 'ka show -s\n' in said, said
        assert 'ka show --history\n' in said, said
    with tap.test('stops print the live trace if asked for'):
        said = gdb(g, 'set ka-trace on', 'stepi')
        assert 'ka: nothing is traced' in said, said
        g.hmp_qmp('ka trace on')
        g.qmp('cont')
        g.shell('ls -l /proc/self/fd >/dev/null')
        g.qmp('stop')
        said = gdb(g, 'stepi', 'set ka-trace on', 'show ka-trace',
                   *['stepi'] * 3, 'set ka-trace off', 'stepi')
        lines = g.hmp_qmp('ka trace -s').splitlines()[:-1]
        got = [line for line in said.splitlines() if line in lines]
        assert len(got) > 20 and got == lines[:len(got)], (lines[:3], said)
        g.hmp_qmp('ka trace off')
    with tap.test('completion knows types and their members'):
        said = gdb(g, 'complete ka struct task_stru',
                   'complete ka struct file.f_pa',
                   'complete ka struct file.f_path.mn',
                   'complete ka struct file.f_path.dentry.d_inam')
        assert 'ka struct task_struct\n' in said, said
        assert 'ka struct file.f_path\n' in said, said
        assert 'ka struct file.f_path.mnt\n' in said, said
        assert 'ka struct file.f_path.dentry.d_iname\n' in said, said
    with tap.test('$_ka_struct() is a member of an object'):
        task, = (json.loads(line) for line in g.hmp_qmp(
            'ka --cache task_struct --state A -j -n 1').splitlines()[:1])
        pid = task_member(g, task['va'], 'pid')['number']
        comm = task_member(g, task['va'], 'comm')['value']
        said = gdb(g, f'set $t = {task["va"]}',
                   'print $_ka_struct("task_struct.pid", $t) + 1',
                   'print $_ka_struct("task_struct.comm", $t)',
                   'print $_ka_struct("task_struct.stack", $t) == '
                   f'{task_member(g, task["va"], "stack")["number"]}',
                   'print $_ka_struct("task_struct.pd", $t)',
                   'ka struct task_struct.pid $t')
        assert f'$1 = {pid + 1}\n' in said, said
        assert f'$2 = {comm}\n' in said, said
        assert '$3 = 1\n' in said, said
        assert 'task_struct has no member pd; near: pid' in said, said
        assert f'pid pid_t {pid}\n' in said, said
    with tap.test('bt ends at the first frame of user code'):
        g.qmp('cont')
        g.shell('(while :; do echo; done) >/dev/null & echo')
        said = gdb(g, 'hbreak vfs_write', 'continue', 'bt', 'echo KA-PLAIN\\n',
                   'bt -no-filters')
        named, plain = said.split('KA-PLAIN')
        assert 'entry_SYSCALL_64_after_hwframe' in named, said
        assert len(user_frames(named)) == 1, said
        # gdb itself goes on, by a guess.
        assert len(user_frames(plain)) > 1, said
        g.qmp('stop')
    with tap.test('a bad command is reported in one line'):
        want = g.hmp_qmp('ka show zzz').strip('\n')
        said = gdb(g, 'ka show zzz')
        assert want in said and 'Traceback' not in said, said

tap.done()
