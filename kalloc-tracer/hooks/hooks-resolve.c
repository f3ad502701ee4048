/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Find the functions of a hook table in a kernel: see hooks.h. */
#include "kalloc-tracer/hooks/hooks-internal.h"
#include "kalloc-tracer/layout/layout.h"

#include <string.h>

/* A compiler can replace a static function by clones with these suffixes, or
 * make them beside it. */
static const char *const clone_suffix[] = {
    "", ".constprop.0", ".isra.0", ".constprop.0.isra.0", ".part.0",
};

static void add_page(KtHooks *h, uint64_t page)
{
    unsigned i = kt_hooks_slot(page, KT_HOOK_PAGE_SLOTS);

    while (h->page[i] && h->page[i] != page) {
        i = (i + 1) & (KT_HOOK_PAGE_SLOTS - 1);
    }
    h->page[i] = page;
}

/* A block that begins in the page before can run into this one. */
void kt_hooks_add_page(KtHooks *h, uint64_t va)
{
    add_page(h, va >> KT_HOOK_PAGE_SHIFT);
    add_page(h, (va >> KT_HOOK_PAGE_SHIFT) - 1);
}

static void add_entry(KtHooks *h, uint8_t id)
{
    unsigned i = kt_hooks_slot(h->va[id], KT_HOOK_ENTRY_SLOTS);

    while (h->entry[i]) {
        if (h->va[h->entry[i]] == h->va[id]) {
            return;             /* an alias: the first row keeps it */
        }
        i = (i + 1) & (KT_HOOK_ENTRY_SLOTS - 1);
    }
    h->entry[i] = id;
    kt_hooks_add_page(h, h->va[id]);
}

/* Find an argument by its name in BTF; without it use @otherwise. */
static int arg_by_name(KtHooks *h, const GsKernel *k, uint8_t id,
                       const char *param, int otherwise)
{
    int arg = gs_kernel_func_param(k, h->table[id - 1].symbol, param);

    h->by_btf[id] |= arg >= 0;
    return arg >= 0 ? arg : otherwise;
}

/* free_unref_page() before 5.13 frees a single page and has no argument for
 * the order; no argument means order 0. */
static int order_arg(const GsKernel *k, const KtHook *hook)
{
    bool single = gs_kernel_func_param(k, hook->symbol, "page") >= 0 &&
                  gs_kernel_func_param(k, hook->symbol, "order") < 0;

    return single ? KT_NO_ARG : hook->size;
}

/* Positions changed: alloc_pages_bulk() lost its list argument in 6.14, and
 * alloc_pages_nolock() got a new first argument in 6.17. */
static void find_page_args(KtHooks *h, const GsKernel *k, uint8_t id)
{
    const KtHook *hook = &h->table[id - 1];

    if (hook->role == KT_ROLE_PAGE_ALLOC) {
        h->row[id].size = arg_by_name(h, k, id, "order", hook->size);
    } else if (hook->role == KT_ROLE_PAGE_BULK) {
        h->row[id].array = arg_by_name(h, k, id, "page_array", hook->array);
        h->row[id].list = arg_by_name(h, k, id, "page_list", KT_NO_ARG);
    } else if (hook->role == KT_ROLE_PAGE_FREE) {
        h->row[id].size = order_arg(k, hook);
    }
}

static void find_gfp(KtHooks *h, const GsKernel *k, uint8_t id)
{
    int arg = arg_by_name(h, k, id, "flags", KT_NO_ARG);

    h->row[id].gfp = arg != KT_NO_ARG ? arg :
                     arg_by_name(h, k, id, "gfp_flags", h->table[id - 1].gfp);
}

static void add_wrapper(KtHookWrappers *w, KtHookRange code, uint8_t id)
{
    unsigned i = w->n;

    while (i && w->row[i - 1].code.start > code.start) {
        i--;
    }
    if (i && w->row[i - 1].code.start == code.start) {
        return;                 /* an alias: the first row keeps it */
    }
    memmove(&w->row[i + 1], &w->row[i], (w->n - i) * sizeof(w->row[0]));
    w->row[i].code = code;
    w->row[i].id = id;
    w->n++;
}

static KtHookRange range_of(const GsSymbol *sym)
{
    return (KtHookRange) { sym->va, sym->va + sym->size };
}

static KtHookWrappers *wrappers_of(KtHooks *h, uint8_t id)
{
    return h->row[id].pages ? &h->page_wrappers : &h->wrappers;
}

/* A wrapper that begins with a test for nothing to do can be split: callers
 * inline the test and call the rest, name.part.0. */
