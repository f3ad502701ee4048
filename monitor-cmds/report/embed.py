# SPDX-License-Identifier: GPL-2.0-or-later
"""Make a C file of the files of a page: its body, its styles, and its scripts
in the order in which they are given.

usage: embed.py FILE... OUT
"""
import os
import sys

NAMES = {'.html': 'mc_page_body', '.css': 'mc_page_style'}


def array(what, data):
    """The C text of an array of these bytes and a NUL."""
    rows = [', '.join(str(b) for b in data[at:at + 16])
            for at in range(0, len(data), 16)]
    text = ',\n    '.join([*rows, '0'])
    return f'{what}[] = {{\n    {text}\n}};\n'


def read(path):
    """The bytes of a file, which is ASCII and does not end its element."""
    with open(path, 'rb') as f:
        data = f.read()
    for word in b'</script', b'</style', b'<!--':
        if not path.endswith('.html') and word in data.lower():
            sys.exit(f'{path}: has {word.decode()}, which ends its element')
    if any(b >= 0x7f or b < 0x20 and b != 10 for b in data):
        sys.exit(f'{path}: has a byte that is not ASCII, or a tab')
    return data


def main():
    *files, out = sys.argv[1:]
    parts, scripts = [], []
    for path in files:
        name, kind = os.path.splitext(os.path.basename(path))
        if kind == '.js':
            scripts.append(f'script_{name.replace("-", "_")}')
            parts.append(array(f'static const char {scripts[-1]}', read(path)))
        else:
            parts.append(array(f'const char {NAMES[kind]}', read(path)))
    table = ', '.join([*scripts, 'NULL'])
    parts.append(f'const char *const mc_page_scripts[] = {{ {table} }};\n')
    with open(out, 'w', encoding='ascii') as f:
        f.write('#include "monitor-cmds/report/page-files.h"\n\n' +
                '\n'.join(parts))


if __name__ == '__main__':
    main()
