/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Does the code do what the table assumes? See hooks.h.
 *
 * The code of a function that leans on others is read once for each boot, and
 * its calls and jumps are compared with the hooks:
 *
 *     krealloc()                         the table assumes
 *       call __kmalloc_node_track_caller    an allocating hook    found
 *       call kfree                          a freeing hook        found
 *
 *     krealloc()                         without tracepoints
 *       call __kmem_cache_alloc_node        a KT_HOOK_SITES row: hook this call
 *       call __kmem_cache_free              another one
 *
 * A function may call a hook in a helper, so those that it calls are read, too,
 * but not what they call. The bytes are the guest's: the caps below bound what
 * is read.
 */
#include "kalloc-tracer/hooks/hooks-internal.h"

#define FUNCTION_BYTES  8192            /* of one function; most have 500 */
#define HELPERS         48              /* of one row */
#define ROW_BYTES       (64 * 1024)     /* of one row */

/* What a function leads to, as bits. */
typedef enum Leads {
    ALLOCS = 1 << 0,
    FREES = 1 << 1,
} Leads;

/**
 * struct Scan - the code of one row's function
 * @leads: Leads of the hooks that it calls
 * @inlined: Leads of the calls inside inlined hooks, which KtHooks.site has
 * @branches: calls and jumps of its own code
 * @incomplete: some of its code is not known
 * @helper: addresses that it calls, and which are no hooks
 * @budget: bytes that may be read
 */
typedef struct Scan {
    KtHooks *h;
    const GsKernel *k;
    const GsArch *arch;
    const KtCodeReader *reader;
    uint8_t id;
    unsigned leads, inlined, branches;
    bool incomplete;
    unsigned n_helpers;
    uint64_t helper[HELPERS];
    size_t budget;
} Scan;

/* ---- what a row assumes -------------------------------------------------- */

static unsigned needs(KtRole role)
{
    return role == KT_ROLE_REALLOC ? ALLOCS | FREES :
           role == KT_ROLE_FREE_OUTER ? FREES : 0;
}

/* Return true if the row assumes that its function calls another row's. */
static bool leans(const KtHookRow *row)
{
    return kt_role_does(row->role, KT_DOES_WRAP) ||
           (row->flags & KT_HOOK_OUTER);
}

/* A function that leans on others is asked itself. */
static unsigned leads_to(const KtHookRow *row)
{
    if (leans(row)) {
        return ALLOCS | FREES;
    }
    return kt_role_does(row->role, KT_DOES_ALLOCATE) ? ALLOCS : FREES;
}

/* ---- targets ------------------------------------------------------------- */

/* Return the row whose function begins at @to. A call may skip the landing pad
 * at the entry, which has 4 bytes. */
static uint8_t row_at(const Scan *s, uint64_t to)
{
    for (uint64_t va = to; va + 4 >= to; va -= 4) {
        KtHookId id = kt_hooks_at(s->h, va);

        if (!id.v) {
            id = kt_hooks_wrapper(s->h, va + 1, s->h->row[s->id].pages);
            id.v = id.v && s->h->va[id.v] == va ? id.v : 0;
        }
        if (id.v) {
            return id.v;
        }
    }
    return 0;
}

/* Return the KT_HOOK_SITES row whose function begins at @to. */
static uint8_t inner_at(const Scan *s, uint64_t to)
{
    for (unsigned id = 1; id <= s->h->n_rows; id++) {
        uint64_t va = s->h->inner_va[id];

        if (va && to - va <= 4) {
            return id;
        }
    }
    return 0;
}

static void use_row(Scan *s, uint8_t id)
{
    KtHooks *h = s->h;

    if (!h->va[id]) {
        h->va[id] = h->inner_va[id];
        h->symbol[id] = g_strdup(h->table[id - 1].symbol);
        h->n_found++;
    }
}

/* Hook the instruction at @va, which calls the function of row @id, or jumps to
 * it. */
static void add_site(Scan *s, uint64_t va, const GsBranch *b, uint8_t id)
{
    KtHooks *h = s->h;

    if (b->maybe || h->n_sites == G_N_ELEMENTS(h->site)) {
        s->incomplete = true;
        return;
    }
    use_row(s, id);
    h->site[h->n_sites++] = (KtHookSite) {
        .va = va, .ra = b->call ? va + b->len : 0, .id = { id },
    };
    kt_hooks_add_page(h, va);
    s->inlined |= leads_to(&h->row[id]);
}

