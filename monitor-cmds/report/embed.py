# SPDX-License-Identifier: GPL-2.0-or-later
"""Make a C file of the files of a page: a text mc_page_NAME each.

usage: embed.py OUT NAME=FILE...
"""
import sys


def array(name, data):
    """The C text of an array of these bytes and a NUL."""
    rows = [', '.join(str(b) for b in data[at:at + 16])
            for at in range(0, len(data), 16)]
    text = ',\n    '.join([*rows, '0'])
    return f'const char mc_page_{name}[] = {{\n    {text}\n}};\n'


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
    out, *files = sys.argv[1:]
    parts = [array(name, read(path)) for name, path in
             (word.split('=', 1) for word in files)]
    with open(out, 'w', encoding='ascii') as f:
        f.write('#include "monitor-cmds/report/page-files.h"\n\n' +
                '\n'.join(parts))


if __name__ == '__main__':
    main()
