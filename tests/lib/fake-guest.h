/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest for stack walks: three stacks and a page of code in host memory,
 * words put where a kernel would have pushed them, and the walk over them.
 * For one test at a time; the kernel's tables are the test's own.
 */
#ifndef FAKE_GUEST_H
#define FAKE_GUEST_H

#include "tests/lib/orc-writer.h"
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/modules/modules.h"

#define BPF 0xffffffffc0700000ull

/* The guest's stacks, in three places that are far from each other. */
#define TASK 0xffffc90000100000ull
#define IRQ  0xffffc90000004000ull
#define NMI  0xfffffe0000009000ull
#define STACK_SIZE 0x4000
#define USER_CS 0x33
#define KERNEL_CS 0x10

typedef struct Guest {
    GsKernel k;
    GsUnwinder *u;
    uint64_t task[STACK_SIZE / 8];
    uint64_t irq[STACK_SIZE / 8];
    uint64_t nmi[STACK_SIZE / 8];
    uint64_t code[512];
    bool has_code;
    unsigned n_pages;
    uint64_t frames[64];
    unsigned n;
} Guest;

static inline const void *guest_page(void *opaque, uint64_t va)
{
    Guest *g = opaque;
    struct {
        uint64_t va;
        uint64_t *host;
    } map[] = { { TASK, g->task }, { IRQ, g->irq }, { NMI, g->nmi } };

    g->n_pages++;
    for (size_t i = 0; i < G_N_ELEMENTS(map); i++) {
        if (va >= map[i].va && va < map[i].va + STACK_SIZE) {
            return map[i].host + ((va - map[i].va) & ~0xfffull) / 8;
        }
    }
    return g->has_code && (va & ~0xfffull) == BPF ? g->code : NULL;
}

static inline void put(Guest *g, uint64_t va, uint64_t word)
{
    uint64_t *page = (uint64_t *)guest_page(g, va);

    page[(va & 0xfff) / 8] = word;
}

/* Words as they are pushed last, from @va up. */
#define PUT(g, va, ...) do { \
        const uint64_t words_[] = { __VA_ARGS__ }; \
        for (size_t i_ = 0; i_ < G_N_ELEMENTS(words_); i_++) { \
            put(g, (va) + 8 * i_, words_[i_]); \
        } \
    } while (0)

/* struct pt_regs */
static inline void put_regs(Guest *g, uint64_t va, uint64_t ip, uint64_t cs,
                            uint64_t sp, uint64_t bp, uint64_t r10)
{
    put(g, va + 32, bp);
    put(g, va + 56, r10);
    put(g, va + 128, ip);
    put(g, va + 136, cs);
    put(g, va + 152, sp);
}

static inline void put_iret(Guest *g, uint64_t va, uint64_t ip, uint64_t cs,
                            uint64_t sp)
{
    put(g, va, ip);
    put(g, va + 8, cs);
    put(g, va + 24, sp);
}

/** guest_new_of() - @rows: the kernel's table, code from @text_va up. */
static inline Guest *guest_new_of(uint64_t text_va, const OrcRow *rows,
                                  size_t n)
{
    g_auto(OrcArrays) a = orc_writer_finish(GS_ORC_LAYOUT_6_4,
                                            text_va + 0x1000000, rows, n);
    GsOrcRaw raw = orc_writer_raw(&a);
    GsRange image = { text_va, text_va + 0x100000 };
    GsRange text = { text_va, text_va + 0x10000 };
    Guest *g = g_new0(Guest, 1);

    g->k.arch = gs_arch_nth(GS_ARCH_X86_64);
    g->k.orc = gs_orc_set_new();
    g->k.modules = gs_modules_new();
    g_assert_true(gs_orc_set_load(g->k.orc, image, &text, 1, &raw, NULL));
    g->u = gs_unwinder_new(&g->k);
    return g;
}

static inline void guest_free(Guest *g)
{
    gs_unwinder_free(g->u);
    gs_orc_set_free(g->k.orc);
    gs_modules_free(g->k.modules);
    g_free(g);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Guest, guest_free)

static inline GsStop unwind(Guest *g, uint64_t ip, uint64_t sp, uint64_t bp)
{
    GsRegs regs = { ip, sp, bp, false };

    g->n_pages = 0;
    return gs_unwind(g->u, &regs, guest_page, g, g->frames,
                     G_N_ELEMENTS(g->frames), &g->n);
}

#define ASSERT_FRAMES(g, ...) do { \
        const uint64_t want_[] = { __VA_ARGS__ }; \
        g_assert_cmpuint((g)->n, ==, G_N_ELEMENTS(want_)); \
        for (size_t i_ = 0; i_ < G_N_ELEMENTS(want_); i_++) { \
            g_assert_cmphex((g)->frames[i_], ==, want_[i_]); \
        } \
    } while (0)

#define ASSERT_STOP(got, want) \
    g_assert_cmpstr(gs_stop_name(got), ==, gs_stop_name(want))

#endif /* FAKE_GUEST_H */