static void add_helper(Scan *s, uint64_t to)
{
    for (unsigned i = 0; i < s->n_helpers; i++) {
        if (s->helper[i] == to) {
            return;
        }
    }
    if (s->n_helpers < HELPERS) {
        s->helper[s->n_helpers++] = to;
    } else {
        s->incomplete = true;
    }
}

/* vmalloc() may have the code inlined that allocates an area. That code calls
 * kmalloc() for itself, which is another layer. */
static bool counts(const Scan *s, uint8_t id)
{
    const KtHookRow *row = &s->h->row[s->id], *to = &s->h->row[id];

    return !(row->flags & KT_HOOK_OUTER) || leans(to) ||
           to->layer == row->layer;
}

/* Judge a call or jump at @va. @code: the function that contains it; @own: this
 * is the function of the row, not a helper */
static void follow(Scan *s, uint64_t va, const GsBranch *b, KtHookRange code,
                   bool own)
{
    uint8_t id = row_at(s, b->to);
    uint8_t inner = own ? inner_at(s, b->to) : 0;

    s->branches++;
    if (id && id != s->id) {
        s->leads |= counts(s, id) ? leads_to(&s->h->row[id]) : 0;
    } else if (inner && !(s->h->row[s->id].flags & KT_HOOK_OUTER)) {
        add_site(s, va, b, inner);
    } else if (own && b->to - code.start >= code.end - code.start) {
        add_helper(s, b->to);
    }
}

/* ---- code ---------------------------------------------------------------- */

static void scan_code(Scan *s, KtHookRange code, bool own)
{
    uint8_t bytes[FUNCTION_BYTES];
    size_t len = code.end - code.start, at = 0;
    GsBranch b;

    if (!len || len > MIN(sizeof(bytes), s->budget) ||
        !s->reader->read(s->reader->opaque, code.start, bytes, len)) {
        s->incomplete = true;
        return;
    }
    s->budget -= len;
    while (at < len &&
           s->arch->branch(code.start + at, bytes + at, len - at, &b)) {
        if (b.direct) {
            follow(s, code.start + at, &b, code, own);
        }
        at += b.len;
    }
    s->incomplete |= at < len;
}

/* The function, its unlikely paths, and what the compiler split off. Bytes
 * without a call or jump are not the code of a function that leans on others:
 * for example, the kernel is not loaded completely. */
static void scan_function(Scan *s)
{
    static const char *const suffix[] = {
        "", ".cold", ".part.0", ".part.0.cold", ".isra.0", ".constprop.0",
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(suffix); i++) {
        g_autofree char *name = g_strconcat(s->h->table[s->id - 1].symbol,
                                            suffix[i], NULL);
        GsSymbol sym;

        if (gs_kernel_lookup(s->k, name, &sym) &&
            gs_kernel_is_text(s->k, sym.va)) {
            scan_code(s, (KtHookRange) { sym.va, sym.va + sym.size }, true);
        }
    }
    s->incomplete |= !s->branches;
}

static void scan_helpers(Scan *s)
{
    for (unsigned i = 0; i < s->n_helpers; i++) {
        GsSymbol sym;

        if (gs_kernel_symbolize(s->k, s->helper[i], &sym) &&
            gs_kernel_is_text(s->k, sym.va)) {
            scan_code(s, (KtHookRange) { sym.va, sym.va + sym.size }, false);
        } else {
            s->incomplete = true;
        }
    }
}

/* ---- the answer ---------------------------------------------------------- */

static unsigned missing(const Scan *s)
{
    unsigned found = s->leads | s->inlined;
    unsigned wanted = needs(s->h->row[s->id].role);

    return wanted ? wanted & ~found : found ? 0 : ALLOCS | FREES;
}

static unsigned layers_of(const KtHookRow *row)
{
    return row->family == KT_FAMILY_ANY ? KT_LAYERS_SLAB | KT_LAYERS_VMALLOC :
                                          kt_hook_family_layers(row->family);
}

