# SPDX-License-Identifier: GPL-2.0-or-later
"""Make a C header of the decoder of QEMU's code hooks, from the patch that has
it: its type KVMHookInsn, and the function decode() with all that it needs.

usage: qemu-decode.py PATCH OUT
"""
import re
import sys

TYPE = re.compile(r'^typedef struct KVMHookInsn \{.*?^\} KVMHookInsn;\n',
                  re.M | re.S)
CODE = re.compile(r'^#define NO_REG.*?(?=^/\* -+ memory -)', re.M | re.S)


def added(patch):
    """The lines that a patch adds."""
    return ''.join(line[1:] for line in patch.splitlines(True)
                   if line.startswith('+') and not line.startswith('+++'))


def main():
    patch, out = sys.argv[1:]
    with open(patch, encoding='utf-8') as f:
        text = added(f.read())
    with open(out, 'w', encoding='utf-8') as f:
        f.write(f'{TYPE.search(text)[0]}\n{CODE.search(text)[0]}')


main()
