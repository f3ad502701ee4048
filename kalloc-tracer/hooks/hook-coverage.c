/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Coverage: see hook-coverage.h.
 *
 * A rule names functions of which each kernel has at least one. If only the
 * exported symbols are known, functions inside the allocators are overlooked:
 * some free without a call of a hook. Layers that
 * share an address space go together: an object can be in memory that an
 * object of another layer had before.
 */
#include "kalloc-tracer/hooks/hook-coverage.h"

#include <string.h>

#define LAYER(l) (1u << KT_LAYER_##l)
#define SLAB KT_LAYERS_SLAB

/* @where: (nullable) the rule is for kernels with this function only
 * @any: at least one of them must be hooked */
typedef struct Rule {
    unsigned layers;
    bool frees;
    const char *where;
    const char *any[3];
} Rule;

static const Rule rules[] = {
    { SLAB, false, NULL, { "__kmalloc", "__kmalloc_noprof" } },
    { SLAB, false, NULL, { "kmem_cache_alloc", "kmem_cache_alloc_noprof" } },
    { SLAB, false, "__kmalloc_noprof",
      { "kmalloc_trace_noprof", "__kmalloc_cache_noprof" } },
    { SLAB, true, NULL, { "kfree" } },
    { SLAB, true, NULL, { "kmem_cache_free" } },
    { SLAB, true, "__kfree_rcu_sheaf",
      { "rcu_free_sheaf", "rcu_free_sheaf_nobarn" } },
    { LAYER(VMALLOC), false, NULL,
      { "__vmalloc_node_range", "__vmalloc_node_range_noprof" } },
    { LAYER(VMALLOC), true, NULL, { "vfree" } },
    { LAYER(PERCPU), false, NULL, { "pcpu_alloc", "pcpu_alloc_noprof" } },
    { LAYER(PERCPU), true, NULL, { "free_percpu" } },
};

/* Suffixes of parts and clones: code of the same file calls them without the
 * function itself. */
static const char *const part_suffix[] = {
    ".part.0", ".part.1", ".isra.0", ".constprop.0", ".constprop.1",
};

static bool has_symbol(const GsKernel *k, const char *name)
{
    GsSymbol sym;

    return gs_kernel_lookup(k, name, &sym) && gs_kernel_is_text(k, sym.va);
}

/* Is the function hooked at each of its entries? */
static bool is_whole(const KtHooks *h, KtHookId id, const GsKernel *k,
                     const char *name)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(part_suffix); i++) {
        g_autofree char *part = g_strconcat(name, part_suffix[i], NULL);

        if (has_symbol(k, part) && strcmp(kt_hooks_symbol(h, id), part)) {
            return false;
        }
    }
    return true;
}

static bool is_kept(const Rule *r, const KtHooks *h, const KtHookTable *table,
                    const GsKernel *k)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(r->any) && r->any[i]; i++) {
        KtHookId id = kt_hook_table_find(table, r->any[i]);

        if (kt_hooks_va(h, id)) {
            return !r->frees || is_whole(h, id, k, r->any[i]);
        }
    }
    return false;
}

KtHookCoverage kt_hook_coverage(const KtHooks *h, const KtHookTable *table,
                                const GsKernel *k)
{
    KtHookCoverage missing = { 0 };

    if (!gs_kernel_has_all_symbols(k)) {
        missing.allocs = missing.frees = SLAB | LAYER(VMALLOC) |
                                         LAYER(PERCPU);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(rules); i++) {
        const Rule *r = &rules[i];

        if (!kt_hook_table_find(table, r->any[0]).v ||
            (r->where && !has_symbol(k, r->where)) ||
            is_kept(r, h, table, k)) {
            continue;
        }
        *(r->frees ? &missing.frees : &missing.allocs) |= r->layers;
    }
    return missing;
}

unsigned kt_hook_family_layers(KtFamily family)
{
    switch (family) {
    case KT_FAMILY_KFREE:
    case KT_FAMILY_CACHE:
        return SLAB;
    case KT_FAMILY_VFREE:
        return LAYER(VMALLOC);
    case KT_FAMILY_PERCPU:
        return LAYER(PERCPU);
    default:
        return 0;
    }
}
