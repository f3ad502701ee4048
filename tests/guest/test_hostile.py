#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel has damaged tables: kallsyms, types or unwind tables of its image
are changed before it boots. The tracer must not crash, hang or name anything
wrongly: it says that it knows no kernel, or its answer is right.

Oracle: the guest's own kallsyms, and the code: each caller that the tracer
names must be a call instruction.

usage: test_hostile.py [--short] [--kernel K]...

For kallsyms and types the kernel is that of arm64, whose image is not
compressed. Other data near the tables is damaged too, so the guest need not
boot, but the tracer must answer. Only the kernel of x86-64 has unwind tables.
It is started from its ELF file, by PVH, at its link address; callers are then
found without these tables.
"""
import os
import random
import re
import struct
import subprocess
import tempfile

from lib import oracle
from lib.programs import kernel_options
from lib.tap import Tap
from scripts.lib.guest import Guest
from scripts.lib.prepared import kernel_file
from scripts.lib.qmp import GuestError
import test_rules

# The tokens "0" to "9" mean themselves (scripts/kallsyms.c).
DIGITS = b''.join(b'%d\0' % d for d in range(10))
BTF_HEADER = bytes([0x9f, 0xeb, 1, 0, 24, 0, 0, 0])
AROUND = 64 << 10
SECONDS = 12            # a whole kernel is up in six


def tables(image):
    """Return where IMAGE has the digits of the token table, and the types."""
    tokens = [m.start() for m in re.finditer(re.escape(DIGITS), image)]
    types = [m.start() for m in re.finditer(re.escape(BTF_HEADER), image)]
    assert tokens and types, 'no tables in the image'
    return tokens[-1], max(types, key=lambda at: int.from_bytes(
        image[at + 12:at + 16], 'little'))


def overwrite(image, at, new):
    image[at:at + len(new)] = new


def random_bytes(image, tokens, types):
    rng = random.Random(1)
    overwrite(image, tokens - AROUND, rng.randbytes(2 * AROUND))


def truncated(image, tokens, types):
    overwrite(image, tokens + len(DIGITS), bytes(AROUND))


def endless_names(image, tokens, types):
    """Write the largest lengths of two bytes; counts of 2^32."""
    overwrite(image, tokens - (1 << 20), b'\xff' * ((1 << 20) - AROUND))


def endless_tokens(image, tokens, types):
    """Remove the ends of all tokens."""
    overwrite(image, tokens + len(DIGITS), b'a' * AROUND)


def markers_that_lie(image, tokens, types):
    for at in range(tokens - 8192 & ~3, tokens - 1024, 4):
        overwrite(image, at, (0xfffffff0 + at % 16).to_bytes(4, 'little'))


def types_of_random_bytes(image, tokens, types):
    overwrite(image, types + 24, random.Random(2).randbytes(4 * AROUND))


def types_without_end(image, tokens, types):
    """Write 2^32 - 1 to the lengths of the header."""
    overwrite(image, types + 8, b'\xff' * 16)


DAMAGES = (random_bytes, truncated, endless_names, endless_tokens,
           markers_that_lie, types_of_random_bytes, types_without_end)


def damaged(kernel, damage, folder):
    with open(kernel_file(kernel), 'rb') as f:
        image = bytearray(f.read())
    damage(image, *tables(image))
    path = os.path.join(folder, damage.__name__)
    with open(path, 'wb') as f:
        f.write(image)
    return path


def names_are_right(guest):
    """Compare the names that ka prints with the guest's own kallsyms."""
    text = guest.hmp_qmp('ka -w -n 200')
    for line in text.splitlines():
        frames = re.search(r'alloc\[(.*?)\]@', line)
        if frames and frames.group(1):
            assert re.search(r'(ret_from_fork|start_kernel|el0|handle_)',
                             frames.group(1)), line


def survives(kernel, damage, folder):
    path = damaged(kernel, damage, folder)
    with Guest(kernel=kernel, timeout=180,
               options=['--arch', 'arm64', '--kernel', path],
               name=f'hostile-{damage.__name__}') as g:
        try:
            g.wait_marker('KA-END', SECONDS)
        except GuestError:      # it may trip over its own tables
            assert g.alive(), g.qemu_log
        stat = g.hmp_qmp('ka stat')
        found = re.search(r'tracing\.kernel\s+recognised', stat)
        if found:
            names_are_right(g)
        else:
            assert 'no kernel was recognised' in g.hmp_qmp('ka'), stat
        assert g.alive(), g.qemu_log


# --- unwind tables -----------------------------------------------------------

# First bytes of the data in a bzImage (arch/x86/boot/compressed) -> format.
UNPACK = {b'\x28\xb5\x2f\xfd': 'zstd', b'\xfd7zX': 'xz', b'\x1f\x8b': 'gzip'}


