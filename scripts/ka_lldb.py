# SPDX-License-Identifier: GPL-2.0-or-later
"""lldb walks the stacks of a riscv64 guest, with the file of `ka symbols`.

(lldb) command script import scripts/ka_lldb.py
(lldb) target create kernel.elf
(lldb) process connect --plugin gdb-remote unix-connect://.../gdb.sock
(lldb) ka-bt

Import it before lldb connects. It gives lldb the DWARF number of sepc: until
the entry of an exception has saved sepc, the pc of the interrupted code is in
no other place.

`ka-bt` prints the stacks of all vCPUs, as `thread backtrace all`. QEMU reads
memory as the vCPU does that lldb selected last, and lldb selects one to read
registers, not to read memory. A vCPU in the firmware (OpenSBI) has no virtual
addresses, so `bt` ends early if that one was selected. `ka-bt` selects each
vCPU before it reads that stack.
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

# Nothing else reads it, so lldb has to ask the vCPU for it.
UNUSED = 't6'


# --- registers ---------------------------------------------------------------

def register(name, dwarf=None):
    found = {'name': name, 'set': 0, 'bitsize': 64,
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
    known += [register(f'stub{i}') for i in range(STUB_PC + 1, STUB_SEPC)]
    known.append(register('sepc', DWARF_SEPC))
    for i, found in enumerate(known):
        found['offset'] = 8 * i
    return known


def get_dynamic_setting(_target, name):
    """Return the registers. lldb calls this when it connects."""
    if name != 'gdb-server-target-definition':
        return None
    return {'sets': ['general purpose registers'], 'registers': registers(),
            'host-info': {'triple': 'riscv64-unknown-linux',
                          'endian': lldb.eByteOrderLittle},
            'g-packet-size': 8 * (STUB_PC + 1)}


# --- ka-bt -------------------------------------------------------------------

def backtrace(debugger, _command, context, _result, _internal_dict):
    """Print the stacks of all vCPUs."""
    for thread in context.GetProcess():
        thread.GetFrameAtIndex(0).FindRegister(UNUSED).GetValue()
        thread.GetNumFrames()       # lldb keeps the frames that it finds
    debugger.HandleCommand('thread backtrace all')


def __lldb_init_module(debugger, _internal_dict):
    """lldb calls this when it imports the file."""
    debugger.HandleCommand(
        'settings set plugin.process.gdb-remote.target-definition-file '
        f'"{os.path.abspath(__file__)}"')
    debugger.HandleCommand(f'command script add -f {__name__}.backtrace ka-bt')
