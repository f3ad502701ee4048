# SPDX-License-Identifier: GPL-2.0-or-later
"""lldb walks the stacks of a guest, with the file of `ka symbols`.

(lldb) command script import scripts/ka_lldb.py
(lldb) target create kernel.elf
(lldb) process connect --plugin gdb-remote unix-connect://.../gdb.sock
(lldb) bt all

Import it before lldb connects.

It replaces `bt`, with the same arguments. QEMU reads memory as the vCPU does
that lldb selected last. lldb selects a vCPU to read registers, not to read
memory. If the selected one does not map the kernel, lldb's own `bt` ends
early: on riscv64 a vCPU in the firmware (OpenSBI) has no virtual addresses.
This `bt` selects each vCPU before it reads that stack. `thread backtrace` is
still lldb's own command.

For riscv64 it gives lldb the DWARF number of sepc: until the entry of an
exception has saved sepc, the pc of the interrupted code is in no other place.
"""
import os

import lldb

INTEGER = ('zero ra sp gp tp t0 t1 t2 fp s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 '
           's5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6').split()
GENERIC = {'pc': lldb.LLDB_REGNUM_GENERIC_PC,
           'sp': lldb.LLDB_REGNUM_GENERIC_SP,
           'fp': lldb.LLDB_REGNUM_GENERIC_FP,
           'ra': lldb.LLDB_REGNUM_GENERIC_RA}

# Numbers in QEMU's gdb stub, and in DWARF (RISC-V ABIs Specification). In the
# stub a vCPU with vectors has another one for sepc; `maint print
# remote-registers` of gdb prints it.
STUB_PC, STUB_SEPC = 32, 387
DWARF_PC, DWARF_SEPC = 64, 4096 + 0x141

# A register of each architecture that nothing else reads, so lldb has to ask
# the vCPU for it. `register read` without --all does not print it.
UNUSED = {'x86_64': 'mxcsr', 'aarch64': 'fpcr', 'riscv64': 'stub33'}


# --- registers of riscv64 ----------------------------------------------------

def register(name, dwarf=None, of_set=0):
    found = {'name': name, 'set': of_set, 'bitsize': 64,
             'encoding': lldb.eEncodingUint, 'format': lldb.eFormatAddressInfo}
    if dwarf is not None:
        found['dwarf'] = found['ehframe'] = found['gcc'] = dwarf
    if name in GENERIC:
        found['generic'] = GENERIC[name]
    return found


def registers():
    """lldb numbers registers by their places. Those between pc and sepc have
    names only."""
    known = [register(name, i) for i, name in enumerate(INTEGER)]
    known.append(register('pc', DWARF_PC))
    known += [register(f'stub{i}', of_set=1)
              for i in range(STUB_PC + 1, STUB_SEPC)]
    known.append(register('sepc', DWARF_SEPC))
    for i, found in enumerate(known):
        found['offset'] = 8 * i
    return known


def architecture(target):
    return target.GetTriple().partition('-')[0] if target else ''


def get_dynamic_setting(target, name):
    """Return the registers of riscv64. lldb calls this when it connects. For
    other architectures it asks QEMU if it gets None."""
    if name != 'gdb-server-target-definition' or \
            architecture(target) != 'riscv64':
        return None
    return {'sets': ['general purpose registers', 'registers by number'],
            'registers': registers(),
            'host-info': {'triple': 'riscv64-unknown-linux',
                          'endian': lldb.eByteOrderLittle},
            'g-packet-size': 8 * (STUB_PC + 1)}


# --- bt ----------------------------------------------------------------------

def walk(thread, unused):
    """Select a vCPU, and walk its stack: lldb keeps the frames that it
    finds."""
    thread.GetFrameAtIndex(0).FindRegister(unused).GetValue()
    thread.GetNumFrames()


def backtrace(debugger, command, context, result, _internal_dict):
    """Show the stack of the current vCPU, with a number that many frames of
    it, with `all` the stacks of all vCPUs. bt [<digit> | all]"""
    unused = UNUSED.get(architecture(context.GetTarget()))
    threads = context.GetProcess() if 'all' in command.split() else \
        [context.GetThread()]
    for thread in threads:
        if unused and thread:
            walk(thread, unused)
    debugger.GetCommandInterpreter().HandleCommand('_regexp-bt ' + command,
                                                   result)


def __lldb_init_module(debugger, _internal_dict):
    """lldb calls this when it imports the file."""
    debugger.HandleCommand(
        'settings set plugin.process.gdb-remote.target-definition-file '
        f'"{os.path.abspath(__file__)}"')
    if debugger.GetCommandInterpreter().AliasExists('bt'):
        debugger.HandleCommand('command unalias bt')
        debugger.HandleCommand(
            f'command script add -f {__name__}.backtrace bt')
