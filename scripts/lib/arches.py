# SPDX-License-Identifier: GPL-2.0-or-later
"""What differs between guests of different architectures, as tests see it."""
import re
from collections import namedtuple

# cc: builds static programs for the guest. gdb: the program, and what it
# calls the architecture. linear: the kernel's address of physical address 0
# without KASLR on our machines.
Arch = namedtuple('Arch', 'cc gdb gdb_name linear')

ARCHES = {
    'x86_64': Arch('gcc', 'gdb', 'i386:x86-64', 0xffff888000000000),
    'aarch64': Arch('aarch64-linux-gnu-gcc', 'gdb-multiarch', 'aarch64',
                    0xfff0000000000000 - 0x40000000),
    'riscv64': Arch('riscv64-linux-gnu-gcc', 'gdb-multiarch', 'riscv:rv64',
                    0xff60000000000000 - 0x80000000),
}

# An address of the kernel's, as it is printed: all of these architectures
# give it the upper half, of which the first digit is an f.
KERNEL_VA = re.compile(r'\bf[0-9a-f]{15}\b')
