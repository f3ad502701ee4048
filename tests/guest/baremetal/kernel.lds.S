/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "layout.h"

ENTRY(_entry)

/* Linked at virtual addresses, loaded where RAM is. */
#define LOAD(section)   AT(ADDR(section) - KERNEL + RAM)

SECTIONS
{
    .boot BOOT : { *(.boot) *(.boot.tables) }
    .callers0 CALLERS : LOAD(.callers0) { *(.callers0) }
    .callers1 CALLERS2 : LOAD(.callers1) { *(.callers1) }
    .text TEXT : LOAD(.text) { *(.text .text.*) }
    .rodata : LOAD(.rodata) { *(.rodata .rodata.* .srodata .srodata.*) }
    .data : LOAD(.data) { *(.data .data.* .sdata .sdata.*) }
    .bss : LOAD(.bss) { *(.bss .bss.* .sbss .sbss.*) }
    /DISCARD/ : { *(.comment) *(.note.*) *(.eh_frame) *(.riscv.attributes) }
}
