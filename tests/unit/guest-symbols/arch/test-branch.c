/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls and jumps: the bytes are what binutils and LLVM assemble. */
#include "tests/lib/test-main.h"
#include "guest-symbols/arch/arch-internal.h"

#include <inttypes.h>

#define VA 0xffffffff81000000ull

/* off: the target is VA + off; 0: no direct jump. len 0: not decoded. */
typedef struct Sample {
    const GsArch *arch;
    const char *text;
    uint8_t bytes[8];
    size_t n;
    unsigned len;
    bool call;
    int64_t off;
    bool maybe;
} Sample;

static const Sample samples[] = {
    { &gs_arch_x86_64, "call", { 0xe8, 0xfb, 0, 0, 0 }, 5, 5, true, 0x100 },
    { &gs_arch_x86_64, "call back", { 0xe8, 0xf6, 0xff, 0xff, 0xff }, 5, 5,
      true, -5 },
    { &gs_arch_x86_64, "jmp", { 0xe9, 0xfb, 0, 0, 0 }, 5, 5, false, 0x100 },
    { &gs_arch_x86_64, "cs jmp", { 0x2e, 0xe9, 0xfa, 0, 0, 0 }, 6, 6, false,
      0x100 },
    { &gs_arch_x86_64, "jmp short", { 0xeb, 0xfc }, 2, 2, false, -2 },
    { &gs_arch_x86_64, "je short", { 0x74, 0x0e }, 2, 2, false, 0x10, true },
    { &gs_arch_x86_64, "je", { 0x0f, 0x84, 0xfa, 0, 0, 0 }, 6, 6, false,
      0x100, true },
    { &gs_arch_x86_64, "call *%rax", { 0xff, 0xd0 }, 2, 2, false, 0 },
    { &gs_arch_x86_64, "ret", { 0xc3 }, 1, 1, false, 0 },
    { &gs_arch_x86_64, "unknown", { 0x06 }, 1, 0, false, 0 },
    { &gs_arch_x86_64, "cut off", { 0xe8, 0xfb, 0, 0 }, 4, 0, false, 0 },
    { &gs_arch_arm64, "bl", { 0x40, 0, 0, 0x94 }, 4, 4, true, 0x100 },
    { &gs_arch_arm64, "b back", { 0xff, 0xff, 0xff, 0x17 }, 4, 4, false, -4 },
    { &gs_arch_arm64, "b.eq", { 0, 0x08, 0, 0x54 }, 4, 4, false, 0x100, true },
    { &gs_arch_arm64, "cbz x0", { 0, 0x08, 0, 0xb4 }, 4, 4, false, 0x100,
      true },
    { &gs_arch_arm64, "cbnz w1", { 0xe1, 0xff, 0xff, 0x35 }, 4, 4, false,
      -4, true },
    { &gs_arch_arm64, "tbz x0, #33", { 0, 0x08, 0x08, 0xb6 }, 4, 4, false,
      0x100, true },
    { &gs_arch_arm64, "blr x0", { 0, 0, 0x3f, 0xd6 }, 4, 4, false, 0 },
    { &gs_arch_arm64, "cut off", { 0x40, 0, 0 }, 3, 0, false, 0 },
    { &gs_arch_riscv64, "jal", { 0xef, 0, 0, 0x10 }, 4, 4, true, 0x100 },
    { &gs_arch_riscv64, "j", { 0x6f, 0, 0, 0x10 }, 4, 4, false, 0x100 },
    { &gs_arch_riscv64, "beq", { 0x63, 0x08, 0xb5, 0x00 }, 4, 4, false, 0x10,
      true },
    { &gs_arch_riscv64, "c.j back", { 0xfd, 0xbf }, 2, 2, false, -2 },
    { &gs_arch_riscv64, "call", { 0x97, 0x10, 0, 0, 0xe7, 0x80, 0, 0x10 }, 8,
      8, true, 0x1100 },
    { &gs_arch_riscv64, "tail", { 0x17, 0x13, 0, 0, 0x67, 0, 0x03, 0xf0 }, 8,
      8, false, 0xf00 },
    { &gs_arch_riscv64, "jalr a1", { 0xe7, 0x80, 0x05, 0 }, 4, 4, false, 0 },
    { &gs_arch_riscv64, "six bytes", { 0x1f }, 6, 0, false, 0 },
    { &gs_arch_riscv64, "cut off", { 0xef, 0 }, 2, 0, false, 0 },
};

TEST(samples_are_decoded, "/branch/samples-are-decoded")
{
    for (size_t i = 0; i < G_N_ELEMENTS(samples); i++) {
        const Sample *s = &samples[i];
        GsBranch b = { 0 };
        bool known = s->arch->branch(VA, s->bytes, s->n, &b);

        if (known != (s->len > 0) ||
            (known && (b.len != s->len || b.direct != (s->off != 0) ||
                       b.maybe != s->maybe ||
                       (b.direct && (b.call != s->call ||
                                     b.to != VA + s->off))))) {
            g_error("%s %s: %d, %u bytes, direct %d, to %" PRIx64,
                    s->arch->name, s->text, known, b.len, b.direct, b.to);
        }
    }
}
