#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""With the file of `ka symbols`, gdb and lldb name and walk each frame of a
stripped kernel and its modules, through interrupts and exceptions. Oracles:
ka's own walk of the same stopped vCPUs (`ka bt`), which test_oracle_stacks
compares with the kernel's; readelf and llvm-dwarfdump read the file.
scripts/ka-gdb.py loads the file by itself, and again after a module was loaded.
lldb uses `bt` of scripts/ka_lldb.py.

usage: test_symbols.py [--short] [--kernel K]... [--stops N]
                       [--debugger gdb|lldb]... [--gdb PROGRAM]
                       [--lldb PROGRAM]
"""
import json
import os
import random
import re
import struct
import subprocess
import tempfile
import time

from lib import oracle, programs
from lib.gdbcli import Gdb
from lib.linkregister import Links
from lib.lldbcli import Lldb
from lib.tap import Tap
from scripts.lib.guest import Guest
from scripts.lib.prepared import paths

HELPER = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..',
                      'scripts', 'ka-gdb.py')
KERNELS = '6.12', '5.10', '6.1', '6.18', '7.3', '6.12-rt', 'arm64-6.12', \
    'riscv64-6.12'
# Work that enters the kernel by system calls, faults, interrupts, softirqs.
WORK = ('(while :; do find /sys /proc -type f -exec true {} \\; ; done) '
        '>/dev/null 2>&1 & '
        '(while :; do dd if=/dev/zero of=/tmp/f bs=64k count=20; '
        'cat /tmp/f | cat >/dev/null; done) >/dev/null 2>&1 & ')

# A function of the module that is loaded, and its callers.
WRITE = 'ka_chardev_write'
CALLERS = {'i386:x86-64': ('vfs_write', 'do_syscall_64', 'entry_SYSCALL'),
           'aarch64': ('vfs_write', 'do_el0_svc', 'el0t_64_sync'),
           'riscv:rv64': ('vfs_write', 'do_trap_ecall_u', 'handle_exception')}

# Entries of interrupts and exceptions.
ENTRIES = ('asm_', 'handle_exception+', 'el1h_64_sync+', 'el1h_64_irq+',
           'el1h_64_fiq+', 'el1h_64_error+')

# Runs in gdb: prints what gdb walks, a line of JSON for each vCPU.
WALK = r'''
import json
def ka_frame(frame):
    return [frame.pc() & (1 << 64) - 1, (frame.name() or '').split('.')[0]]
def ka_walk():
    for thread in sorted(gdb.selected_inferior().threads(),
                         key=lambda t: t.num):
        thread.switch()
        frame, frames, why = gdb.newest_frame(), [], ''
        try:
            while frame and len(frames) < 300:
                frames.append(ka_frame(frame))
                why = gdb.frame_stop_reason_string(frame.unwind_stop_reason())
                frame = frame.older()
        except gdb.error as e:
            why = 'error: ' + str(e)
        print('KA-WALK', json.dumps([frames, why]))
'''
PYTHON = 'python exec(' + repr(WALK) + ')'


def of_kernel(frames):
    """Return the frames before the first one of user code."""
    n = next((i for i, f in enumerate(frames) if f[0] < 1 << 63), len(frames))
    return frames[:n]


def function(symbol):
    """Return the function's name without what compilers append: gdb cuts
    parts of that off."""
    return re.match(r'[^+.]*', symbol).group(0)


def is_same(ours, theirs):
    """Compare two frames. gdb takes fpu__clear_user_states for a name of Ada,
    fpu.clear_user_states, of which ka_frame() keeps the first part."""
    return ours[0] == theirs[0] and \
        theirs[1] in (ours[1], ours[1].split('__')[0])


def frames_of(ours):
    """Return [address, name] of each frame that ka found."""
    return [[int(pc, 16), function(symbol)] for pc, symbol in
            zip(ours['stack'], ours['stack_symbols'])]


def may_have_no_record(frames, i):
    """Without ORC ka walks x86-64 by frame records, as the kernel does. A
    function has none at its first and last instructions, so ka leaves out the
    caller. A debugger knows these places: where a vCPU stands, or was
    interrupted."""
    return i == 0 or frames[i - 1][1].startswith('asm_')


def without_left_out(ours, theirs):
    """Return THEIRS without the callers that ka left out, and their number."""
    left, n = list(theirs), len(theirs)
    for i in range(1, len(ours) + 1):
        rest = left[i:i + 2]
        if rest and rest[0][1] and may_have_no_record(ours, i - 1) and \
                (i == len(ours) or not is_same(ours[i], rest[0])) and \
                (i == len(ours) or is_same(ours[i], rest[-1])):
            del left[i]
    return left, n - len(left)


def compare(ours, theirs, ends):
    """Return what differs between the frames of ka and of a debugger, or None.
    ENDS: why ka and the debugger end the stack."""
    for i, want in enumerate(ours):
        if i >= len(theirs):
            return f'frame {i}: {want}, debugger ends: {ends[1]}'
        if not is_same(want, theirs[i]):
            return f'frame {i}: {want}, debugger has {theirs[i]}'
    if len(theirs) > len(ours):
        return f'ka ends ({ends[0]}), debugger goes on: {theirs[len(ours)]}'
    return None


# ka does not find all callers here.
LEAVES_OUT = 'frame pointers'


class Stops:
    """Compares stacks of random stops, and counts them. @debugger: a Gdb or
    Lldb. @ours, @theirs: return the stacks of all vCPUs, by ka and by the
    debugger: a debugger's stack is its frames, and why it ends. @rules: what
    those of the file are made of; None: neither ka nor a debugger can walk, but
    both name the first frame. @links: (arm64) callers that may be in a register
    only. @words: reads words of code."""

    def __init__(self, debugger, ours, theirs, rules):
        self.debugger, self.ours, self.theirs = debugger, ours, theirs
        self.rules = rules
        self.links = self.words = None
        self.stacks = self.interrupts = self.left_out = self.bad_orc = 0
        self.wrong, self.ends = [], {}

    def one(self, ours, theirs, why):
        """Compare a stack, unless the vCPU runs user code."""
        if not ours['stack']:
            return
        self.stacks += 1
        self.interrupts += any(s.startswith(ENTRIES) for s in
                               ours['stack_symbols'][:-1])
        self.ends[ours['stop']] = self.ends.get(ours['stop'], 0) + 1
        theirs = of_kernel(theirs)
        frames = frames_of(ours)
        if self.links:
            self.links.add(ours['stack_symbols'], [f[0] for f in frames],
                           [f[1] for f in theirs])
        if not self.rules:
            assert ours['stop'] == 'no-unwinder', ours
            theirs = theirs[:1]
        if self.rules == LEAVES_OUT:
            theirs, n = without_left_out(frames, theirs)
            self.left_out += n
        differs = compare(frames, theirs, (ours['stop'], why))
        if differs and self.has_bad_orc(ours['stack_symbols'][0],
                                        frames[0][0]):
            self.bad_orc += 1
        elif differs:
            self.wrong.append((differs, ours, theirs))

    def has_bad_orc(self, symbol, pc):
        """The ORC data of 6.1 to 7.3 is wrong at one instruction of entries of
        exceptions, `mov %rax,%rsp` behind `call error_entry`: all registers are
        saved already. If a vCPU stands there, callers are garbage. If it stands
        at the `ret` of error_entry, gdb returns there by a rule of its own,
        ka goes on at the interrupted code."""
        if self.rules != 'ORC' or not self.words:
            return False
        code = struct.pack('<2I', *self.words(self.debugger, pc - 5, 2))
        return symbol.startswith('error_entry+') and code[5] == 0xc3 or \
            symbol.startswith('asm_') and code[0] == 0xe8 and \
            code[5:] == b'\x48\x89\xc4'

    def check(self):
        ours = self.ours(self.debugger)
        theirs = self.theirs(self.debugger)
        assert len(ours) == len(theirs), (ours, theirs)
        for stack, (frames, why) in zip(ours, theirs):
            self.one(stack, frames, why)

    def run(self, n):
        """Stop at random times until N stacks are compared."""
        while self.stacks < n:
            self.debugger.stop()
            self.check()
            self.debugger.go()
            time.sleep(random.uniform(0.005, 0.05))

    def check_links(self):
        """Check the callers that may be in a register only."""
        if self.links:
            self.debugger.stop()
            self.links.check(lambda va, n: self.words(self.debugger, va, n))

    def said(self):
        if self.links:
            return f'{self.stacks} stacks, {self.interrupts} through ' \
                   f'interrupts, {len(self.wrong)} differ, ends: ' \
                   f'{self.ends}, {self.links.said()}'
        return f'{self.stacks} stacks, {self.interrupts} through ' \
               f'interrupts, {len(self.wrong)} differ, ends: {self.ends}' + \
               (f', {self.bad_orc} where ORC is wrong' if self.bad_orc
                else '') + \
               (f', {self.left_out} callers that ka left out'
                if self.rules == LEAVES_OUT else '')

    def report(self):
        print('#', self.said())
        for differs, ours, theirs in self.wrong[:10]:
            print('#', differs)
            print('#   ka ', ours['stack_symbols'])
            print('#   it ', [f'{name} {pc:x}' for pc, name in theirs])
        assert not self.wrong, self.wrong[0][0]


def stacks_of_ka(text):
    """Return the stacks that ka bt -j printed."""
    return [json.loads(line[line.index('{'):]) for line in text.splitlines()
            if '"type":"vcpu_stack"' in line]


def links_of(guest, path):
    """Return what checks the callers in link registers, None: not arm64."""
    return Links(path) if guest.arch.gdb_name == 'aarch64' else None


def words_in(text):
    """Return the words of memory that a debugger printed behind addresses."""
    return [int(word, 16) for line in text.splitlines() for word in
            re.findall(r'0x([0-9a-f]{8})\b', line.partition(':')[2])]


def write_file(guest):
    """Return the path of a complete file, and what its rules are made of, None
    if it has none."""
    path, said = guest.path('symbols'), ': symbols 0: '
    program = os.path.join(paths()['build'], 'monitor-cmds', 'ka')
    for _ in range(50):
        if ': symbols 0: ' not in said:
            break
        said = subprocess.run([program, '-q', guest.path('qmp.sock'),
                               'symbols', '-o', path], check=True, text=True,
                              stdout=subprocess.PIPE).stdout
        print('#', said.strip())
    assert ': symbols 0: ' not in said, said
    rules = re.search(r'ranges of code by ([\w ]+)', said)
    return path, rules and rules[1]


def check_file(path):
    """Programs that know nothing of ka read the file."""
    for command in (['readelf', '-W', '--debug-dump=frames', path],
                    ['readelf', '-WSs', path],
                    ['llvm-dwarfdump', '--verify', path]):
        done = subprocess.run(command, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        assert done.returncode == 0 and 'arning:' not in done.stdout, \
            (command, re.findall('.*arning:.*', done.stdout)[:5],
             done.stdout[-300:])


# --- gdb ---------------------------------------------------------------------

def stops_in_gdb(gdb, rules):
    def theirs(gdb):
        return [json.loads(line.partition('KA-WALK ')[2]) for line in
                gdb.command('python ka_walk()').splitlines()
                if 'KA-WALK ' in line]

    gdb.command(PYTHON)
    return Stops(gdb, lambda gdb: stacks_of_ka(
        gdb.command('monitor ka bt -j -n 0')), theirs, rules)


def walk_in_gdb(guest, path, n, program, rules):
    gdb = Gdb(guest, program)
    print('#', gdb.command('show version').splitlines()[0])
    found = stops_in_gdb(gdb, rules)
    found.links = links_of(guest, path)
    found.words = lambda gdb, va, n: words_in(gdb.command(f'x/{n}wx {va:#x}'))
    try:
        gdb.command('symbol-file ' + path)
        found.run(n)
        found.report()
        found.check_links()
    finally:
        gdb.close()
    assert found.interrupts or n < 100 or not rules, \
        'no stack goes through an interrupt'


def helper_follows(guest, program, rules):
    """ka-gdb.py has loaded the kernel when the VM stops, and a module when the
    VM stops after the module was loaded. bt prints names in all frames."""
    gdb = Gdb(guest, program)
    found = stops_in_gdb(gdb, rules)
    try:
        gdb.command('source ' + HELPER)
        gdb.stop()
        said = gdb.command('info address ' + WRITE)
        assert f'No symbol "{WRITE}"' in said, said
        said = gdb.command('info address vfs_write')
        assert 'is at 0x' in said, said
        gdb.go()
        guest.shell('insmod /share/ka_chardev.ko')
        gdb.stop()
        said = gdb.command('hbreak ' + WRITE)
        assert 'Hardware' in said, said
        gdb.go()
        guest.shell('(sleep 1; echo 1 >/dev/ka_chardev) & true')
        gdb.hit()
        said = gdb.command('bt')
        path = gdb.command('python print(SYMBOLS.path)')
        found.links = links_of(guest, re.search(r'\S*/kernel-\d+', path)[0])
        found.check()       # selects other vCPUs
        folder = re.search(r'\S*ka-gdb-\w+',
                           gdb.command('python print(SYMBOLS.folder)'))[0]
        assert os.path.exists(folder), folder
        gdb.command('delete')
    finally:
        gdb.close()
    found.report()
    callers = CALLERS[guest.arch.gdb_name] if rules else ()
    for name in WRITE, *callers:
        assert re.search(rf'#\d+ +0x[0-9a-f]+ in {name}', said), said
    assert '<signal handler' not in said, said
    frames = re.findall(r'^#\d+ +0x([0-9a-f]+) in ', said, re.M)
    assert all(int(va, 16) >> 63 for va in frames[:-1]), said
    assert not os.path.exists(folder), folder


# --- lldb --------------------------------------------------------------------

PACKET = 'process plugin packet monitor ka bt -j -n 0'
THREAD = re.compile(r'^[ *]*thread #\d+')
FRAME = re.compile(r'^[ *]*frame #\d+: 0x([0-9a-f]+)(?: .*`(\w+))?')


class LldbStops(Stops):
    """lldb 14 does not know that its first frame may be an entry. So it takes
    the next pc for a return address, and names the function before if the first
    instruction of one was interrupted."""

    def one(self, ours, theirs, why):
        names = ours.get('stack_symbols', [])
        if len(theirs) > 1 and names[1:] and names[0].startswith(ENTRIES) and \
                names[1].partition('[')[0].endswith('+0x0'):
            theirs[1][1] = function(names[1])
        super().one(ours, theirs, why)


def stacks_of_lldb(lldb):
    """Return all stacks; lldb's threads are the vCPUs in order. What makes lldb
    end a stack is not printed."""
    stacks = []
    for line in lldb.command('bt all').splitlines():
        if THREAD.match(line):
            stacks.append(([], ''))
        elif FRAME.match(line):
            pc, name = FRAME.match(line).groups()
            stacks[-1][0].append([int(pc, 16), name or ''])
    return stacks


def walk_in_lldb(guest, path, n, program, rules):
    lldb = Lldb(guest, path, program)
    print('#', lldb.command('version').splitlines()[0])
    found = LldbStops(lldb, lambda lldb: stacks_of_ka(lldb.command(PACKET)),
                      stacks_of_lldb, rules)
    found.links = links_of(guest, path)
    found.words = lambda lldb, va, n: words_in(
        lldb.command(f'memory read --force -s 4 -f x -c {n} {va:#x}'))
    try:
        found.run(n)
        found.report()
        found.check_links()
    finally:
        lldb.close()


# --- the test ----------------------------------------------------------------

def run(tap, kernel, n, debuggers, gdb, lldb):
    with tempfile.TemporaryDirectory() as share:
        oracle.make_share(share, [], kernel, modules=True)
        with Guest(kernel=kernel, smp=2, end='shell', share=share, timeout=300,
                   name=f'symbols-{kernel}') as g:
            g.wait_marker('KA-READY')
            with tap.test(f'{kernel}: ka-gdb.py follows modules'):
                helper_follows(g, gdb, write_file(g)[1])
            path, rules = write_file(g)
            with tap.test(f'{kernel}: foreign programs read the file'):
                check_file(path)
            g.shell(WORK + 'echo')
            if 'gdb' in debuggers:
                with tap.test(f'{kernel}: gdb walks as ka does'):
                    walk_in_gdb(g, path, n, gdb, rules)
            # lldb 14 cannot read the registers of riscv64.
            if 'lldb' in debuggers and (lldb or
                                        g.arch.gdb_name != 'riscv:rv64'):
                with tap.test(f'{kernel}: lldb walks as ka does'):
                    walk_in_lldb(g, path, n, lldb, rules)


def main():
    ap = programs.arguments(__doc__, '6.12 only, 20 stacks in each debugger',
                            smp=False)
    ap.add_argument('--stops', type=int, help='stacks for each kernel')
    ap.add_argument('--debugger', action='append', choices=('gdb', 'lldb'))
    ap.add_argument('--gdb', metavar='PROGRAM',
                    help='another gdb than that of the machine')
    ap.add_argument('--lldb', metavar='PROGRAM',
                    help='another lldb, which may know riscv64, too')
    args, tap = programs.parse(ap, KERNELS, KERNELS[:1]), Tap()
    for kernel in args.kernel:
        run(tap, kernel, args.stops or (20 if args.short else 1000),
            args.debugger or ('gdb', 'lldb'), args.gdb, args.lldb)
    tap.done()


main()