static void add_wrapper_part(KtHooks *h, const GsKernel *k, uint8_t id)
{
    g_autofree char *name = g_strconcat(h->table[id - 1].symbol, ".part.0",
                                        NULL);
    GsSymbol part;

    if (gs_kernel_lookup(k, name, &part) && gs_kernel_is_text(k, part.va)) {
        add_wrapper(wrappers_of(h, id), range_of(&part), id);
    }
}

static void add_wrapper_row(KtHooks *h, const GsKernel *k, uint8_t id,
                            KtHookRange code)
{
    const KtHook *hook = &h->table[id - 1];
    bool wrapper = kt_role_does(hook->role, KT_DOES_WRAP);

    if (wrapper || h->split[id] || (hook->flags & KT_HOOK_OUTER)) {
        add_wrapper(wrappers_of(h, id), code, id);
        h->unsized[id] = code.start == code.end;
    }
    if (wrapper && !kt_role_does(hook->role, KT_DOES_ALLOCATE)) {
        add_wrapper_part(h, k, id);
    }
}

static void find_part(KtHooks *h, const GsKernel *k, uint8_t id)
{
    g_autofree char *name = g_strconcat(h->table[id - 1].symbol, ".part.0",
                                        NULL);
    GsSymbol part;

    if (gs_kernel_lookup(k, name, &part)) {
        h->va[id] = part.va;
        h->split[id] = true;
        g_free(h->symbol[id]);
        h->symbol[id] = g_steal_pointer(&name);
    }
}

static void add_piece(KtHooks *h, uint8_t id, const GsSymbol *sym)
{
    const KtHookPiece piece = { range_of(sym), id };

    g_array_append_val(h->pieces, piece);
}

/* Add the code of function @name, and of its unlikely paths, which compilers
 * put into name.cold. Return false if the kernel lacks it. */
static bool find_code(KtHooks *h, const GsKernel *k, uint8_t id,
                      const char *name, GsSymbol *out)
{
    g_autofree char *cold = g_strconcat(name, ".cold", NULL);
    GsSymbol sym;

    if (!gs_kernel_lookup(k, name, out) || !gs_kernel_is_text(k, out->va)) {
        return false;
    }
    add_piece(h, id, out);
    if (gs_kernel_lookup(k, cold, &sym)) {
        add_piece(h, id, &sym);
    }
    return true;
}

/* Code of an allocating function that the compiler moved to clones is its own
 * code: what it calls there is inner work. */
static void add_clones(KtHooks *h, const GsKernel *k, uint8_t id)
{
    for (unsigned i = 1; i < G_N_ELEMENTS(clone_suffix); i++) {
        g_autofree char *name = g_strconcat(h->table[id - 1].symbol,
                                            clone_suffix[i], NULL);
        GsSymbol sym;

        find_code(h, k, id, name, &sym);
    }
}

/* A setup function is only recognised as a caller, and its arguments are not
 * read. So all of its clones count. */
static void find_setup(KtHooks *h, const GsKernel *k, uint8_t id)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(clone_suffix); i++) {
        g_autofree char *name = g_strconcat(h->table[id - 1].symbol,
                                            clone_suffix[i], NULL);
        GsSymbol sym;

        if (find_code(h, k, id, name, &sym) && !h->symbol[id]) {
            h->va[id] = sym.va;
            h->symbol[id] = g_steal_pointer(&name);
        }
    }
}

static void find_undoing(KtHooks *h, const GsKernel *k, uint8_t id)
{
    const char *name = h->table[id - 1].undone_by;
    GsSymbol sym;

    if (name && gs_kernel_lookup(k, name, &sym) &&
        gs_kernel_is_text(k, sym.va)) {
        h->row[id].undo_at = sym.va;
        h->row[id].undo_len = MIN(sym.size, UINT32_MAX);
    }
}

static void resolve_row(KtHooks *h, const GsKernel *k, uint8_t id)
{
    const KtHook *hook = &h->table[id - 1];
    GsSymbol sym;

    h->row[id] = (KtHookRow) {
        .role = hook->role, .layer = hook->layer, .family = hook->family,
        .flags = hook->flags, .size = hook->size, .ptr = hook->ptr,
        .cache = hook->cache, .gfp = hook->gfp, .array = hook->array,
        .count = hook->count, .list = KT_NO_ARG,
        .pages = kt_role_is_pages(hook->role), .sizes = hook->sizes,
    };
    if (hook->flags & KT_HOOK_SITES) {
        return;
    }
    if (hook->role == KT_ROLE_SETUP) {
        find_setup(h, k, id);
        return;
    }
    if (((hook->flags & KT_HOOK_INSTEAD) && h->va[id - 1]) ||
        !find_code(h, k, id, hook->symbol, &sym)) {
        return;
    }
    h->va[id] = sym.va;
    h->symbol[id] = g_strdup(hook->symbol);
    if (kt_role_does(hook->role, KT_DOES_MAKE)) {
        add_clones(h, k, id);
    }
    if (hook->flags & KT_HOOK_SPLIT) {
        find_part(h, k, id);
    }
    if (hook->flags & KT_HOOK_GFP_BY_NAME) {
        find_gfp(h, k, id);
    }
    find_page_args(h, k, id);
    add_wrapper_row(h, k, id, range_of(&sym));
    find_undoing(h, k, id);
    if (!kt_role_does(hook->role, KT_DOES_UNHOOKED)) {
        h->n_found++;
        add_entry(h, id);
    }
}

