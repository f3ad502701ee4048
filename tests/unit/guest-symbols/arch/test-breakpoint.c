/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Instructions that a breakpoint may be planted on: the bytes are what binutils
 * assembles. */
#include "tests/lib/test-main.h"
#include "guest-symbols/arch/arch-internal.h"

typedef struct Sample {
    const char *text;
    uint8_t bytes[12];
    size_t n;
    GsBreakpoint is;
} Sample;

#define NEVER   GS_BREAKPOINT_NEVER
#define NOTHING GS_BREAKPOINT_NOTHING
#define PLAIN   GS_BREAKPOINT_PLAIN
#define RETURN  GS_BREAKPOINT_RETURN

static const Sample samples[] = {
    { "endbr64", { 0xf3, 0x0f, 0x1e, 0xfa }, 4, NOTHING },
    { "nop", { 0x90 }, 1, NOTHING },
    { "nopl 0(%rax,%rax)", { 0x0f, 0x1f, 0x44, 0, 0 }, 5, NOTHING },
    { "data16 nop", { 0x66, 0x90 }, 2, NOTHING },
    { "push %rbp", { 0x55 }, 1, PLAIN },
    { "push %r15", { 0x41, 0x57 }, 2, PLAIN },
    { "pop %rbx", { 0x5b }, 1, PLAIN },
    { "ret", { 0xc3 }, 1, RETURN },
    { "ret $8", { 0xc2, 8, 0 }, 3, NEVER },
    { "jmp", { 0xe9, 0, 1, 0, 0 }, 5, PLAIN },
    { "call", { 0xe8, 0, 1, 0, 0 }, 5, PLAIN },
    { "je", { 0x74, 2 }, 2, NEVER },
    { "mov %rdi,%rax", { 0x48, 0x89, 0xf8 }, 3, PLAIN },
    { "mov (%rsp),%r8", { 0x4c, 0x8b, 0x04, 0x24 }, 4, PLAIN },
    { "mov 0x10(%rip),%rax", { 0x48, 0x8b, 0x05, 16, 0, 0, 0 }, 7, PLAIN },
    { "mov %gs:0x10(%rip),%eax", { 0x65, 0x8b, 0x05, 16, 0, 0, 0 }, 7, PLAIN },
    { "mov %eax,%gs:0x10(%rip)", { 0x65, 0x89, 0x05, 16, 0, 0, 0 }, 7, NEVER },
    { "mov %ax,%dx", { 0x66, 0x89, 0xc2 }, 3, NEVER },
    { "movslq %gs:0x10(%rip),%rax", { 0x65, 0x48, 0x63, 0x05, 16, 0, 0, 0 }, 8,
      PLAIN },
    { "mov %eax,%edx with %gs", { 0x65, 0x8b, 0xd0 }, 3, NEVER },
    { "movabs $1,%r9", { 0x49, 0xb9, 1, 0, 0, 0, 0, 0, 0, 0 }, 10, PLAIN },
    { "lea 8(%rsp),%rdi", { 0x48, 0x8d, 0x7c, 0x24, 8 }, 5, PLAIN },
    { "xor %eax,%eax", { 0x31, 0xc0 }, 2, PLAIN },
    { "xor %eax,%edx", { 0x31, 0xc2 }, 2, NEVER },
    { "xor %eax,%r8d", { 0x41, 0x31, 0xc0 }, 3, NEVER },
    { "test %rdi,%rdi", { 0x48, 0x85, 0xff }, 3, PLAIN },
    { "testl $1,%gs:0x10(%rip)", { 0x65, 0xf7, 0x05, 16, 0, 0, 0, 1, 0, 0, 0 },
      11, PLAIN },
    { "testw $1,%gs:0x10(%rip)", { 0x65, 0x66, 0xf7, 0x05, 16, 0, 0, 0, 1, 0 },
      10, PLAIN },
    { "testb $1,%gs:0x10(%rip)", { 0x65, 0xf6, 0x05, 16, 0, 0, 0, 1 }, 8,
      PLAIN },
    { "testl $1,(%rax,%rdx)", { 0xf7, 0x04, 0x10, 1, 0, 0, 0 }, 7, NEVER },
    { "sub $0x10,%rsp", { 0x48, 0x83, 0xec, 0x10 }, 4, PLAIN },
    { "cmp $0x10,%rdi", { 0x48, 0x83, 0xff, 0x10 }, 4, PLAIN },
    { "or $0x10,%rdi", { 0x48, 0x83, 0xcf, 0x10 }, 4, NEVER },
    { "subl $1,0x10(%rip)", { 0x83, 0x2d, 16, 0, 0, 0, 1 }, 7, NEVER },
    { "int3", { 0xcc }, 1, NEVER },
    { "cut off", { 0xe9, 0, 1 }, 3, NEVER },
    { "a prefix alone", { 0x65 }, 1, NEVER },
};

TEST(each_sample, "/breakpoint/samples")
{
    for (size_t i = 0; i < G_N_ELEMENTS(samples); i++) {
        const Sample *s = &samples[i];
        unsigned is = gs_breakpoint_x86_64(s->bytes, s->n);

        if (is != (unsigned)s->is) {
            g_error("%s: %u, not %u", s->text, is, (unsigned)s->is);
        }
    }
}
