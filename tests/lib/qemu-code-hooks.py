# SPDX-License-Identifier: GPL-2.0-or-later
"""Make a C header of a part of QEMU's code hooks, from the patch that has it:
the type KVMHookInsn, and the functions from decode() on.

usage: qemu-code-hooks.py PATCH OUT decode|all

  decode  only those that decode
  all     also those that read and write memory and registers, and emulate
"""
import re
import sys

TYPE = re.compile(r'^typedef struct KVMHookInsn \{.*?^\} KVMHookInsn;\n',
                  re.M | re.S)
END = {'decode': r'/\* -+ memory -', 'all': r'/\* Leave the loop '}


def added(patch):
    """The lines that a patch adds."""
    return ''.join(line[1:] for line in patch.splitlines(True)
                   if line.startswith('+') and not line.startswith('+++'))


def main():
    patch, out, part = sys.argv[1:]
    with open(patch, encoding='utf-8') as f:
        text = added(f.read())
    code = re.search(rf'^#define NO_REG.*?(?=^{END[part]})', text, re.M | re.S)
    with open(out, 'w', encoding='utf-8') as f:
        f.write(f'{TYPE.search(text)[0]}\n{code[0]}')


main()