/* Find a function of that name or a clone of it. */
static bool find_any_clone(const GsKernel *k, const char *function,
                           KtHookRange *out)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(clone_suffix); i++) {
        g_autofree char *name = g_strconcat(function, clone_suffix[i], NULL);
        GsSymbol sym;

        if (gs_kernel_lookup(k, name, &sym) && gs_kernel_is_text(k, sym.va)) {
            *out = range_of(&sym);
            return true;
        }
    }
    return false;
}

static void find_vfree_worker(KtHooks *h, const GsKernel *k)
{
    KtHookRange before;

    if (find_any_clone(k, "delayed_vfree_work", &h->vfree_worker)) {
        h->vfree_called_again = KT_YES;
    } else {
        h->vfree_called_again = find_any_clone(k, "__vunmap", &before) ?
                                KT_NO : KT_UNKNOWN;
    }
}

/* Return true if kmem_cache_free() keeps objects of other caches: the kernel
 * has that function, and member "random" is there if and only if the option is
 * set. Without types the option is taken to be set, as distributions do. */
static bool is_strict(const GsKernel *k)
{
    KtHookRange warns;

    return find_any_clone(k, "warn_free_bad_obj", &warns) &&
           (!gs_kernel_has_types(k) ||
            kt_member(k, KT_M_CACHE_RANDOM) != KT_NO_MEMBER);
}

static void clear_strict(KtHooks *h)
{
    for (unsigned id = 1; id <= h->n_rows; id++) {
        h->row[id].flags &= ~KT_HOOK_STRICT;
    }
}

/* Return true if functions are missing that make the row's events doubtful, see
 * hooks-internal.h. */
static bool is_unsure(const KtHookRow *row, KtHookCoverage missing)
{
    const KtRoleRow *role = &kt_roles[row->role];
    unsigned frees = role->needs_frees, allocs = role->needs_allocs;

    if (role->does & KT_DOES_MAKE) {
        frees |= 1u << row->layer;
    }
    if (role->does & KT_DOES_FREE) {
        allocs |= kt_hook_family_layers(row->family);
    }
    return missing.frees & frees || missing.allocs & allocs;
}

static void mark_unsure(KtHooks *h, KtHookCoverage missing)
{
    for (unsigned id = 1; id <= h->n_rows; id++) {
        h->row[id].flags |= is_unsure(&h->row[id], missing) ? KT_HOOK_UNSURE :
                                                              0;
    }
}

void kt_hooks_doubt(KtHooks *h, unsigned layers)
{
    mark_unsure(h, (KtHookCoverage) { layers, layers });
}

KtHooks *kt_hooks_resolve(const KtHookTable *table, const GsKernel *k,
                          unsigned sets)
{
    KtHooks *h = g_new0(KtHooks, 1);

    sets |= gs_kernel_has_types(k) ? 0 : KT_HOOKS_UNTYPED;
    h->table = kt_hook_table_row(table, (KtHookId) { 1 });
    h->n_rows = kt_hook_table_count(table);
    h->pieces = g_array_new(FALSE, FALSE, sizeof(KtHookPiece));
    for (unsigned id = 1; id <= h->n_rows; id++) {
        if (!(kt_roles[h->table[id - 1].role].set & ~sets)) {
            resolve_row(h, k, id);
        }
    }
    find_vfree_worker(h, k);
    if (!is_strict(k)) {
        clear_strict(h);
    }
    mark_unsure(h, kt_hook_coverage(h, table, k));
    return h;
}

/* ---- coverage ------------------------------------------------------------ */
/*
 * Coverage: see hooks-internal.h.
 *
 * A rule names functions of which each kernel has at least one. If only the
 * exported symbols are known, functions inside the allocators are overlooked:
 * some free without a call of a hook. Layers that
 * share an address space go together: an object can be in memory that an
 * object of another layer had before.
 */

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
