/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guest-symbols/arch/arch.h"
#include "tests/lib/guest-stacks.h"

const void *guest_page(void *opaque, uint64_t va)
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

void guest_put(Guest *g, uint64_t va, uint64_t word)
{
    uint64_t *page = (uint64_t *)guest_page(g, va);

    page[(va & 0xfff) / 8] = word;
}

void put_regs(Guest *g, uint64_t va, uint64_t ip, uint64_t cs,
              uint64_t sp, uint64_t bp, uint64_t r10)
{
    guest_put(g, va + 32, bp);
    guest_put(g, va + 56, r10);
    guest_put(g, va + 128, ip);
    guest_put(g, va + 136, cs);
    guest_put(g, va + 152, sp);
}

void put_iret(Guest *g, uint64_t va, uint64_t ip, uint64_t cs, uint64_t sp)
{
    guest_put(g, va, ip);
    guest_put(g, va + 8, cs);
    guest_put(g, va + 24, sp);
}

Guest *guest_new_of(uint64_t text_va, const OrcRow *rows, size_t n)
{
    g_auto(OrcArrays) a = orc_writer_finish(GS_ORC_LAYOUT_6_4,
                                            text_va + 0x1000000, rows, n);
    GsOrcRaw raw = orc_writer_raw(&a);
    GsRange image = { text_va, text_va + 0x100000 };
    GsRange text = { text_va, text_va + 0x10000 };
    Guest *g = g_new0(Guest, 1);

    g->k.arch = &gs_arch_x86_64;
    g->k.orc = gs_orc_set_new();
    g->k.modules = gs_modules_new();
    g_assert_true(gs_orc_set_load(g->k.orc, image, &text, 1, &raw, NULL));
    g->u = gs_unwinder_new(&g->k);
    return g;
}

void guest_free(Guest *g)
{
    gs_unwinder_free(g->u);
    gs_orc_set_free(g->k.orc);
    gs_modules_free(g->k.modules);
    g_free(g);
}

GsStop unwind(Guest *g, uint64_t ip, uint64_t sp, uint64_t bp)
{
    GsRegs regs = { ip, sp, bp, false };

    g->n_pages = 0;
    return gs_unwind(g->u, &regs, guest_page, g, g->frames,
                     G_N_ELEMENTS(g->frames), &g->n);
}
