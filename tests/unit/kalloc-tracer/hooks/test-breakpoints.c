/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Breakpoints of functions of a few bytes, as compilers of the kernel make
 * them. */
#include "tests/lib/test-main.h"
#include "kalloc-tracer/hooks/breakpoints.h"

#include <string.h>

#define F       0xffffffff81001000ull   /* the function */
#define COLD    0xffffffff81001040ull   /* its unlikely paths */
#define G       0xffffffff81001080ull   /* another function */
#define END     0xffffffff810010c0ull

static const char map[] =
    "ffffffff81000000 T _stext\n"
    "ffffffff81000000 T _text\n"
    "ffffffff81000800 T __fentry__\n"
    "ffffffff81000900 T __x86_return_thunk\n"
    "ffffffff81000910 T srso_alias_return_thunk\n"
    "ffffffff81000920 T __x86_return_skl\n"
    "ffffffff81000940 T __x86_indirect_thunk_array\n"
    "ffffffff81000a00 T before\n"
    "ffffffff81001000 T f\n"
    "ffffffff81001040 t f.cold\n"
    "ffffffff81001080 T g\n"
    "ffffffff810010c0 T after\n"
    "ffffffff82000000 T _etext\n"
    "ffffffff82100000 R linux_banner\n"
    "ffffffff82200000 T slow_path\n";

#define INT3_8          0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc
#define ENDBR64         0xf3, 0x0f, 0x1e, 0xfa
#define NOP5            0x0f, 0x1f, 0x44, 0, 0
#define OFF(at, to, n)  ((to) - (at) - 5) >> (n) & 0xff
#define REL32(at, to)   OFF(at, to, 0), OFF(at, to, 8), OFF(at, to, 16), \
                        OFF(at, to, 24)
#define CALL(at, to)    0xe8, REL32(at, to)
#define JMP(at, to)     0xe9, REL32(at, to)
#define FENTRY          0xffffffff81000800ull
#define THUNK           0xffffffff81000900ull
#define SRSO            0xffffffff81000910ull
#define SKYLAKE         0xffffffff81000920ull
#define RETPOLINE       0xffffffff81000960ull   /* in the array */

/* The code of both; each ends with int3, and so does the rest */
typedef struct Code {
    uint8_t main[64], cold[64];
    bool unreadable;
} Code;

static void put_code(uint8_t *at, const uint8_t *code, size_t len)
{
    while (len && !code[len - 1]) {
        len--;
    }
    memcpy(at, code, len);
}

static bool read_code(void *opaque, uint64_t va, void *buf, size_t len)
{
    const Code *c = opaque;
    uint8_t all[END - F];

    memset(all, 0xcc, sizeof(all));
    put_code(all, c->main, sizeof(c->main));
    put_code(all + (COLD - F), c->cold, sizeof(c->cold));
    if (c->unreadable || va < F || va + len > END) {
        return false;
    }
    memcpy(buf, all + (va - F), len);
    return true;
}

static bool find(const Code *c, KtBreakpoints *out)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(GsKernel) k = gs_kernel_new_from_data(map, strlen(map),
                                                    "System.map", &err);
    const KtCodeReader reader = { read_code, (void *)c };

    g_assert_no_error(err);
    return kt_breakpoints_find(k, &reader, F, out);
}

TEST(entry_behind_ftrace, "/breakpoints/entry-behind-ftrace")
{
    const Code nop = { { ENDBR64, NOP5, 0x55, 0x5d, 0xc3, INT3_8 } };
    const Code call = { { CALL(F, FENTRY), 0x55, 0x5d, 0xc3, INT3_8 } };
    const Code plain = { { 0x55, 0x5d, 0xc3, INT3_8 } };
    KtBreakpoints b;

    g_assert_true(find(&nop, &b));
    g_assert_cmphex(b.entry, ==, F + 9);
    g_assert_cmpuint(b.n_returns, ==, 1);
    g_assert_cmphex(b.returns[0], ==, F + 11);
    g_assert_false(b.incomplete);
    g_assert_true(find(&call, &b));
    g_assert_cmphex(b.entry, ==, F + 5);
    g_assert_true(find(&plain, &b));
    g_assert_cmphex(b.entry, ==, F);
}

/* Another call is an instruction like others. */
TEST(entry_at_call, "/breakpoints/entry-at-call")
{
    const Code c = { { NOP5, CALL(F + 5, G), 0xc3, INT3_8 } };
    KtBreakpoints b;

    g_assert_true(find(&c, &b));
    g_assert_cmphex(b.entry, ==, F + 5);
}

