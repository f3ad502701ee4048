/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * riscv64, QEMU's virt machine without firmware: from reset in M mode to the
 * kernel in S mode at its virtual addresses, and the callers of its script.
 */
#include "layout.h"

#define LEAF(pa)    ((pa) >> 12 << 10 | 0xcf)   /* valid, dirty, rwx */

    .option norvc
    .option norelax

    .section .boot, "ax"
    .globl  _entry
_entry:
    li      t0, -1                  // all memory is S mode's
    csrw    pmpaddr0, t0
    li      t0, 0x1f
    csrw    pmpcfg0, t0
    li      t0, 1 << 5              // so is its timer (menvcfg.STCE)
    csrw    mideleg, t0
    li      t0, 1 << 63
    csrs    0x30a, t0
    li      t0, 7
    csrw    mcounteren, t0
    la      t0, table
    srli    t0, t0, 12
    li      t1, 8 << 60             // Sv39
    or      t0, t0, t1
    csrw    satp, t0
    sfence.vma
    li      t0, 3 << 11             // mstatus.MPP = S
    csrc    mstatus, t0
    li      t0, 1 << 11
    csrs    mstatus, t0
    ld      t0, entry
    csrw    mepc, t0
    ld      sp, stack
    li      s0, 0
    li      ra, 0
    mret
    .balign 8
entry:
    .dword  KERNEL_MAIN
stack:
    .dword  stack_top

    .section .boot.tables, "aw"
    .balign 4096
table:
    .dword  LEAF(0), 0, LEAF(RAM)
    .org    table + 8 * SLOT(0xffffffe380000000)
    .dword  LEAF(RAM)
    .org    table + 8 * SLOT(0xfffffff000000000)
    .dword  LEAF(RAM)
    .org    table + 4096

/* The frame holds what the caller has to restore, and below it the record
 * that walks find: the same, or zeros on an empty stack. */
    .macro  caller section, name, offset
    .section .callers\section, "ax"
    .org    \offset - 0x80
    .globl  \name\()_first
\name\()_first:
    addi    sp, sp, -32
    sd      s0, 16(sp)
    sd      ra, 24(sp)
    sd      zero, 0(sp)
    sd      zero, 8(sp)
    j       1f
    .org    \offset - 0x60
    .globl  \name
\name:
    addi    sp, sp, -32
    sd      s0, 16(sp)
    sd      ra, 24(sp)
    sd      s0, 0(sp)
    sd      ra, 8(sp)
    j       1f
    .org    \offset - 0x20
1:  addi    s0, sp, 16
    mv      t1, a0
    mv      a0, a1
    mv      a1, a2
    mv      a2, a3
    mv      a3, a4
    nop
    jalr    ra, 0(t1)
    ld      s0, 16(sp)
    ld      ra, 24(sp)
    addi    sp, sp, 32
    ret
    .endm

#define CALLER(section, name, offset) caller section, name, offset;
#include "callers.h"