void kt_hooks_miss(KtHooks *h, KtHookId id)
{
    const KtHookRow *row = &h->row[id.v];

    if (kt_role_does(row->role, KT_DOES_MAKE) ||
        kt_role_does(row->role, KT_DOES_FREE)) {
        kt_hooks_doubt(h, layers_of(row));
    }
}

/* The row records what its function does not call. It does so at the function's
 * entry or return, which may be in another order than the allocator's: no error
 * of that memory is certain. */
static KtHookCalls record_itself(KtHooks *h, uint8_t id, unsigned what)
{
    KtHookRow *row = &h->row[id];

    if (row->flags & KT_HOOK_OUTER) {
        return KT_HOOK_CALLS_SELF;
    }
    if (!needs(row->role)) {
        return KT_HOOK_CALLS_NO;
    }
    row->self_allocs = what & ALLOCS;
    row->self_frees = what & FREES;
    kt_hooks_doubt(h, layers_of(row));
    return KT_HOOK_CALLS_SELF;
}

static KtHookCalls ask(Scan *s)
{
    unsigned what;

    scan_function(s);
    if (missing(s)) {
        scan_helpers(s);
    }
    what = missing(s);
    if (what && s->incomplete) {
        return KT_HOOK_CALLS_UNKNOWN;
    }
    return what ? record_itself(s->h, s->id, what) :
           s->inlined ? KT_HOOK_CALLS_SITES : KT_HOOK_CALLS_YES;
}

static void find_inner(KtHooks *h, const GsKernel *k)
{
    for (unsigned id = 1; id <= h->n_rows; id++) {
        GsSymbol sym;

        if ((h->row[id].flags & KT_HOOK_SITES) &&
            gs_kernel_lookup(k, h->table[id - 1].symbol, &sym) &&
            gs_kernel_is_text(k, sym.va)) {
            h->inner_va[id] = sym.va;
        }
    }
}

void kt_hooks_check_calls(KtHooks *h, const GsKernel *k,
                          const KtCodeReader *reader)
{
    find_inner(h, k);
    for (unsigned id = 1; id <= h->n_rows; id++) {
        Scan s = {
            .h = h, .k = k, .arch = gs_kernel_arch(k), .reader = reader,
            .id = id, .budget = ROW_BYTES,
        };

        if (h->va[id] && leans(&h->row[id])) {
            h->calls[id] = ask(&s);
        }
    }
}

static void keep_row(KtHooks *h, const KtHooks *from, uint8_t id)
{
    h->calls[id] = from->calls[id];
    h->row[id].self_allocs = from->row[id].self_allocs;
    h->row[id].self_frees = from->row[id].self_frees;
    h->row[id].flags |= from->row[id].flags & KT_HOOK_UNSURE;
    if ((from->row[id].flags & KT_HOOK_SITES) && from->va[id]) {
        h->va[id] = from->va[id];
        h->symbol[id] = g_strdup(from->symbol[id]);
        h->n_found++;
    }
}

void kt_hooks_keep_calls(KtHooks *h, const KtHooks *from)
{
    for (unsigned id = 1; id <= MIN(h->n_rows, from->n_rows); id++) {
        keep_row(h, from, id);
    }
    h->n_sites = from->n_sites;
    for (unsigned i = 0; i < h->n_sites; i++) {
        h->site[i] = from->site[i];
        kt_hooks_add_page(h, h->site[i].va);
    }
}

/* ---- queries ------------------------------------------------------------- */

const KtHookSite *kt_hooks_site(const KtHooks *h, unsigned i)
{
    return i < h->n_sites ? &h->site[i] : NULL;
}

const char *kt_hooks_calls(const KtHooks *h, KtHookId id)
{
    static const char *const words[] = {
        [KT_HOOK_CALLS_NOT_ASKED] = NULL,
        [KT_HOOK_CALLS_YES] = "yes",
        [KT_HOOK_CALLS_SITES] = "no, it is inlined: its calls are hooked",
        [KT_HOOK_CALLS_SELF] = "no, it is recorded itself",
        [KT_HOOK_CALLS_NO] = "no, what it does is not recorded",
        [KT_HOOK_CALLS_UNKNOWN] = "not known",
    };

    return id.v <= h->n_rows ? words[h->calls[id.v]] : NULL;
}
