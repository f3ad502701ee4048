/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: any stack with any ORC table.
 *
 * Input: 24 bytes of registers, 16 rows of a table (10 bytes each: distance and
 * entry), two pages of stack; missing bytes are 0.
 *
 * Checks: the walk ends, stores at most @max frames, and reads only pages that
 * it was given. A second walk has the same result. Then words of the stack are
 * changed, or the walk starts elsewhere: an unwinder with cached walks must
 * have the same result as a new one, and recognise a stack only if it has
 * walked exactly that stack.
 */
#include "tests/fuzz/fuzz.h"
#include "guest-symbols/arch/arch.h"
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/modules/modules.h"
#include "guest-symbols/orc/orc.h"

#define TEXT 0xffffffff81000000ull
#define IP_VA 0xffffffff82000000ull
#define STACK 0xffffc90000000000ull
#define PAGE 4096

enum {
    N_ROWS = 16,
    MAX_FRAMES = 32,
    MAX_KEPT = 64,
    HEAD = 24 + N_ROWS * 10,
    N_WORDS = 2 * PAGE / 8,
};

typedef struct Result {
    uint64_t frames[MAX_FRAMES];
    unsigned n;
    GsStop stop;
} Result;

typedef struct Fuzz {
    GsKernel k;
    uint64_t words[N_WORDS];
    Result kept[MAX_KEPT];              /* walks that @u should remember */
    unsigned n_kept;
} Fuzz;

static const void *stack_page(void *opaque, uint64_t va)
{
    Fuzz *f = opaque;
    uint64_t off = va - STACK;

    return off < sizeof(f->words) ? &f->words[off / PAGE * PAGE / 8] : NULL;
}

/* Move a small address of the input into text, stack or modules. */
static uint64_t place(uint64_t v)
{
    switch (v >> 62) {
    case 0:
        return TEXT + (v & 0xffff);
    case 1:
        return STACK + (v & 0x1ff8);
    case 2:
        return 0xffffffffc0000000ull + (v & 0xffff);
    default:
        return v;
    }
}

static bool load(Fuzz *f, const uint8_t *data)
{
    GsRange image = { TEXT, TEXT + 0x100000 };
    GsRange text = { TEXT, TEXT + 0x10000 };
    int32_t ip[N_ROWS];
    GsOrcRaw raw = {
        .ip_va = IP_VA, .ip = (const uint8_t *)ip, .ip_len = sizeof(ip),
        .orc = data + N_ROWS * 4, .orc_len = N_ROWS * 6,
    };

    for (int i = 0; i < N_ROWS; i++) {
        uint32_t off;

        memcpy(&off, data + i * 4, sizeof(off));
        ip[i] = (int32_t)(TEXT + (off & 0xffff) - (IP_VA + 4 * i));
    }
    return gs_orc_set_load(f->k.orc, image, &text, 1, &raw, NULL);
}

static void fill(Fuzz *f, const uint8_t *data, size_t len)
{
    memcpy(f->words, data, MIN(len, sizeof(f->words)));
    for (size_t i = 0; i < N_WORDS; i++) {
        f->words[i] = f->words[i] ? place(f->words[i]) : 0;
    }
}

static Result walk(Fuzz *f, GsUnwinder *u, const GsRegs *regs)
{
    Result r;

    r.stop = gs_unwind(u, regs, stack_page, f, r.frames, MAX_FRAMES, &r.n);
    if (!r.n || r.n > MAX_FRAMES || r.frames[0] != regs->ip) {
        abort();
    }
    return r;
}

static bool same(const Result *a, const Result *b)
{
    return a->stop == b->stop && a->n == b->n &&
           !memcmp(a->frames, b->frames, a->n * sizeof(a->frames[0]));
}

/* Walk with @u, which remembers earlier walks, and with a new unwinder. */
static void walk_both(Fuzz *f, GsUnwinder *u, const GsRegs *regs)
{
    g_autoptr(GsUnwinder) fresh = gs_unwinder_new(&f->k);
    Result *kept = f->kept, a, b;
    uint64_t value = 0;
    bool again = gs_unwind_again(u, regs, stack_page, f, 1, &value);

    a = walk(f, u, regs);
    b = walk(f, fresh, regs);
    if (!same(&a, &b) || (again && !same(&a, &kept[value]))) {
        abort();
    }
    if (f->n_kept < MAX_KEPT) {
        kept[f->n_kept] = a;
        gs_unwind_remember(u, 1, f->n_kept++);
    }
}

/* Change a word above the stack pointer (most likely the walk read it), and
 * restore every other one. Then walk from another stack pointer. */
static void walk_changed(Fuzz *f, const GsRegs *regs, uint32_t seed)
{
    g_autoptr(GsUnwinder) u = gs_unwinder_new(&f->k);
    uint64_t at = (regs->sp - STACK) / 8;
    GsRegs inner = *regs;

    walk_both(f, u, regs);
    walk_both(f, u, regs);
    for (unsigned i = 0; i < 8; i++, seed = seed * 1664525 + 1013904223) {
        uint64_t word = (at + (seed >> 24) % 64) % N_WORDS;
        uint64_t was = f->words[word];

        f->words[word] = f->words[(word + 1 + (seed >> 16) % 8) % N_WORDS];
        walk_both(f, u, regs);
        if (i & 1) {
            f->words[word] = was;
        }
        inner.sp = regs->sp + 8 * (seed >> 20 & 3);
        walk_both(f, u, &inner);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static Fuzz fuzz;
    Fuzz *f = &fuzz;
    uint64_t words[3];
    GsRegs regs;

    if (len < HEAD) {
        return 0;
    }
    memset(f, 0, sizeof(*f));
    f->k.arch = &gs_arch_x86_64;
    f->k.orc = gs_orc_set_new();
    f->k.modules = gs_modules_new();
    memcpy(words, data, sizeof(words));
    regs = (GsRegs) {
        place(words[0]), place(words[1]), place(words[2]), words[0] & 1,
    };
    if (load(f, data + 24)) {
        fill(f, data + HEAD, len - HEAD);
        walk_changed(f, &regs, words[1] ^ words[2] >> 32);
    }
    gs_modules_free(f->k.modules);
    gs_orc_set_free(f->k.orc);
    return 0;
}
