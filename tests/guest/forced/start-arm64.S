/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * arm64, QEMU's virt machine: from reset at EL1 to C, with pages that are
 * guarded: a jump by pointer must lead to a BTI instruction.
 */
#define BLOCK(pa)   ((pa) | 1 << 50 | 0x701)    /* guarded, normal memory */
#define DEVICE      0x60000000000405            /* not to be executed */

    .section .start, "ax"
    .globl  start, start_more
start:
    mov     x0, #0
start_more:                         // x0 is the number of this vCPU
    bti     jc
    ldr     x1, =0xff               // MAIR: 0 normal memory, 1 devices
    msr     mair_el1, x1
    ldr     x1, =0x80803519         // TCR: 39 bits, 4 KiB, TTBR0 only
    msr     tcr_el1, x1
    adrp    x1, table
    msr     ttbr0_el1, x1
    adr     x1, vectors
    msr     vbar_el1, x1
    isb
    mrs     x1, sctlr_el1
    mov     x2, #0x1005             // MMU and caches on
    orr     x1, x1, x2
    msr     sctlr_el1, x1
    isb
    ldr     x1, =stacks
    add     x2, x0, #1
    add     x1, x1, x2, lsl #16
    mov     sp, x1
    bl      cpu_main
1:  yield
    b       1b
    .ltorg

    .balign 4096
table:
    .quad   DEVICE, BLOCK(0x40000000)
    .org    table + 4096

    .balign 2048
vectors:
    .rept   5
    mrs     x0, esr_el1
    b       fault
    .balign 128
    .endr
    b       on_timer                // IRQ with the same stack
    .balign 128
    .rept   10
    mrs     x0, esr_el1
    b       fault
    .balign 128
    .endr

on_timer:
    stp     x0, x1, [sp, #-176]!
    stp     x2, x3, [sp, #16]
    stp     x4, x5, [sp, #32]
    stp     x6, x7, [sp, #48]
    stp     x8, x9, [sp, #64]
    stp     x10, x11, [sp, #80]
    stp     x12, x13, [sp, #96]
    stp     x14, x15, [sp, #112]
    stp     x16, x17, [sp, #128]
    stp     x18, x30, [sp, #144]
    bl      tick
    ldp     x18, x30, [sp, #144]
    ldp     x16, x17, [sp, #128]
    ldp     x14, x15, [sp, #112]
    ldp     x12, x13, [sp, #96]
    ldp     x10, x11, [sp, #80]
    ldp     x8, x9, [sp, #64]
    ldp     x6, x7, [sp, #48]
    ldp     x4, x5, [sp, #32]
    ldp     x2, x3, [sp, #16]
    ldp     x0, x1, [sp], #176
    eret

    .text
/* uint64_t victim(uint64_t cpu, uint64_t i): count a run, return 3 * i + 1 */
    .globl  victim
victim:
    bti     c
    adrp    x2, runs
    add     x2, x2, :lo12:runs
    ldr     x3, [x2, x0, lsl #3]
    add     x3, x3, #1
    str     x3, [x2, x0, lsl #3]
    add     x0, x1, x1, lsl #1
    add     x0, x0, #1
    ret

/* uint64_t call(uint64_t cpu, uint64_t i) */
    .globl  call_direct, call_pointer, after_direct, after_pointer
call_direct:
    str     x30, [sp, #-16]!
    bl      victim
after_direct:
    ldr     x30, [sp], #16
    ret
call_pointer:
    str     x30, [sp, #-16]!
    adr     x2, victim
    blr     x2
after_pointer:                      // no BTI here
    ldr     x30, [sp], #16
    ret
