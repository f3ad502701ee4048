/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * arm64, QEMU's virt machine: from reset at EL1 to the kernel at its virtual
 * addresses, and the callers of its script.
 */
#include "layout.h"

#define BLOCK(pa)   ((pa) | 0x701)  /* accessed, shared, normal memory */
#define DEVICE      0x405           /* accessed, memory type 1 */

    .section .boot, "ax"
    .globl _entry
_entry:
    ldr     x0, =0xff               // MAIR: 0 normal memory, 1 devices
    msr     mair_el1, x0
    ldr     x0, =0x2b5193519        // TCR: 39 bits both, 4 KiB granule
    msr     tcr_el1, x0
    ldr     x0, =low_table
    msr     ttbr0_el1, x0
    ldr     x0, =high_table
    msr     ttbr1_el1, x0
    isb
    mrs     x0, sctlr_el1
    mov     x1, #0x1005             // MMU and caches on
    orr     x0, x0, x1
    msr     sctlr_el1, x0
    isb
    ldr     x0, =stack_top
    mov     sp, x0
    mov     x29, #0
    mov     x30, #0
    ldr     x0, =KERNEL_MAIN
    br      x0
    .ltorg

    .section .boot.tables, "aw"
    .balign 4096
low_table:
    .quad   DEVICE, BLOCK(RAM), BLOCK(RAM)  // 0x80000000 is RAM, too
    .org    low_table + 4096
high_table:
    .org    high_table + 8 * SLOT(0xffffffe380000000)
    .quad   BLOCK(RAM)
    .org    high_table + 8 * SLOT(0xfffffff000000000)
    .quad   BLOCK(RAM)
    .org    high_table + 4096

/* The frame holds what the caller has to restore, and below it the record
 * that walks find: the same, or zeros on an empty stack. */
    .macro  caller section, name, offset
    .section .callers\section, "ax"
    .org    \offset - 0x80
    .globl  \name\()_first
\name\()_first:
    sub     sp, sp, #32
    stp     x29, x30, [sp, #16]
    stp     xzr, xzr, [sp]
    b       1f
    .org    \offset - 0x60
    .globl  \name
\name:
    sub     sp, sp, #32
    stp     x29, x30, [sp, #16]
    stp     x29, x30, [sp]
    b       1f
    .org    \offset - 0x20
1:  mov     x29, sp
    mov     x16, x0
    mov     x0, x1
    mov     x1, x2
    mov     x2, x3
    mov     x3, x4
    nop
    blr     x16
    ldp     x29, x30, [sp, #16]
    add     sp, sp, #32
    ret
    .endm

#define CALLER(section, name, offset) caller section, name, offset;
#include "callers.h"
