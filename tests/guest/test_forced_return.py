#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU's patches that let a plugin write registers, set the program counter
and stop the VM, without the tracer: a small guest calls one function, by name
and by pointer, and a small plugin makes some of the calls return at once.

Oracle: the guest's own counts of results and of runs of the function's body;
with -icount the number of instructions, which must be the clock at each one.
"""
import argparse
import os
import re
import subprocess
import tempfile
import time

from lib.rsp import Stub
from lib.tap import Tap
from scripts.lib.guest import Guest, GuestError
from scripts.lib.prepared import paths
from scripts.lib.qmp import Qmp, connect

HERE = os.path.dirname(os.path.realpath(__file__))
BUILD = os.path.join(HERE, 'forced', 'build.sh')
FORCED = 0x1234567890abcdef
ROUNDS = 2000

# Options of ka-run; arguments of QEMU with {} for the guest's file without
# suffix; gdb's numbers of the registers of the result and the PC; the folder
# of QEMU in `scripts/setup --paths`.
MACHINES = {
    'x86_64': (('--disk-boot',), ('-bios', '{}.rom'), 0, 16, 'qemu'),
    # PSCI starts the second vCPU; no firmware.
    'aarch64': ((), (), 0, 32, 'qemu-aarch64'),
    'riscv64': (('--cpu', 'rv64,zicfilp=on'), ('-bios', 'none'), 10, 32,
                'qemu-riscv64'),
}


class Bench:
    """The guests and the plugin of one architecture."""

    def __init__(self, arch, folder, include):
        self.arch, self.folder = arch, folder
        self.more, self.qemu, self.result, self.pc, _ = MACHINES[arch]
        self.plugin = os.path.join(folder, 'force.so')
        if not os.path.exists(self.plugin):
            self._run('plugin', folder, include)
        for name, cpus, timer in (('one', 1, 0), ('two', 2, 0),
                                  ('timer', 1, 1)):
            self._run(arch, folder, name, cpus, ROUNDS, timer)
        self.symbols = self._symbols(self.elf('one'))

    @staticmethod
    def _run(*words):
        subprocess.run([BUILD, *map(str, words)], check=True)

    @staticmethod
    def _symbols(elf):
        out = subprocess.run(['nm', elf], check=True, text=True,
                             capture_output=True).stdout
        return {name: int(va, 16) for va, _, name in
                (line.split() for line in out.splitlines())}

    def elf(self, name):
        return os.path.join(self.folder, f'{self.arch}-{name}.elf')

    def guest(self, name='one', qemu=(), options=(), **plugin):
        """Start the guest NAME with options of the plugin."""
        words = {'entry': hex(self.symbols['victim']), 'value': hex(FORCED),
                 **plugin}
        spec = ','.join([self.plugin, *(f'{k}={v}' for k, v in words.items())])
        base = self.elf(name)[:-len('.elf')]
        return Guest(kernel=self.elf(name), arch=self.arch, end=None,
                     plugin=False, smp=2 if name == 'two' else 1, mem='256M',
                     timeout=60, name=f'forced-{self.arch}-{name}',
                     options=('--initrd', 'none', *self.more, *options),
                     qemu=(*(q.format(base) for q in self.qemu), *qemu,
                           '-plugin', spec, '-d', 'plugin'))


def finish(guest):
    """Wait for the end of QEMU; return what the guest printed of each vCPU and
    of the whole run, and what the plugin did, as dictionaries."""
    guest.wait_exit()
    deadline = time.monotonic() + 5
    while 'KA-END' not in guest.console and time.monotonic() < deadline:
        time.sleep(0.05)
    console = guest.console
    cpus = [numbers(line) for line in re.findall('KA-CPU (.*)', console)]
    end = re.search('KA-END (.*)', console)
    did = re.search('FORCE (.*)', guest.qemu_log)
    if not end or not did:
        raise GuestError(f'the guest failed:\n{console}\n{guest.qemu_log}')
    return cpus, numbers(end[1]), numbers(did[1], 10)


def numbers(text, base=16):
    return {k: int(v, base) for k, v in
            (word.split('=') for word in text.split())}


def total(cpus, name):
    return sum(cpu[name] for cpu in cpus)


def check_counts(guest, forced, calls):
    """The guest has seen just those results that the plugin forced."""
    cpus, end, did = finish(guest)
    assert total(cpus, 'bad') == 0, cpus
    assert total(cpus, 'forced') == forced == did['forced'], (cpus, did)
    assert total(cpus, 'ran') == calls - forced, cpus
    assert all(cpu['runs'] == cpu['ran'] for cpu in cpus), cpus
    assert did['calls'] == calls, did
    return end, did


def check_clock(did):
    assert did['wrong'] == 0, f'the clock is not the count: {did}'
    assert did['insns'] > 20 * ROUNDS, did


# --- tests -------------------------------------------------------------------

def forced(bench):
    with bench.guest(every=3) as g:
        check_counts(g, 2 * ROUNDS // 3, 2 * ROUNDS)


def two_vcpus(bench):
    with bench.guest('two', every=3) as g:
        check_counts(g, 4 * ROUNDS // 3, 4 * ROUNDS)


def with_icount(bench):
    for every in (0, 1, 3):
        with bench.guest('timer', options=['--icount'], every=every,
                         count='on') as g:
            end, did = check_counts(
                g, 2 * ROUNDS // every if every else 0, 2 * ROUNDS)
            check_clock(did)
            assert end['ticks'] > 1, end


def record_and_replay(bench):
    """Interrupts come at the recorded instructions, or the replay fails."""
    found = []
    with tempfile.TemporaryDirectory(prefix='ka-forced.') as folder:
        for how in ('record', 'replay'):
            log = os.path.join(folder, 'rr.bin')
            with bench.guest('timer', options=['--icount'], every=3,
                             qemu=['-icount', f'rr={how},rrfile={log}']) as g:
                end, _ = check_counts(g, 2 * ROUNDS // 3, 2 * ROUNDS)
                found.append(end)
    assert found[0] == found[1] and found[0]['ticks'] > 1, found


def register(stub, number):
    return int.from_bytes(bytes.fromhex(stub.command(f'p{number:x}')),
                          'little')


def gdb_step(bench):
    """One step from the call ends where the forced call returns to."""
    s = bench.symbols
    with bench.guest(every=2, options=['--paused']) as g:
        with stub_of(g) as stub:
            stub.breakpoint(s['victim'])
            # The first call runs; the second one, by pointer, is forced.
            assert stub.go(30) and register(stub, bench.pc) == s['victim']
            stub.step()
            at = register(stub, bench.pc)
            assert s['victim'] < at < s['victim'] + 16, hex(at)
            assert stub.go(30) and register(stub, bench.pc) == s['victim']
            stub.step()
            assert register(stub, bench.pc) == s['after_pointer']
            assert register(stub, bench.result) == FORCED
            stub.step()
            at = register(stub, bench.pc)
            assert at > s['after_pointer'], hex(at)
            stub.breakpoint(s['victim'], False)
        check_counts(g, ROUNDS, 2 * ROUNDS)


def gdb_set_pc(bench):
    """A debugger that leaves the function by hand, called by pointer."""
    s = bench.symbols
    with bench.guest(options=['--paused']) as g:
        with stub_of(g) as stub:
            stub.breakpoint(s['victim'])
            assert stub.go(30) and stub.go(30)
            leave_by_hand(bench, stub)
            stub.breakpoint(s['victim'], False)
        cpus, _, did = finish(g)
        assert total(cpus, 'forced') == 1 and total(cpus, 'bad') == 0, cpus
        assert did['forced'] == 0, did


def leave_by_hand(bench, stub):
    def put(number, value):
        data = value.to_bytes(8, 'little').hex()
        assert stub.command(f'P{number:x}={data}') == 'OK'

    put(bench.result, FORCED)
    if bench.arch == 'x86_64':
        put(7, register(stub, 7) + 8)
    put(bench.pc, bench.symbols['after_pointer'])


def stub_of(guest):
    guest.qmp('query-status')   # QEMU is there
    return Stub(guest.path('gdb.sock'), 30)


def wait_debug(ask):
    deadline = time.monotonic() + 30
    while ask('query-status')['status'] != 'debug':
        assert time.monotonic() < deadline, ask('query-status')
        time.sleep(0.05)


def stop(bench):
    """The monitor sees the VM stopped at the call, and lets it go on; with and
    without interrupts that are due."""
    for name, options in (('one', ()), ('timer', ['--icount']), ('two', ())):
        counting = {'count': 'on'} if options else {}
        with bench.guest(name, options=options, stop=1001, every=3,
                         **counting) as g:
            wait_debug(g.qmp)
            with stub_of(g) as stub:
                # The stopped vCPU is not known: look at all.
                where = [pc_of(bench, stub, n + 1)
                         for n in range(2 if name == 'two' else 1)]
                assert bench.symbols['victim'] in where, where
            calls = (4 if name == 'two' else 2) * ROUNDS
            _, did = check_counts(g, calls // 3, calls)
            assert did['stopped'] == 1, did
            if options:
                check_clock(did)


def pc_of(bench, stub, vcpu):
    stub.select(vcpu)
    return register(stub, bench.pc)


def stop_under_gdb(bench):
    """gdb is told of a trap of the vCPU that made the call, and can step."""
    s = bench.symbols
    for name in ('one', 'two'):
        with bench.guest(name, stop=1001, every=3,
                         options=['--paused']) as g:
            with stub_of(g) as stub:
                assert stub.go(30)
                # Without a selection, registers are those of that vCPU.
                assert register(stub, bench.pc) == s['victim']
                stub.step()
                at = register(stub, bench.pc)
                assert s['victim'] < at < s['victim'] + 16, hex(at)
            calls = (4 if name == 'two' else 2) * ROUNDS
            _, did = check_counts(g, calls // 3, calls)
            assert did['stopped'] == 1, did


def without_gdbserver(guest, folder):
    """Start the QEMU of a paused guest once more, without -gdb and not paused;
    its sockets are in FOLDER."""
    with open(f'/proc/{guest.proc.pid}/cmdline', encoding='ascii') as f:
        args = f.read().split('\0')[:-1]
    args.remove('-S')
    at = args.index('-gdb')
    del args[at:at + 2]
    return subprocess.Popen([a.replace(guest.dir, folder) for a in args],
                            stderr=subprocess.PIPE, text=True)


def stop_without_gdb(bench):
    """The QEMU of ka-run always has a gdbserver; that of others has none."""
    with bench.guest(options=['--paused'], stop=1001, every=3) as g, \
            tempfile.TemporaryDirectory(prefix='ka-forced.') as folder:
        g.qmp('query-status')   # QEMU is there
        proc = without_gdbserver(g, folder)
        try:
            with connect(os.path.join(folder, 'serial.sock'), 30):
                qmp = Qmp(os.path.join(folder, 'qmp.sock'), 30)
                wait_debug(qmp.cmd)
                qmp.cmd('cont')
                did = re.search('FORCE (.*)', proc.communicate(timeout=60)[1])
        finally:
            proc.kill()
        did = numbers(did[1], 10)
        assert did['stopped'] == 1 and did['calls'] == 2 * ROUNDS, did


TESTS = (
    ('calls by name and by pointer return the value', forced),
    ('the same on two vCPUs at a time', two_vcpus),
    ('-icount: what did not run is not counted', with_icount),
    ('a recorded run with forced returns is replayed to its end',
     record_and_replay),
    ("gdb's step over a forced return ends there", gdb_step),
    ('gdb leaves a function that was called by pointer', gdb_set_pc),
    ('the VM stops at a call, before it runs, and goes on', stop),
    ('gdb sees that stop', stop_under_gdb),
    ('the VM stops the same if QEMU has no gdbserver', stop_without_gdb),
)


def run_tests(tap, arch, folder):
    qemu = paths().get(MACHINES[arch][-1], '')
    if not os.path.exists(qemu):
        tap.skip(arch, 'no QEMU: scripts/setup --only qemu-...')
        return
    try:
        bench = Bench(arch, folder,
                      os.path.join(os.path.dirname(qemu), 'include'))
    except subprocess.CalledProcessError as e:
        if e.returncode != 77:
            raise
        tap.skip(arch, 'no compiler: scripts/setup --only cross-...')
        return
    for title, test in TESTS:
        with tap.test(f'{arch}: {title}'):
            test(bench)


def main():
    ap = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    ap.add_argument('--arch', action='append', choices=MACHINES)
    args = ap.parse_args()
    tap = Tap()
    with tempfile.TemporaryDirectory(prefix='ka-forced.') as folder:
        for arch in args.arch or MACHINES:
            run_tests(tap, arch, folder)
    tap.done()


if __name__ == '__main__':
    main()
