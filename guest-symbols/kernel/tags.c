/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tags in the pointers of a kernel, see gs-tags.h. No state. */
#include "guest-symbols/kernel/kernel.h"

bool gs_kernel_tags_pointers(const GsKernel *k)
{
    /* mm/kasan/sw_tags.c, which exports it; mm/kasan/hw_tags.c */
    static const char *const names[] = {
        "__hwasan_tag_memory", "kasan_init_hw_tags",
    };
    GsSymbol sym;

    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        if (gs_kernel_lookup(k, names[i], &sym)) {
            return true;
        }
    }
    return false;
}

uint64_t gs_kernel_tag_bits(const GsKernel *k)
{
    return k->arch->tag_bits && gs_kernel_tags_pointers(k) ?
               k->arch->tag_bits : 0;
}
