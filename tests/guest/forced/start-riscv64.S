/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * riscv64, QEMU's virt machine without firmware, in M mode, with landing pads
 * (Zicfilp): a jump by pointer must lead to an lpad instruction.
 */
    .option norvc
    .option norelax

#define MSECCFG         0x747
#define MSECCFG_MLPE    (1 << 10)
    .macro  lpad
    .word   0x00000017              // auipc zero, 0
    .endm

    .section .start, "ax"
    .globl  start
start:
    csrr    a0, mhartid
    li      t0, MSECCFG_MLPE
    csrs    MSECCFG, t0
    la      t0, trap
    csrw    mtvec, t0
    la      sp, stacks
    addi    t0, a0, 1
    slli    t0, t0, 16
    add     sp, sp, t0
    bnez    a0, wait
    call    cpu_main
1:  nop
    j       1b

    .globl  others_may_run
wait:                               // until the first vCPU says so
    la      t0, others_may_run
2:  ld      t1, (t0)
    beqz    t1, 2b
    call    cpu_main
    j       1b

    .balign 4
trap:
    addi    sp, sp, -128
    sd      ra, 0(sp)
    sd      t0, 8(sp)
    sd      t1, 16(sp)
    sd      t2, 24(sp)
    sd      a0, 32(sp)
    sd      a1, 40(sp)
    sd      a2, 48(sp)
    sd      a3, 56(sp)
    sd      a4, 64(sp)
    sd      a5, 72(sp)
    sd      a6, 80(sp)
    sd      a7, 88(sp)
    sd      t3, 96(sp)
    sd      t4, 104(sp)
    sd      t5, 112(sp)
    sd      t6, 120(sp)
    csrr    a0, mcause
    bltz    a0, 3f
    call    fault
3:  call    tick
    ld      ra, 0(sp)
    ld      t0, 8(sp)
    ld      t1, 16(sp)
    ld      t2, 24(sp)
    ld      a0, 32(sp)
    ld      a1, 40(sp)
    ld      a2, 48(sp)
    ld      a3, 56(sp)
    ld      a4, 64(sp)
    ld      a5, 72(sp)
    ld      a6, 80(sp)
    ld      a7, 88(sp)
    ld      t3, 96(sp)
    ld      t4, 104(sp)
    ld      t5, 112(sp)
    ld      t6, 120(sp)
    addi    sp, sp, 128
    mret

    .text
/* uint64_t victim(uint64_t cpu, uint64_t i): count a run, return 3 * i + 1 */
    .balign 4
    .globl  victim
victim:
    lpad
    la      a2, runs
    slli    a0, a0, 3
    add     a2, a2, a0
    ld      a3, (a2)
    addi    a3, a3, 1
    sd      a3, (a2)
    slli    a0, a1, 1
    add     a0, a0, a1
    addi    a0, a0, 1
    ret

/* uint64_t call(uint64_t cpu, uint64_t i) */
    .globl  call_direct, call_pointer, after_direct, after_pointer
call_direct:
    addi    sp, sp, -16
    sd      ra, (sp)
    call    victim
after_direct:
    ld      ra, (sp)
    addi    sp, sp, 16
    ret
call_pointer:
    addi    sp, sp, -16
    sd      ra, (sp)
    la      a2, victim
    jalr    a2
after_pointer:                      // no lpad here
    ld      ra, (sp)
    addi    sp, sp, 16
    ret
