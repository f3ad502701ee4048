#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest of KVM starts another kernel by kexec; gets another vCPU; moves to
another QEMU by a migration, also to one with TCG; its QEMU is killed.

Oracle: the counters of what was not seen. Blocks of before the move are listed
afterwards, with the same stacks, and errors made afterwards name them. After a
kill, the host's KVM runs the next guest, and the journal of the killed QEMU can
be read.

usage: test_kvm_moves.py [--short] [--kernel K]... [--smp N]... [--case C]...
"""
import os
import re
import shutil
import subprocess
import time

import test_hotplug
import test_kvm
from lib import journal, oracle
from scripts.lib import outer
from scripts.lib.guest import Guest
from scripts.lib.prepared import kernel_file, paths
from scripts.lib.snapshot_disk import drive, make_disk

STATE = '/tmp/state'
KILL_BYTES = 40000      # of events in the journal; the guest boots then


def start(kernel, smp, share, name, **words):
    return outer.worked(
        kernel=kernel, smp=smp, share=share, timeout=test_kvm.TIMEOUT,
        cmdline=f'{test_kvm.WORDS} {test_kvm.QUICK}',
        name=f'kvm-{name}-{kernel}-{smp}', **words)


def unseen(stat):
    return {name: stat[name] for name in test_kvm.UNSEEN if stat.get(name)}


def kexec(kernel, smp, share):
    """The next kernel is traced from its beginning."""
    oracle.make_share(share, ['kexec.sh'], kernel)
    shutil.copy(kernel_file(kernel), os.path.join(share, 'vmlinuz'))
    shutil.copy(paths()['initrd-' + kernel], os.path.join(share, 'initrd'))
    with start(kernel, smp, share, 'kexec', run='kexec', mem=768) as g:
        assert g.wait_done() == 0, g.console[-2000:]
        assert g.console.count('KA-READY') == 2, 'kexec did not happen'
        stat = g.stat()
        assert not unseen(stat), (unseen(stat), stat.get('tracing.unseen'))
        assert stat['blocks.previous_boot'] > 5000, stat
        text = g.hmp_qmp('ka error')
        assert text.startswith('no errors'), text
        text = g.hmp_qmp('ka alloc start_kernel -w -n 5')
        assert 'start_kernel+' in text, text
        test_kvm.check_console(g.console)
        return test_kvm.figures(stat)


def hotplug(kernel, smp, share):
    """A vCPU that is plugged is traced; one that is gone disturbs nobody."""
    test_kvm.make_share(share, kernel)
    online = f'/sys/devices/system/cpu/cpu{smp}/online'
    with start(kernel, smp, share, 'hotplug', end='shell', make=lambda one:
               one('-smp', f'{smp},maxcpus={smp + 1}')) as g:
        new = next(c for c in g.qmp('query-hotpluggable-cpus')
                   if 'qom-path' not in c)
        g.qmp_connection.cmd('device_add', {
            'driver': new['type'], 'id': 'new', **new['props']})
        g.shell(f'until [ -f {online} ]; do sleep 0.1; done; '
                f'echo 1 >{online}; insmod /share/kf_calls.ko')
        for name in test_kvm.KMALLOC:
            g.hmp_qmp(f'ka calls add {name} --module kf_calls')
        g.shell('ls /proc/sys >/dev/null')
        g.shell(f"taskset -c {smp} sh -c 'ls /proc/sys >/dev/null; "
                "echo kmalloc 320 0 5 >/proc/kf_calls'")
        rows = [r['cpu'] for r in g.rows('ka calls -n 0')
                if r.get('type') == 'call']
        assert rows == [smp] * 5, g.hmp_qmp('ka calls')
        g.shell(f'echo 0 >{online}')
        g.qmp_connection.cmd('device_del', {'id': 'new'})
        test_hotplug.wait_for(g, lambda cpus: smp not in cpus)
        before = g.stat()
        g.shell('ls -lR /proc/sys >/dev/null')
        stat = g.stat()
        assert stat['events.alloc'] > before['events.alloc'] + 100, stat
        assert not unseen(stat), (unseen(stat), stat.get('tracing.unseen'))
        text = g.hmp_qmp('ka error')
        assert text.startswith('no errors'), text
        return test_kvm.figures(stat)


# --- migration -------------------------------------------------------------

def save(g, path):
    g.qmp('migrate', uri='file:' + path)
    end = time.monotonic() + g.timeout
    while True:
        status = g.qmp('query-migrate')['status']
        if status == 'completed':
            break
        assert status != 'failed' and time.monotonic() < end, status
        time.sleep(1)


def migrate(g):
    save(g, STATE)
    g.qmp('quit')
    g.disconnect()
    g.qmp('query-status')


def wait_running(g):
    end = time.monotonic() + g.timeout
    while g.qmp('query-status')['status'] != 'running':
        assert time.monotonic() < end, g.qmp('query-status')
        time.sleep(0.5)


def listing(g):
    return re.sub('@[0-9]+us', '', g.hmp_qmp(
        'ka alloc start_kernel --state A -w -n 50'))


def text_of(g):
    """Return the kernel's text as gdb reads it."""
    path = g.path('text')
    g.gdb([f'dump binary memory {path} {g.symbol("_stext"):#x} '
           f'{g.symbol("_etext"):#x}'])
    with open(path, 'rb') as f:
        return f.read()


