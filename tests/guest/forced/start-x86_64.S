/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * x86-64: a firmware image of 64 KiB in place of QEMU's, at 0xf0000. From
 * reset to long mode, for the first vCPU and for others, which begin at the
 * image's start.
 */
#define CODE32  0x08
#define DATA    0x10
#define CODE64  0x18

    .section .start, "ax"
    .code16
    .globl  start16
start16:
    cli
    mov     $0xf000, %ax
    mov     %ax, %ds
    lgdtl   gdt_pointer - 0xf0000
    mov     %cr0, %eax
    or      $1, %eax
    mov     %eax, %cr0
    ljmpl   $CODE32, $start32

    .code32
start32:
    mov     $DATA, %eax
    mov     %eax, %ds
    mov     %eax, %es
    mov     %eax, %ss
    /* Pages of 1 GiB, all at the same address. vCPUs write the same. */
    movl    $0x2003, 0x1000
    movl    $0x00000083, 0x2000
    movl    $0xc0000083, 0x2018
    mov     $0x1000, %eax
    mov     %eax, %cr3
    mov     %cr4, %eax
    or      $0x620, %eax            // PAE, SSE
    mov     %eax, %cr4
    mov     $0xc0000080, %ecx
    rdmsr
    or      $0x100, %eax            // EFER.LME
    wrmsr
    mov     %cr0, %eax
    or      $0x80000000, %eax
    mov     %eax, %cr0
    ljmp    $CODE64, $start64

    .code64
start64:
    mov     $1, %eax
    cpuid
    shr     $24, %ebx
    mov     %ebx, %edi              // the number of this vCPU
    mov     %ebx, %eax
    inc     %eax
    shl     $16, %eax
    lea     0x200000(%rax), %rsp
    call    cpu_main
1:  pause
    jmp     1b

    .balign 8
gdt:
    .quad   0, 0x00cf9b000000ffff, 0x00cf93000000ffff, 0x00af9b000000ffff
gdt_pointer:
    .word   gdt_pointer - gdt - 1
    .long   gdt

    .text
/* uint64_t victim(uint64_t cpu, uint64_t i): count a run, return 3 * i + 1 */
    .globl  victim
victim:
    endbr64
    lea     runs(%rip), %rax
    incq    (%rax, %rdi, 8)
    lea     1(%rsi, %rsi, 2), %rax
    ret

/* uint64_t call(uint64_t cpu, uint64_t i): the stack must be as before */
    .globl  call_direct, call_pointer, after_direct, after_pointer
call_direct:
    push    %rbx
    mov     %rsp, %rbx
    call    victim
after_direct:
    cmp     %rsp, %rbx
    jne     bad_stack
    pop     %rbx
    ret
call_pointer:
    push    %rbx
    mov     %rsp, %rbx
    lea     victim(%rip), %rax
    call    *%rax
after_pointer:
    cmp     %rsp, %rbx
    jne     bad_stack
    pop     %rbx
    ret

    .globl  on_timer
on_timer:
    push    %rax
    push    %rcx
    push    %rdx
    push    %rsi
    push    %rdi
    push    %r8
    push    %r9
    push    %r10
    push    %r11
    call    tick
    pop     %r11
    pop     %r10
    pop     %r9
    pop     %r8
    pop     %rdi
    pop     %rsi
    pop     %rdx
    pop     %rcx
    pop     %rax
    iretq

    .section .reset, "ax"
    .code16
    ljmp    $0xf000, $0
    .balign 16, 0
