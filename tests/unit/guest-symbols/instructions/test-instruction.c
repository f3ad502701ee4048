/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Instructions as text, and the operand in memory. Needs capstone. */
#include "tests/lib/test-main.h"
#include "guest-symbols/arch/arch.h"
#include "guest-symbols/gs.h"

#include <string.h>

typedef struct Row {
    const GsArch *arch;
    bool write;
    const char *bytes;
    unsigned len;
    const char *text;
    const char *operand;
} Row;

static const Row rows[] = {
    { &gs_arch_x86_64, false, "\x48\x8b\x47\x18", 4,
      "movq 0x18(%rdi), %rax", "0x18(%rdi)" },
    { &gs_arch_x86_64, true, "\x48\x89\x54\xc8\x08", 5,
      "movq %rdx, 8(%rax, %rcx, 8)", "8(%rax,%rcx,8)" },
    { &gs_arch_x86_64, true, "\xf0\xff\x00", 3, "lock incl (%rax)",
      "(%rax)" },
    { &gs_arch_x86_64, false, "\xf3\xa4", 2, "rep movsb (%rsi), (%rdi)",
      "(%rsi)" },
    { &gs_arch_x86_64, true, "\xf3\xa4", 2, "rep movsb (%rsi), (%rdi)",
      "(%rdi)" },
    { &gs_arch_x86_64, false, "\xff\x50\x20", 3, "callq *0x20(%rax)",
      "*0x20(%rax)" },
    { &gs_arch_x86_64, false, "\x90", 1, "nop", "" },
    { &gs_arch_x86_64, false, "\x01\xd8", 2, "addl %ebx, %eax", "" },
    { &gs_arch_arm64, false, "\x00\x04\x40\xf9", 4, "ldr x0, [x0, #8]",
      "[x0,#8]" },
    { &gs_arch_arm64, true, "\x41\x10\x01\xa9", 4, "stp x1, x4, [x2, #0x10]",
      "[x2,#0x10]" },
};

TEST(texts, "/instruction/texts")
{
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        const Row *r = &rows[i];
        GsInstruction out;

        g_assert_true(gs_arch_disassemble(r->arch, 0x1000,
                                          (const uint8_t *)r->bytes, r->len,
                                          r->write, &out));
        g_assert_cmpstr(out.text, ==, r->text);
        g_assert_cmpstr(out.operand, ==, r->operand);
        g_assert_cmpuint(out.len, ==, r->len);
    }
}

TEST(bytes_that_are_none, "/instruction/none")
{
    static const uint8_t bytes[GS_INSTRUCTION_MAX] = { 0x48, 0x8b, 0x47 };
    GsInstruction out;

    for (unsigned len = 0; len <= 3; len++) {
        g_assert_false(gs_arch_disassemble(&gs_arch_x86_64, 0,
                                           bytes, len, false, &out));
        g_assert_cmpstr(out.text, ==, "");
        g_assert_cmpstr(out.operand, ==, "");
    }
}
