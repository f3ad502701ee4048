/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: any stack of an architecture whose stacks are walked by frame
 * records; x86-64 is one if its kernel has no ORC.
 *
 * Input: a byte for the architecture, 24 bytes of registers, two pages of
 * stack; missing bytes are 0.
 *
 * Checks: the walk ends, stores at most @max frames, reads only the pages that
 * it was given, and returns only addresses in the kernel's half. A second walk
 * has the same result. If a stack is recognised as one that was walked before,
 * that walk has the same result too.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/lib/frame-types.h"
#include "guest-symbols/arch/arch.h"
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/modules/modules.h"
#include "guest-symbols/symbols/symtab.h"

#define TEXT    0xffffffff80010000ull
#define STACK   0xffff800000100000ull
#define PAGE    4096

enum {
    MAX_FRAMES = 32,
    HEAD = 25,
    MAX_KEPT = 32,
    N_WORDS = 2 * PAGE / 8,
};

typedef struct Result {
    uint64_t frames[MAX_FRAMES];
    unsigned n;
    GsStop stop;
} Result;

static uint64_t words[N_WORDS];
static Result kept[MAX_KEPT];
static unsigned n_kept;

static const void *stack_page(void *opaque, uint64_t va)
{
    uint64_t off = va - STACK;

    return off < sizeof(words) ? &words[off / PAGE * PAGE / 8] : NULL;
}

/* Move a small address of the input into the text or the stack. */
static uint64_t place(uint64_t v)
{
    switch (v >> 62) {
    case 0:
        return TEXT + (v & 0x1ffff);
    case 1:
        return STACK + (v & 0x1ff8);
    default:
        return v;
    }
}

static GsSymtab *make_symbols(void)
{
    static const char *const names[] = {
        "_start", "_stext", "handle_exception", "ret_from_exception",
        "ret_from_fork"
    };
    GsSymtab *tab = gs_symtab_new();

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        gs_symtab_add(tab, TEXT - 0x100 + 0x100 * i, 'T', names[i],
                      strlen(names[i]));
    }
    gs_symtab_seal(tab, NULL);
    return tab;
}

static const GsArch *arch_of(unsigned choice)
{
    return choice & 4 ? &gs_arch_x86_64 :
           choice & 1 ? &gs_arch_arm64 : &gs_arch_riscv64;
}

/* The kernel of an architecture, with or without types. Created once. */
static const GsKernel *kernel_of(unsigned choice)
{
    static GsKernel kernels[8];
    GsKernel *k = &kernels[choice % G_N_ELEMENTS(kernels)];
    const GsRange image = { TEXT, TEXT + 0x20000 };
    const GsRange text = { TEXT, TEXT + 0x10000 };

    if (!k->orc) {
        k->arch = arch_of(choice);
        k->unwind_by = choice & 4 ? GS_UNWIND_BY_FRAMES : GS_UNWIND_BY_ARCH;
        k->text[0] = text;
        k->orc = gs_orc_set_new();
        k->modules = gs_modules_new();
        k->symtab = make_symbols();
        k->btf = frame_types_new(choice & 2);
        if (!k->btf ||
            !gs_orc_set_load(k->orc, image, &text, 1, NULL, NULL)) {
            abort();
        }
    }
    return k;
}

static void walk(GsUnwinder *u, const GsRegs *regs, Result *r)
{
    memset(r, 0, sizeof(*r));
    r->stop = gs_unwind(u, regs, stack_page, NULL, r->frames, MAX_FRAMES,
                        &r->n);
    if (r->stop >= GS_STOP__COUNT || r->n > MAX_FRAMES || !r->n) {
        abort();
    }
    for (unsigned i = 1; i < r->n; i++) {
        if (!(r->frames[i] >> 63)) {
            abort();
        }
    }
}

static bool same(const Result *a, const Result *b)
{
    return a->stop == b->stop && a->n == b->n &&
           !memcmp(a->frames, b->frames, a->n * sizeof(a->frames[0]));
}

static void walk_again(GsUnwinder *u, const GsRegs *regs)
{
    uint64_t value = 0;
    bool again = gs_unwind_again(u, regs, stack_page, NULL, 1, &value);
    Result now, other;

    walk(u, regs, &now);
    walk(u, regs, &other);
    if (!same(&now, &other)) {
        abort();
    }
    if (again && (value >= n_kept || !same(&now, &kept[value]))) {
        abort();
    }
    if (n_kept < MAX_KEPT) {
        kept[n_kept] = now;
        gs_unwind_remember(u, 1, n_kept++);
    }
}

/* Change words above the stack pointer: most likely the walk read them. */
static void walk_changed(GsUnwinder *u, const GsRegs *regs, uint32_t seed)
{
    uint64_t at = (regs->sp - STACK) / 8;

    for (unsigned i = 0; i < 8; i++, seed = seed * 1664525 + 1013904223) {
        uint64_t word = (at + (seed >> 24) % 64) % N_WORDS;
        uint64_t was = words[word];

        words[word] = words[(word + 1 + (seed >> 16) % 8) % N_WORDS];
        walk_again(u, regs);
        if (i & 1) {
            words[word] = was;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    uint64_t head[3];
    GsRegs regs;
    g_autoptr(GsUnwinder) u = NULL;

    if (len < HEAD) {
        return 0;
    }
    u = gs_unwinder_new(kernel_of(data[0] & 7));
    n_kept = 0;
    memcpy(head, data + 1, sizeof(head));
    memset(words, 0, sizeof(words));
    memcpy(words, data + HEAD, MIN(len - HEAD, sizeof(words)));
    for (unsigned i = 0; i < N_WORDS; i++) {
        words[i] = words[i] ? place(words[i]) : 0;
    }
    regs = (GsRegs) {
        .ip = place(head[0]), .sp = place(head[1]), .bp = place(head[2]),
    };
    walk_again(u, &regs);
    walk_again(u, &regs);
    walk_changed(u, &regs, data[0] * 0x01010101u ^ (uint32_t)head[0]);
    return 0;
}
