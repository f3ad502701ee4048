/* SPDX-License-Identifier: GPL-2.0-or-later */
/* arm64 and riscv64: all in RAM */
ENTRY(start)
SECTIONS
{
    . = RAM;
    .text : { *(.start) *(.text*) *(.rodata*) }
    . = ALIGN(4096);
    .bss : { *(.data*) *(.bss*) *(COMMON) }
    /DISCARD/ : { *(.note*) *(.comment) *(.eh_frame*) }
}