def migration(kernel, smp, share):
    """The map moves with the guest."""
    test_kvm.make_share(share, kernel)
    with start(kernel, smp, share, 'moved', end='shell',
               make=lambda one: outer.one_after_another(
                   one(), one('-incoming', 'file:' + STATE))) as g:
        before, blocks = g.stat(), listing(g)
        assert ' A ' in blocks, blocks
        migrate(g)
        wait_running(g)
        assert listing(g) == blocks, 'other blocks'
        g.shell('ls -lR /proc/sys >/dev/null')
        stat = g.stat()
        assert stat['kvm.breakpoints'] == before['kvm.breakpoints'], stat
        assert stat['events.alloc'] > before['events.alloc'] + 100, stat
        assert not unseen(stat), (unseen(stat), stat.get('tracing.unseen'))
        assert not stat['gaps'], stat
        test_kvm.error(g, share)
        test_kvm.check_console(g.console.partition('ka_errors')[0])
        return test_kvm.figures(stat)


# --- fast-forward ----------------------------------------------------------

# A CPU that both accelerators have, which shows nothing of KVM to the guest;
# and the last machine that has no clock of KVM then.
MODEL = ('-cpu', 'qemu64,-svm,kvm=off', '-machine', 'pc-q35-5.1')


def tcg_command(folder, kernel, smp, share, tmp):
    """Return the command of a QEMU with TCG with the devices of the guest that
    outer.start() makes, and a state in TMP."""
    path = paths()
    initrd = os.path.join(tmp, 'initrd')
    with open(initrd, 'wb') as f:
        f.write(outer.guest_initrd(path['initrd-' + kernel], share))
    args = [path['qemu'], '-L', '/usr/share/seabios', '-L', '/usr/share/qemu',
            '-accel', 'tcg', *MODEL, '-smp', str(smp), '-m', '256',
            '-nodefaults', '-display', 'none', '-no-reboot',
            '-kernel', kernel_file(kernel), '-initrd', initrd,
            *drive(make_disk(os.path.join(tmp, 'disk')))]
    for name in outer.CONSOLES:
        at = os.path.join(folder, name + '.sock')
        args += ['-chardev',
                 f'socket,id={name},path={at},server=on,wait=off']
    return args + [
        '-serial', 'chardev:serial', '-mon', 'chardev=monitor',
        '-mon', 'chardev=qmp,mode=control', '-gdb', 'chardev:gdb',
        '-plugin', f'file={path["plugin"]},access=on',
        '-incoming', 'file:' + os.path.join(tmp, 'state')]


def fast_forward(kernel, smp, share):
    """A guest that booted with KVM goes on with TCG, which checks accesses. Its
    text there, where ka changes none, is what gdb read with KVM."""
    test_kvm.make_share(share, kernel)
    tmp = os.path.dirname(share)
    with start(kernel, smp, share, 'forward', end='shell',
               out=os.path.join(tmp, 'out'),
               make=lambda one: one(*MODEL)) as g:
        blocks, text = listing(g), text_of(g)
        assert len(text) > 8 << 20, f'only {len(text)} bytes'
        save(g, '/tmp/journal-state')
        outer.fetch_journal(g, os.path.join(tmp, 'state'), 'journal-state')
    with Guest(kernel=kernel, smp=smp, name=f'kvm-forward-tcg-{kernel}-{smp}',
               timeout=test_kvm.TIMEOUT, qemu=('-incoming', ''),
               argv=lambda folder: tcg_command(folder, kernel, smp, share,
                                               tmp)) as g:
        wait_running(g)
        assert listing(g) == blocks, f'{listing(g)} {blocks}'
        assert text_of(g) == text, 'the text has changed'
        before = g.stat()
        g.shell('ls -lR /proc/sys >/dev/null')
        stat = g.stat()
        assert stat['events.alloc'] > before['events.alloc'] + 100, stat
        assert not stat['gaps'] and not stat['kvm.breakpoints'], stat
        test_kvm.error(g, share)
        return g.hmp_qmp('ka access')


# --- a QEMU that is killed -------------------------------------------------

def stat_of(path):
    """Return the lines of `ka stat` on a journal."""
    return subprocess.run([journal.program(), '-f', path, 'stat', '-v'],
                          check=True, text=True, capture_output=True).stdout


def count(text, name):
    return int(re.search(rf'^ *{re.escape(name)}\s+(\d+)', text, re.M)[1])


def wait_next(g):
    """Wait until the first QEMU was killed, and the next one answers."""
    g.disconnect()
    end = time.monotonic() + g.timeout
    while 'OUTER-NEXT' not in g.qemu_log:
        assert time.monotonic() < end, g.qemu_log
        time.sleep(0.2)
    g.qmp('query-status')
    assert 'OUTER-NEXT 137' in g.qemu_log, g.qemu_log
    assert 'KA-DONE' not in g.console, 'it was killed too late'


def kill(kernel, smp, share):
    """Nothing is left behind on the host, and the journal can be read."""
    test_kvm.make_share(share, kernel)
    out = os.path.join(os.path.dirname(share), 'out')
    with start(kernel, smp, share, 'killed', out=out, before=wait_next,
               make=lambda one: outer.one_after_another(
                   outer.killed(one(), KILL_BYTES), one())) as g:
        stat = g.stat()
        assert not unseen(stat), (unseen(stat), stat.get('tracing.unseen'))
        assert stat['events.alloc'] > 10000, stat
        outer.fetch_journal(g, share + '.killed', 'journal-killed')
        text = stat_of(share + '.killed')
        assert count(text, 'events.alloc') > 1000, text
        assert not test_kvm.COMPLAINTS.search(g.qemu_log), g.qemu_log
        return test_kvm.figures(stat), count(text, 'events.alloc')


CASES = kexec, hotplug, migration, kill, fast_forward


def run(tap, kernel, smp, label, chosen):
    for case in CASES:
        if case.__name__ in chosen:
            test_kvm.run_case(tap, label, case, kernel, smp)


if __name__ == '__main__':
    test_kvm.run_chosen(__doc__, [c.__name__ for c in CASES], run)
