/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stacks of kernels other than Linux are walked by frame records alone. */
#include "tests/lib/elf-writer.h"
#include "tests/lib/test-main.h"
#include "guest-symbols/gs.h"

#define HIGH    0xfffffff02a000000ull
#define LOW     0x80000000ull
#define STACK   0x100000ull             /* of both, from their base */
#define CODE    0x1000

/* A kernel of two functions at @base. */
static GsKernel *kernel_of(unsigned machine, uint64_t base,
                           const GsElfOptions *o)
{
    const ElfSymbol syms[] = {
        { "start", base + 0x100, 1, STT_FUNC },
        { "kalloc", base + 0x200, 1, STT_FUNC },
    };
    static const uint8_t code[CODE] = { 1, 2, 3, 4 };
    g_autoptr(GBytes) bytes = NULL;
    g_autoptr(GError) err = NULL;
    const void *data;
    GsKernel *k;
    ElfWriter w;
    size_t len;

    elf_writer_start(&w);
    w.machine = machine;
    w.entry = base;
    elf_writer_add(&w, ".text", base, SHF_EXECINSTR, code, sizeof(code));
    elf_writer_symbols(&w, syms, G_N_ELEMENTS(syms));
    bytes = elf_writer_finish(&w);
    data = g_bytes_get_data(bytes, &len);
    k = gs_kernel_new_elf_from_data(data, len, o, &err);
    g_assert_no_error(err);
    return k;
}

static uint64_t words[1024];
static uint64_t stack_va;

static const void *page(void *opaque, uint64_t va)
{
    return va >= stack_va && va - stack_va < sizeof(words)
           ? (const char *)words + ((va - stack_va) & ~0xfffull) : NULL;
}

static void put(unsigned at, uint64_t fp, uint64_t ra)
{
    words[at] = fp;
    words[at + 1] = ra;
}

typedef struct Stack {
    uint64_t frames[8];
    unsigned n;
    GsStop stop;
} Stack;

/* From kalloc(), called by the code at @ra whose frame pointer is @fp. */
static Stack walk(const GsKernel *k, uint64_t ra, uint64_t fp)
{
    g_autoptr(GsUnwinder) u = gs_unwinder_new(k);
    const GsRegs regs = { .ip = ra, .sp = stack_va, .bp = fp };
    uint64_t value;
    Stack s;

    s.stop = gs_unwind(u, &regs, page, NULL, s.frames, 8, &s.n);
    g_assert_false(gs_unwind_again(u, &regs, page, NULL, 0, &value));
    return s;
}

#define ASSERT_STACK(s, why, ...) do { \
        const uint64_t want_[] = { __VA_ARGS__ }; \
        g_assert_cmpstr(gs_stop_name((s).stop), ==, gs_stop_name(why)); \
        g_assert_cmpuint((s).n, ==, G_N_ELEMENTS(want_)); \
        for (size_t i_ = 0; i_ < G_N_ELEMENTS(want_); i_++) { \
            g_assert_cmphex((s).frames[i_], ==, want_[i_]); \
        } \
    } while (0)

/* @behind: from a record to where the frame pointer points */
static void check_walks(unsigned machine, uint64_t base, uint64_t behind)
{
    static const char *const outermost[] = { "nobody", "start", NULL };
    const GsElfOptions o = { 0 }, told = { .outermost = outermost };
    g_autoptr(GsKernel) k = kernel_of(machine, base, &o);
    g_autoptr(GsKernel) ended = kernel_of(machine, base, &told);
    uint64_t fp, a = base + 0x310, b = base + 0x180, c = base + 0x420;

    stack_va = base + STACK;
    fp = stack_va + behind;
    put(0, fp + 64, b);
    put(8, fp + 128, c);
    put(16, 0, 0);
    ASSERT_STACK(walk(k, a, fp), GS_STOP_END, a, b, c);
    ASSERT_STACK(walk(ended, a, fp), GS_STOP_END, a, b);
    put(8, 0, c);
    ASSERT_STACK(walk(k, a, fp), GS_STOP_END, a, b, c);
    put(8, fp, c);          /* in a circle: bounded */
    g_assert_cmpint(walk(k, a, fp).stop, !=, GS_STOP_END);
    put(8, fp + 128, 0x1000);
    ASSERT_STACK(walk(k, a, fp), GS_STOP_UNKNOWN_PC, a, b);
    put(8, 0x1000, c);      /* not the kernel's */
    ASSERT_STACK(walk(k, a, fp), GS_STOP_BAD_FRAME, a, b, c);
}

TEST(walks, "/frame-rules/walks")
{
    check_walks(EM_AARCH64, HIGH, 0);
    check_walks(EM_RISCV, HIGH, 16);
    check_walks(EM_RISCV, LOW, 16);
    check_walks(EM_AARCH64, LOW, 0);
    check_walks(EM_X86_64, HIGH, 0);
}

/* In the upper half a signature clears bits, in the lower one it sets some. */
TEST(signed_return_addresses, "/frame-rules/signed-return-addresses")
{
    const GsElfOptions o = { .va_bits = 39 };
    const uint64_t bits = 0x35ull << 48;
    const uint64_t base[] = { HIGH, LOW };

    for (unsigned i = 0; i < G_N_ELEMENTS(base); i++) {
        g_autoptr(GsKernel) k = kernel_of(EM_AARCH64, base[i], &o);
        uint64_t a = base[i] + 0x310, b = base[i] + 0x180;

        stack_va = base[i] + STACK;
        put(0, 0, b ^ bits);
        ASSERT_STACK(walk(k, a, stack_va), GS_STOP_END, a, b);
    }
}