def unpacked(path):
    """Return the ELF file in the bzImage at PATH (see the kernel's
    Documentation/arch/x86/boot.rst)."""
    with open(path, 'rb') as f:
        image = f.read()
    at, length = struct.unpack_from('<II', image, 0x248)
    at += ((image[0x1f1] or 4) + 1) * 512
    tool = next(t for magic, t in UNPACK.items()
                if image.startswith(magic, at))
    packed = image[at:at + length - 4]          # its size stands behind it
    return bytearray(subprocess.run([tool, '-dc'], input=packed, check=True,
                                    stdout=subprocess.PIPE).stdout)


def sections(elf):
    """Return {name: (address, offset, bytes)} of a 64-bit ELF file."""
    table, = struct.unpack_from('<Q', elf, 0x28)
    entry, n, names = struct.unpack_from('<HHH', elf, 0x3a)
    rows = [struct.unpack_from('<IIQQQQ', elf, table + i * entry)
            for i in range(n)]
    found = {}
    for name, _, _, va, at, length in rows:
        name += rows[names][4]
        found[elf[name:elf.index(0, name)].decode()] = va, at, length
    return found


def unsorted_rules(elf):
    """Swap a thousand pairs of addresses."""
    _, at, length = sections(elf)['.orc_unwind_ip']
    rng = random.Random(3)
    for _ in range(1000):
        i, j = (at + 4 * rng.randrange(length // 4) for _ in range(2))
        elf[i:i + 4], elf[j:j + 4] = elf[j:j + 4], elf[i:i + 4]


def rules_of_random_bytes(elf):
    _, at, length = sections(elf)['.orc_unwind']
    overwrite(elf, at, random.Random(4).randbytes(length))


def rules_of_nowhere(elf):
    _, at, length = sections(elf)['.orc_unwind_ip']
    overwrite(elf, at, b'\xff\xff\xff\x7f' * (length // 4))


def is_call(elf, text, va):
    """Return whether a direct call precedes VA: allocators are always called
    directly."""
    return any(start < va <= start + length and
               elf[at + va - start - 5] == 0xe8 for start, at, length in text)


def names_callers(kernel, damage, folder):
    elf = unpacked(kernel_file(kernel))
    text = [sections(elf)[name] for name in ('.text', '.init.text')]
    damage(elf)
    path = os.path.join(folder, damage.__name__)
    with open(path, 'wb') as f:
        f.write(elf)
    with Guest(kernel=kernel, timeout=180, options=['--kernel', path],
               name=f'hostile-{damage.__name__}') as g:
        g.wait_marker('KA-END')         # the kernel does without them
        if not re.search(r'tracing\.kernel\s+recognised',
                         g.hmp_qmp('ka stat')):
            assert 'no kernel was recognised' in g.hmp_qmp('ka')
            return
        listing = g.hmp_qmp('ka -n 1000000 -x')
        assert g.alive(), g.qemu_log
    callers = {int(va, 16) for va in re.findall(r'alloc\[(\w+)', listing)}
    assert len(callers) > 100, listing[:1000]
    wrong = [hex(va) for va in callers if not is_call(elf, text, va)]
    assert not wrong, wrong


# --- no types ----------------------------------------------------------------

def tells_without_types(kernel, folder):
    """Boot with BTF that has no type. Then the place of struct pages is not
    known, so slabs are not recognised. A block of kvmalloc() is still
    recorded once (since 6.15 kvmalloc() contains the code for slabs)."""
    elf = unpacked(kernel_file(kernel))
    at = elf.index(BTF_HEADER)
    overwrite(elf, at + 12, bytes(4))
    path, log = (os.path.join(folder, name) for name in ('no-types', 'log'))
    with open(path, 'wb') as f:
        f.write(elf)
    share = oracle.make_share(os.path.join(folder, 'share'), ['rules.sh'],
                              kernel, modules=True)
    with Guest(kernel=kernel, run='rules', share=share, journal=log,
               timeout=180, cmdline='no_hash_pointers',
               options=['--kernel', path], name='hostile-no-types') as g:
        assert g.wait_done() == 0, 'insmod failed'
        truth = test_rules.read_truth(g.console)
        errors = g.hmp_qmp('ka error')
    assert errors.startswith('no errors;'), errors
    events = list(oracle.our_events(log))
    for case in 'kvmalloc-small', 'kvmalloc-big', 'kmalloc-var':
        want = next(w for c, what, w in truth if (c, what) == (case, 'alloc'))
        told = [e for e in events if e.kind == 'alloc' and
                (e.va, e.req) == (want['va'], want['req'])]
        assert len(told) == 1, (case, want, told)


RULES = unsorted_rules, rules_of_random_bytes, rules_of_nowhere


def main():
    tap = Tap()
    kernels = kernel_options(('arm64-6.12', '6.12'), short=2)
    with tempfile.TemporaryDirectory(prefix='ka-hostile.') as folder:
        for kernel in kernels:
            is_arm = kernel.startswith('arm64')
            check = survives if is_arm else names_callers
            for damage in DAMAGES if is_arm else RULES:
                with tap.test(f'{kernel}: {damage.__name__}'):
                    check(kernel, damage, folder)
            if not is_arm:
                with tap.test(f'{kernel}: records without types'):
                    tells_without_types(kernel, folder)
    tap.done()


if __name__ == '__main__':
    main()
