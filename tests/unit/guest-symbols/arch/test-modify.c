/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Instructions that read and write the same memory, and others that look like
 * them. The bytes are what binutils assembles; the answers are written by hand.
 */
#include "tests/lib/test-main.h"
#include "guest-symbols/arch/arch.h"
#include "guest-symbols/gs.h"

#include <string.h>

typedef struct Sample {
    const GsArch *arch;
    const char *text, *hex;
    bool modifies;
} Sample;

#define X86 &gs_arch_x86_64
#define ARM &gs_arch_arm64
#define RISCV &gs_arch_riscv64

static const Sample samples[] = {
    { X86, "lock incl (%rax)", "f0ff00", true },
    { X86, "incl 8(%rdi)", "ff4708", true },
    { X86, "decq (%r12)", "49ff0c24", true },
    { X86, "call *(%rax)", "ff10", false },
    { X86, "push (%rax)", "ff30", false },
    { X86, "add %rax,(%rbx)", "480103", true },
    { X86, "add (%rbx),%rax", "480303", false },
    { X86, "add %eax,%ebx", "01c3", false },
    { X86, "cmp %rax,(%rbx)", "483903", false },
    { X86, "cmpl $1,(%rbx)", "833b01", false },
    { X86, "addl $1,(%rbx)", "830301", true },
    { X86, "andb $1,(%rbx)", "802301", true },
    { X86, "lock cmpxchg %rcx,(%rdx)", "f0480fb10a", true },
    { X86, "lock cmpxchg16b (%rdi)", "f0480fc70f", true },
    { X86, "lock xadd %ecx,(%rdx)", "f00fc10a", true },
    { X86, "xchg %rax,(%rdx)", "488702", true },
    { X86, "xchg %rax,%rdx", "4892", false },
    { X86, "mov %rax,(%rdx)", "488902", false },
    { X86, "mov (%rdx),%rax", "488b02", false },
    { X86, "movb $1,(%rdx)", "c60201", false },
    { X86, "lock btsq $3,(%rdi)", "f0480fba2f03", true },
    { X86, "btq $3,(%rdi)", "480fba2703", false },
    { X86, "lock bts %rax,(%rdi)", "f0480fab07", true },
    { X86, "notl (%rax)", "f710", true },
    { X86, "negq (%rax)", "48f718", true },
    { X86, "testl $1,(%rax)", "f70001000000", false },
    { X86, "test %eax,(%rbx)", "8503", false },
    { X86, "shll $2,(%rax)", "c12002", true },
    { X86, "stosb", "aa", false },
    { X86, "rep movsb", "f3a4", false },
    { X86, "lea (%rax),%rbx", "488d18", false },
    { X86, "setne (%rax)", "0f9500", false },
    { X86, "vmovdqu (%r12),%ymm0", "c4c17e6f0424", false },
    { ARM, "ldr x0, [x1]", "200040f9", false },
    { ARM, "str w0, [x1, #4]!", "204c00b8", false },
    { ARM, "ldr x0, [x1, x2, lsl #3]", "207862f8", false },
    { ARM, "ldxr x0, [x1]", "207c5fc8", false },
    { ARM, "stlxr w2, x0, [x1]", "20fc02c8", false },
    { ARM, "ldapr x0, [x1]", "20c0bff8", false },
    { ARM, "cas x0, x1, [x2]", "417ca0c8", true },
    { ARM, "casp x0, x1, x2, x3, [x4]", "827c2048", true },
    { ARM, "ldadd x0, x1, [x2]", "410020f8", true },
    { ARM, "swpal x0, x1, [x2]", "4180e0f8", true },
    { ARM, "ldtr x0, [x1]", "200840f8", false },
    { ARM, "ldar x0, [x1]", "20fcdfc8", false },
    { RISCV, "lbu a0, 0(a0)", "03450500", false },
    { RISCV, "lr.w a0, (a1)", "2fa50510", false },
    { RISCV, "sc.w a0, a2, (a1)", "2fa5c518", false },
    { RISCV, "amoadd.w a0, a2, (a1)", "2fa5c500", true },
    { RISCV, "amoswap.d a0, a2, (a1)", "2fb5c508", true },
};

TEST(test_samples, "/modify/samples")
{
    for (size_t i = 0; i < G_N_ELEMENTS(samples); i++) {
        const Sample *s = &samples[i];
        size_t n = strlen(s->hex) / 2;
        uint8_t bytes[16];

        for (size_t b = 0; b < n; b++) {
            bytes[b] = (uint8_t)(g_ascii_xdigit_value(s->hex[2 * b]) << 4 |
                                 g_ascii_xdigit_value(s->hex[2 * b + 1]));
        }
        if (s->arch->modifies_memory(bytes, n) != s->modifies) {
            g_error("%s: %s (%s)", s->arch->name, s->text, s->hex);
        }
        g_assert_false(s->arch->modifies_memory(bytes, 1));
    }
    g_assert_false(gs_arch_x86_64.modifies_memory(NULL, 0));
}