/* The first instruction is that of a loop, also by an unlikely path, or is not
 * emulated. */
TEST(no_entry, "/breakpoints/no-entry")
{
    const Code cold = {
        .main = { NOP5, 0x48, 0x85, 0xff, 0xc3, INT3_8 },
        .cold = { JMP(COLD, F + 5), INT3_8 },
    };
    const Code loop = { { NOP5, 0x48, 0x85, 0xff, 0x75, 0xfb, 0xc3, INT3_8 } };
    const Code lock = { { NOP5, 0xf0, 0xff, 0x0f, 0xc3, INT3_8 } };
    KtBreakpoints b;

    g_assert_true(find(&loop, &b));
    g_assert_cmphex(b.entry, ==, 0);
    g_assert_true(find(&cold, &b));
    g_assert_cmphex(b.entry, ==, 0);
    g_assert_true(find(&lock, &b));
    g_assert_cmphex(b.entry, ==, 0);
    g_assert_cmpuint(b.n_returns, ==, 1);
}

TEST(returns, "/breakpoints/returns")
{
    const Code c = {
        .main = { NOP5, 0x55, 0x74, 0x06, 0x5d, JMP(F + 9, THUNK),
                  JMP(F + 14, COLD), INT3_8 },
        .cold = { 0x5d, 0xc3, JMP(COLD + 2, F + 8), INT3_8 },
    };
    KtBreakpoints b;

    g_assert_true(find(&c, &b));
    g_assert_cmphex(b.entry, ==, F + 5);
    g_assert_cmpuint(b.n_returns, ==, 2);
    g_assert_cmphex(b.returns[0], ==, F + 9);
    g_assert_cmphex(b.returns[1], ==, COLD + 1);
    g_assert_cmpuint(b.n_tails, ==, 0);
    g_assert_false(b.incomplete);
}

/* Kernels have return thunks for CPUs with faults. */
TEST(return_thunks, "/breakpoints/return-thunks")
{
    const Code c = {
        .main = { NOP5, 0x55, 0x74, 0x06, 0x5d, JMP(F + 9, SRSO), 0x5d,
                  JMP(F + 15, SKYLAKE), INT3_8 },
    };
    KtBreakpoints b;

    g_assert_true(find(&c, &b));
    g_assert_cmpuint(b.n_returns, ==, 2);
    g_assert_cmphex(b.returns[0], ==, F + 9);
    g_assert_cmphex(b.returns[1], ==, F + 15);
    g_assert_cmpuint(b.n_tails, ==, 0);
    g_assert_false(b.incomplete);
}

/* Where these end in is not known, or they return in a form that is not
 * emulated. */
TEST(unknown_ends, "/breakpoints/unknown-ends")
{
    const Code codes[] = {
        { .main = { NOP5, 0x55, JMP(F + 6, RETPOLINE), INT3_8 } },
        { .main = { NOP5, 0x55, 0x5d, 0xff, 0xe0, INT3_8 } },
        { .main = { NOP5, 0x55, 0x5d, 0x41, 0xff, 0xe3, INT3_8 } },
        { .main = { NOP5, 0x55, 0x5d, 0xf3, 0xc3, INT3_8 } },
        { .main = { NOP5, 0x55, 0x5d, 0xc2, 8, 0, INT3_8 } },
    };
    KtBreakpoints b;

    for (size_t i = 0; i < G_N_ELEMENTS(codes); i++) {
        g_assert_true(find(&codes[i], &b));
        g_assert_cmpuint(b.n_returns, ==, 0);
        g_assert_cmpuint(b.n_tails, ==, 0);
        g_assert_true(b.incomplete);
    }
}

/* It ends in another function; a jump out of the text is none of these. */
TEST(tails, "/breakpoints/tails")
{
    const Code c = {
        .main = { NOP5, 0x55, JMP(F + 6, 0xffffffff82200000ull), 0x5d,
                  JMP(F + 12, G), INT3_8 },
    };
    KtBreakpoints b;

    g_assert_true(find(&c, &b));
    g_assert_cmpuint(b.n_returns, ==, 0);
    g_assert_cmpuint(b.n_tails, ==, 1);
    g_assert_cmphex(b.tails[0], ==, G);
    g_assert_false(b.incomplete);
}

TEST(unreadable, "/breakpoints/unreadable")
{
    const Code c = { .unreadable = true };
    KtBreakpoints b;

    g_assert_false(find(&c, &b));
    g_assert_cmphex(b.entry, ==, 0);
}
