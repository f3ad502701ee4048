# SPDX-License-Identifier: GPL-2.0-or-later
"""A small ELF file that stands for a kernel with debug information: it is
linked where x86-64 kernels are, with inlined functions, functions of one name,
and a module. And what addr2line says of its addresses."""
import os
import re
import subprocess

SLIDE = 0x1200000
FUNCTIONS = 200
MODULE_BASE = 0xffffffffc0200000
# Compiled with warnings of nothing: the code is nonsense.
FLAGS = ('-O2', '-w', '-ffreestanding', '-fno-pie', '-mcmodel=kernel',
         '-fno-asynchronous-unwind-tables', '-fcf-protection=none',
         '-mno-red-zone', '-std=gnu11')
BANNER = 'Linux version 6.12.0-ka (ka@ka) (gcc) #1 SMP'

HEADER = '''
extern long sink(long);
static inline __attribute__((always_inline)) long inner(long x)
{
    long y = sink(x ^ 3);

    return sink(y + 1);
}
static inline __attribute__((always_inline)) long middle(long x)
{
    return inner(x + 2) +
           inner(x + 5);
}
'''
SCRIPT = '''
SECTIONS {
  . = 0xffffffff81000000;
  .text : { _text = .; _stext = .; *(.text .text.*) _etext = .; }
  . = ALIGN(0x200000);
  .rodata : { __start_rodata = .; *(.rodata .rodata.*) __end_rodata = .; }
  . = ALIGN(0x200000);
  .data : { _sdata = .; *(.data .data.*) _edata = .; }
  .bss : { __bss_start = .; *(.bss .bss.*) *(COMMON) __bss_stop = .; }
  _end = .;
  .notes : { *(.note.gnu.build-id) }
  /DISCARD/ : { *(.comment) *(.eh_frame) *(.note.GNU-stack) }
}
'''


def code(prefix, first, count, more=0):
    """The text of a file of functions that call others, inlined and not.
    MORE: calls that the first one has besides."""
    lines = ['#include "linux/inner.h"', '#include "../mm/twice.h"', '']
    for i in range(first, first + count):
        calls = i % 5 + 1 + (more if i == first else 0)
        lines += [
            f'__attribute__((noinline)) long {prefix}{i}(long x)', '{',
            f'    long y = sink(x + {i});', '',
            *(f'    y += sink(y * {k});' for k in range(calls)),
            '    if (y & 1) {', '        y = middle(y);', '    }',
            '    y += same(y);', '    return sink(y) + inner(y - 1);', '}', '']
    return '\n'.join(lines)


# A static function of the same name in each file that includes it.
TWICE = '''
static __attribute__((noinline)) long same(long x)
{
    return sink(x) + sink(x + 9);
}
'''


class Kernel:
    """Its files are in FOLDER. DWARF: version of the debug information. MORE:
    what another build has, see code()."""

    def __init__(self, folder, dwarf=4, more=0):
        self.dwarf = dwarf
        self.folder = os.path.join(folder, 'linux')
        self.vmlinux = os.path.join(folder, 'vmlinux')
        self.banner = BANNER
        for name, text in (
                ('include/linux/inner.h', HEADER), ('mm/twice.h', TWICE),
                ('mm/a.c', code('mm_', 0, FUNCTIONS // 2, more)),
                ('fs/b.c', code('fs_', 0, FUNCTIONS // 2)),
                ('init/main.c', 'long counter = 1;\nlong zero;\n'
                 f'const char linux_banner[] = "{self.banner}\\n";\n'
                 '__attribute__((noinline)) long sink(long x)\n'
                 '{\n    return x * counter + zero;\n}\n'),
                ('link.ld', SCRIPT)):
            self.write(name, text)
        objects = [self.compile(n) for n in ('init/main.c', 'mm/a.c', 'fs/b.c')]
        self.run('ld', '-static', '--build-id', '-T', 'link.ld', '-o',
                 self.vmlinux, *objects)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)

    def run(self, *words):
        return subprocess.run(words, cwd=self.folder, check=True, text=True,
                              stdout=subprocess.PIPE).stdout

    def compile(self, name):
        self.run('gcc', f'-gdwarf-{self.dwarf}', *FLAGS, '-Iinclude',
                 '-iquote', 'mm', '-c', name, '-o', name + '.o')
        return name + '.o'

    def module(self, name, more=0, vermagic='6.12.0-ka SMP '):
        """The path of a module's file."""
        path = f'drivers/{more}-{len(vermagic)}/' + name.replace('_', '-')
        text = code(f'{name}_', 0, 20, more) + f'''
__attribute__((section(".modinfo"))) const char n[] = "name={name}";
__attribute__((section(".modinfo"))) const char v[] = "vermagic={vermagic}";
'''
        self.write(path + '.c', text)
        self.run('ld', '-r', '-o', path + '.ko', self.compile(path + '.c'))
        return os.path.join(self.folder, path + '.ko')

    def symbols(self, path=None):
        """[(address, type, name)] of the file, in order."""
        out = self.run('nm', path or self.vmlinux)
        rows = [line.split() for line in out.splitlines()]
        return sorted((int(r[0], 16), r[1], r[2])
                      for r in rows if len(r) == 3)

    def returns(self, path=None):
        """The return addresses of all calls."""
        out = self.run('objdump', '-d', '--no-show-raw-insn', '-j', '.text',
                       path or self.vmlinux)
        rows = re.findall(r'^\s*([0-9a-f]+):\s+(\S+)', out, re.M)
        return [int(after[0], 16) for here, after in zip(rows, rows[1:])
                if here[1].startswith('call')]

    def oracle(self, addresses, path=None):
        """{address: [(function, file, line)], the innermost first}. The
        addr2line of Debian 12 names wrong files by DWARF 5."""
        tool = 'addr2line' if self.dwarf < 5 else 'llvm-addr2line'
        done = subprocess.run(
            [tool, '-a', '-i', '-f', '-e', path or self.vmlinux],
            input=''.join(f'{a:#x}\n' for a in addresses), check=True,
            text=True, stdout=subprocess.PIPE, cwd=self.folder).stdout
        places, at = {}, None
        lines = iter(done.splitlines())
        for line in lines:
            if line.startswith('0x'):
                at = places.setdefault(int(line, 16), [])
                continue
            file, _, number = next(lines).split(' (')[0].rpartition(':')
            at.append((line, self.short(file), number))
        return places

    def short(self, file):
        file = os.path.normpath(os.path.join(self.folder, file))
        return os.path.relpath(file, self.folder)
