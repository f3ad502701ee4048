#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""--accel of the programs that start guests: which accelerator they choose,
and what they say. No guest is started.

Oracle: a table of decisions. The probe, and QEMU, are stand-ins, so it is the
same with KVM and without.
"""
import contextlib
import os
import subprocess
import unittest.mock

from lib.own_folder import OwnFolder
from lib.tap import Tap
from scripts.lib import accel, qemuline
from scripts.lib.faultsweep import command as fault_sweep
from scripts.lib.findings import command as sweep
from scripts.lib.prepared import ROOT

tap = Tap()
work = OwnFolder('ka-accel.').top
BROKEN = 'there is no /dev/kvm'
ICOUNT = ('-icount', 'shift=0')
LOADED = ('-loadvm', 'a')

# wanted, architecture, options of the plugin, words of QEMU, what the probe
# finds -> the choice, or None if it is refused; a part of the text; is the
# probe made?
TABLE = (
    ('auto', 'x86_64', '', (), None, 'kvm', 'boots with it', True),
    ('auto', 'x86_64', '', (), BROKEN, 'tcg', BROKEN, True),
    ('auto', 'x86_64', ',access=on', (), None, 'tcg', 'access checks', False),
    ('auto', 'x86_64', 'access=cache:x', (), None, 'tcg', 'access', False),
    ('auto', 'x86_64', 'access-rules=x', (), None, 'kvm', 'boots', True),
    ('auto', 'x86_64', '', ICOUNT, None, 'tcg', 'counts instr', False),
    ('auto', 'x86_64', '', LOADED, None, 'tcg', 'needs --accel kvm', False),
    ('auto', 'aarch64', '', (), None, 'tcg', 'aarch64 guests', False),
    ('auto', 'riscv64', '', (), None, 'tcg', 'riscv64 guests', False),
    ('kvm', 'x86_64', '', (), None, 'kvm', 'asked for', True),
    ('kvm', 'x86_64', '', LOADED, None, 'kvm', 'asked for', True),
    ('kvm', 'x86_64', '', (), BROKEN, None, '--accel kvm: ' + BROKEN, True),
    ('kvm', 'x86_64', 'mem=1G,access=on', (), None, None,
     '--accel kvm: access checks need TCG', False),
    ('kvm', 'x86_64', '', ICOUNT, None, None, '--accel kvm: only TCG', False),
    ('kvm', 'aarch64', '', (), None, None, '--accel kvm: aarch64', False),
    ('tcg', 'x86_64', '', (), None, 'tcg', 'asked for', False),
    ('tcg', 'riscv64', '', ICOUNT, BROKEN, 'tcg', 'asked for', False),
    ('xen', 'x86_64', '', (), None, None, "'xen': auto, kvm or tcg", False),
)

for wanted, arch, options, words, state, name, text, probed in TABLE:
    with tap.test(f'{wanted} {arch} {options} {" ".join(words)}, '
                  f'{state or "KVM works"}: {name or "refused"}'), \
            unittest.mock.patch.object(accel, 'probe',
                                       return_value=state) as asked:
        try:
            got = accel.for_guest(wanted, arch, 'qemu', words=words,
                                  plugin_options=options)
            assert got.name == name and '\n' not in got.line, got
            assert got.line.startswith(f'accelerator: {name.upper()} ('), got
            said = got.why
        except accel.CannotRun as e:
            assert name is None, e
            said = str(e)
        assert text in said and '\n' not in said, said
        assert asked.called == probed
        if probed:      # a failure that is kept does not refuse --accel kvm
            assert asked.call_args.args[2] == (wanted == 'kvm')


def swept(told, state=None, **env):
    """Return what a sweep chooses, and what it says."""
    said = []
    with unittest.mock.patch.dict(os.environ, env), \
            unittest.mock.patch.object(accel, 'probe', return_value=state):
        if not env:
            os.environ.pop('KA_ACCEL', None)
        return accel.for_sweep(told, '6.12', said.append), said


with tap.test('sweeps take KVM only if they are told, or by KA_ACCEL'):
    name, text = swept(None)
    assert name == 'tcg' and text in ([], [accel.HINT]), text
    assert swept('auto')[0] == 'kvm'
    assert swept(None, KA_ACCEL='auto')[0] == 'kvm'
    assert swept('tcg', KA_ACCEL='kvm') == ('tcg', [])
    assert swept('auto', BROKEN) == ('tcg', [f'accelerator: TCG ({BROKEN})'])
    for parse, more in (sweep.parse_args, []), (fault_sweep.parse,
                                                ['--run', '/dev/null']):
        assert 'accel' in repr(parse(['--accel', 'auto', *more]))

# --- the probe ---------------------------------------------------------------

# A QEMU that counts its calls, and does what the file "does" says.
QEMU = """#!/bin/sh
echo "$*" >>"$0.calls"
. "$0.does"
"""
PANIC = "echo 'VFS: Unable to mount root fs on unknown-block(0,0)'\n"


def make_qemu(does):
    path = os.path.join(work, 'qemu')
    for name, text in (path, QEMU), (path + '.does', does), \
            (path + '.calls', ''):
        with open(name, 'w', encoding='ascii') as f:
            f.write(text)
    os.chmod(path, 0o755)
    return path


def calls(path):
    with open(path + '.calls', encoding='ascii') as f:
        return f.read().splitlines()


with tap.test('a kernel that boots, hangs, ends early, or does not start'):
    for does, want in ((PANIC, None), ('exec sleep 60', 'did not boot in 1 s'),
                       ('echo Linux version', 'did not boot'),
                       (PANIC + 'exit 1', 'did not boot'),
                       ('echo one >&2; echo two >&2; exit 1', 'boot: one')):
        why = accel.boots(make_qemu(does), '/k', seconds=1)
        assert why == want or (want and why.endswith(want)), why
        assert '-accel kvm -cpu host' in calls(
            os.path.join(work, 'qemu'))[0]


def patched(device, cache, kernel):
    """Use another device, and an empty cache."""
    return (unittest.mock.patch.object(accel, 'DEVICE', device),
            unittest.mock.patch.object(accel, 'why_no_device',
                                       return_value=None),
            unittest.mock.patch.dict(os.environ, KA_CACHE=cache),
            unittest.mock.patch.object(accel, 'probe_kernel',
                                       return_value=kernel))


def probe_all(qemu, cache, *again, kernel='/k'):
    """Return the answers of probe(), and how many of them said that they try
    it."""
    said = []
    with contextlib.ExitStack() as stack:
        for p in patched('/dev/null', cache, kernel):
            stack.enter_context(p)
        return [accel.probe(qemu, None, a, said.append) for a in again], \
            len(said)


with tap.test('the answer is kept; --accel kvm tries a failure again'):
    qemu = make_qemu(PANIC)
    got = probe_all(qemu, os.path.join(work, 'good'), False, True, False)
    assert got == ([None] * 3, 1) and len(calls(qemu)) == 1, got
    qemu = make_qemu('exit 1')
    answers, said = probe_all(qemu, os.path.join(work, 'bad'), False, False,
                              True)
    assert None not in answers and said == 2, answers
    qemu = make_qemu(PANIC)     # a newer file: another key
    got = probe_all(qemu, os.path.join(work, 'bad'), False)
    assert got == ([None], 1), got

with tap.test('a cache that cannot be written, and no kernel'):
    qemu = make_qemu(PANIC)
    for kernel, wanted in (None, accel.NO_KERNEL), ('/k', None):
        got = probe_all(qemu, os.path.join(work, 'none'), False,
                        kernel=kernel)
        assert got[0] == [wanted], got
    assert probe_all(qemu, '/dev/null/none', False) == ([None], 1)
    with unittest.mock.patch.object(accel, 'paths', return_value={}), \
            unittest.mock.patch.object(accel, 'default_kernel',
                                       return_value=''):
        assert accel.probe_kernel('/none') is None
        assert accel.probe_kernel(qemu) == qemu

with tap.test('devices that are none, or no KVM'):
    for path, want in (('/none/kvm', 'there is no /none/kvm'),
                       ('/proc/version', 'cannot be opened'),
                       ('/dev/null', 'cannot be opened')):
        with unittest.mock.patch.object(accel, 'DEVICE', path), \
                unittest.mock.patch('platform.machine',
                                    return_value='x86_64'):
            assert want in accel.why_no_device(), accel.why_no_device()
    with unittest.mock.patch('platform.machine', return_value='aarch64'):
        assert 'is aarch64' in accel.why_no_device()

# --- the programs ------------------------------------------------------------

with tap.test('ka-qemu: which command lines ask for KVM'):
    for line, asks in (('-enable-kvm', True), ('-accel kvm', True),
                       ('-M q35,accel=kvm:tcg', True), ('-accel tcg', False),
                       ('-append -enable-kvm', False), ('-m 1G', False)):
        assert qemuline.asks_for_kvm(line.split()) == asks, line
    line = ['-enable-kvm', '-cpu', 'host', '-machine',
            'q35,accel=kvm,kernel_irqchip=on']
    assert qemuline.rewrite(line, 'x86_64', '/x/libka.so', kvm=True) == \
        [*line, '-plugin', '/x/libka.so']
    for line in ['-object', 'sev-guest,id=a'], ['-xen-attach']:
        try:
            assert False, qemuline.rewrite(line, 'x86_64', kvm=True)
        except qemuline.CannotRun:
            pass


def refused(program, *words, **env):
    """Run a program that refuses its command line; return what it says."""
    done = subprocess.run([os.path.join(ROOT, 'scripts', program), *words],
                          text=True, capture_output=True, timeout=120,
                          check=False, env={**os.environ, **env})
    assert done.returncode == 2 and done.stderr.count('\n') == 1, done
    return done.stderr


with tap.test('ka-run, ka-qemu and fault-sweep: refused in one line'):
    assert refused('ka-run', '--accel', 'xen') == \
        'ka-run: --accel xen: auto, kvm or tcg (see --help)\n'
    assert refused('ka-qemu', 'x86_64', '-m', '1G', KA_ACCEL='kvm') == \
        'ka-qemu: KA_ACCEL=kvm: the command line does not ask for KVM\n'
    assert 'KA_ACCEL=kvm: only TCG counts' in refused(
        'ka-qemu', 'x86_64', '-enable-kvm', '-icount', '1', KA_ACCEL='kvm')
    assert "accelerator 'x': auto, kvm" in refused(
        'ka-qemu', 'x86_64', '-enable-kvm', KA_ACCEL='x')
    assert '--accel kvm: only TCG counts instructions' in refused(
        'ka-run', '--accel', 'kvm', '--icount', KA_NO_SETUP='1')
    assert '--accel kvm: time of one vCPU counts' in refused(
        'fault-sweep', '--accel', 'kvm', '--run', '/dev/null',
        KA_NO_SETUP='1')
tap.done()
