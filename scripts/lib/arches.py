# SPDX-License-Identifier: GPL-2.0-or-later
"""A table of what differs between guest architectures, for tests."""
import re
from collections import namedtuple

# cc: compiler of static programs for the guest. gdb: the program; gdb_name: its
# name of the architecture. linear: where the direct map has physical address 0,
# without KASLR, on our machines.
Arch = namedtuple('Arch', 'cc gdb gdb_name linear')

ARCHES = {
    'x86_64': Arch('gcc', 'gdb', 'i386:x86-64', 0xffff888000000000),
    'aarch64': Arch('aarch64-linux-gnu-gcc', 'gdb-multiarch', 'aarch64',
                    0xfff0000000000000 - 0x40000000),
    'riscv64': Arch('riscv64-linux-gnu-gcc', 'gdb-multiarch', 'riscv:rv64',
                    0xff60000000000000 - 0x80000000),
}

# A kernel address as it is printed. On all of these architectures the kernel
# has the upper half of the addresses, so the first digit is f.
KERNEL_VA = re.compile(r'\bf[0-9a-f]{15}\b')
