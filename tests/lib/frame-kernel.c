/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/lib/frame-kernel.h"

#include <string.h>

#include "guest-symbols/arch/arch.h"
#include "guest-symbols/modules/modules.h"
#include "guest-symbols/symbols/symtab.h"

GsSymtab *frame_symtab(const FrameSymbol *symbols, size_t n)
{
    GsSymtab *tab = gs_symtab_new();

    for (size_t i = 0; i < n; i++) {
        gs_symtab_add(tab, symbols[i].va, 'T', symbols[i].name,
                      strlen(symbols[i].name));
    }
    gs_symtab_seal(tab, NULL);
    return tab;
}

void frame_kernel_init(GsKernel *k, const GsArch *arch, GsRange image,
                       GsRange text, const FrameSymbol *symbols, size_t n,
                       bool meta)
{
    k->arch = arch;
    k->text[0] = text;
    k->orc = gs_orc_set_new();
    k->modules = gs_modules_new();
    k->btf = frame_types_new(meta);
    k->symtab = frame_symtab(symbols, n);
    g_assert_true(gs_orc_set_load(k->orc, image, &text, 1, NULL, NULL));
}

void frame_kernel_clear(GsKernel *k)
{
    gs_orc_set_free(k->orc);
    gs_modules_free(k->modules);
    gs_btf_free(k->btf);
    gs_symtab_free(k->symtab);
}
