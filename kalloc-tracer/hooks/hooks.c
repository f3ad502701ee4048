/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The hook table's functions in one kernel: see hooks.h.
 *
 * Lookups by address, from the most to the least frequent:
 *
 *   page[]   hash set of the pages that blocks with an entry can begin in.
 *            The translator asks for each block; nearly all answers are no.
 *   entry[]  hash table: address of an entry -> id.
 *   wrappers sorted by address: which wrapper contains a return address?
 *   pieces   array of code ranges: which function of the table is a caller
 *            in? A function can have several (.cold, .part.0).
 */
#include "kalloc-tracer/hooks/hooks-internal.h"
#include "kalloc-tracer/hooks/hooks.h"

void kt_hooks_free(KtHooks *h)
{
    if (!h) {
        return;
    }
    for (unsigned id = 0; id < KT_HOOK_ROWS_MAX; id++) {
        g_free(h->symbol[id]);
    }
    g_array_unref(h->pieces);
    g_free(h);
}

uint64_t kt_hooks_va(const KtHooks *h, KtHookId id)
{
    return id.v <= h->n_rows ? h->va[id.v] : 0;
}

const char *kt_hooks_symbol(const KtHooks *h, KtHookId id)
{
    return id.v <= h->n_rows ? h->symbol[id.v] : NULL;
}

bool kt_hooks_args_by_btf(const KtHooks *h, KtHookId id)
{
    return id.v <= h->n_rows && h->by_btf[id.v];
}

unsigned kt_hooks_n_found(const KtHooks *h)
{
    return h->n_found;
}

KtHookId kt_hooks_at(const KtHooks *h, uint64_t va)
{
    unsigned i = kt_hooks_slot(va, KT_HOOK_ENTRY_SLOTS);

    while (h->entry[i]) {
        if (h->va[h->entry[i]] == va) {
            return (KtHookId) { h->entry[i] };
        }
        i = (i + 1) & (KT_HOOK_ENTRY_SLOTS - 1);
    }
    return (KtHookId) { 0 };
}

bool kt_hooks_page(const KtHooks *h, uint64_t va)
{
    uint64_t page = va >> KT_HOOK_PAGE_SHIFT;
    unsigned i = kt_hooks_slot(page, KT_HOOK_PAGE_SLOTS);

    while (h->page[i]) {
        if (h->page[i] == page) {
            return true;
        }
        i = (i + 1) & (KT_HOOK_PAGE_SLOTS - 1);
    }
    return false;
}

/* Return the next row whose code contains @va, NULL for none. @i: (in, out)
 * the piece to continue at. An entry's own address does not count: a return
 * address is always behind it. */
static const KtHook *caller_at(const KtHooks *h, uint64_t va, unsigned *i)
{
    while (*i < h->pieces->len) {
        const KtHookPiece *p = &g_array_index(h->pieces, KtHookPiece, (*i)++);

        if (va > p->code.start && va < p->code.end) {
            return &h->table[p->id - 1];
        }
    }
    return NULL;
}

KtHookId kt_hooks_wrapper(const KtHooks *h, uint64_t va, bool pages)
{
    const KtHookWrappers *w = pages ? &h->page_wrappers : &h->wrappers;
    unsigned lo = 0, hi = w->n;

    while (lo < hi) {
        unsigned mid = (lo + hi) / 2;

        if (w->row[mid].code.start < va) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return (KtHookId) { lo && va < w->row[lo - 1].code.end ?
                        w->row[lo - 1].id : 0 };
}

bool kt_hooks_is_unsized(const KtHooks *h, KtHookId id)
{
    return h->unsized[id.v];
}

bool kt_hooks_in_role(const KtHooks *h, uint64_t va, KtRole role)
{
    const KtHook *caller;
    unsigned i = 0;

    while ((caller = caller_at(h, va, &i))) {
        if (caller->role == role && !(caller->flags & KT_HOOK_OUTER)) {
            return true;
        }
    }
    return false;
}

/* The caller must allocate what @row frees. pcpu_alloc() does not: it frees a
 * bitmap with kvfree(), and that vmalloc block is an event of its own. */
static bool undoes(const KtHookRow *row, const KtHook *caller)
{
    if (row->role == KT_ROLE_FREE_BULK) {
        return caller->role == KT_ROLE_ALLOC_BULK;
    }
    return caller->role == KT_ROLE_ALLOC &&
           caller->layer == KT_LAYER_VMALLOC &&
           row->family == KT_FAMILY_VFREE;
}

static bool is_work_of(const KtHookRow *row, const KtHook *caller)
{
    return ((row->flags & KT_HOOK_INNER) && caller->role == row->role &&
            !(caller->flags & KT_HOOK_OUTER)) ||
           ((row->flags & KT_HOOK_SETUP) && caller->role == KT_ROLE_SETUP) ||
           ((row->flags & KT_HOOK_UNDO) && undoes(row, caller));
}

bool kt_hooks_is_inner(const KtHooks *h, const KtHookRow *row, uint64_t va)
{
    const KtHook *caller;
    unsigned i = 0;

    while ((caller = caller_at(h, va, &i))) {
        if (is_work_of(row, caller)) {
            return true;
        }
    }
    return false;
}

KtHookRow kt_hooks_row(const KtHooks *h, KtHookId id)
{
    return id.v <= h->n_rows ? h->row[id.v] : (KtHookRow) { 0 };
}

KtAnswer kt_hooks_vfree_called_again(const KtHooks *h)
{
    return h->vfree_called_again;
}

bool kt_hooks_is_vfree_worker(const KtHooks *h, uint64_t va)
{
    return va > h->vfree_worker.start && va < h->vfree_worker.end;
}

/* If vfree() was split, the part is hooked. Then a call from the rest of it is
 * a call from elsewhere. */
bool kt_hooks_is_vfree(const KtHooks *h, uint64_t va)
{
    const KtHook *caller;
    unsigned i = 0;

    while ((caller = caller_at(h, va, &i))) {
        unsigned id = caller - h->table + 1;

        if ((caller->flags & KT_HOOK_NOT_IN_IRQ) && !h->split[id]) {
            return true;
        }
    }
    return false;
}

/* ---- frames of wrappers -------------------------------------------------- */
/*
 * Frames inside wrappers: see hooks.h. Called by vCPU threads, once
 * for each walk of a stack.
 *
 * A BPF trampoline that shows the return of a function to a program (fexit)
 * calls the function itself. Then there are two more frames before its caller:
 *
 *     vzalloc+0x62            in the wrapper
 *     bpf_trampoline_6442+0x4b
 *     vzalloc+0x9             behind the call of the trampoline, at the entry
 *     caller+0x1c             the first frame of the backtrace
 *
 * If the function ends with a jump to the allocator, the trampoline is the
 * first frame. Without a program the backtrace would begin at the function's
 * caller, and so it does here.
 */

/* The call of a trampoline ends in the first bytes of a function: behind a
 * landing pad (4 bytes) and a call (5 bytes on x86-64; two instructions on
 * arm64 and riscv64). */
#define ENTRY_BYTES 16

static bool is_at_entry(const GsKernel *k, uint64_t va)
{
    GsSymbol sym;

    return gs_kernel_symbolize(k, va - 1, &sym) && va - sym.va <= ENTRY_BYTES;
}

/* The trampoline has no name if the kernel has no types. */
static bool may_be_trampoline(const GsKernel *k, uint64_t va)
{
    GsSymbol sym;

    return !gs_kernel_symbolize(k, va, &sym) ||
           g_str_has_prefix(sym.name, "bpf_trampoline_");
}

static bool in_kernel_text(const GsKernel *k, uint64_t va)
{
    uint64_t start, end;

    return gs_kernel_text_range(k, &start, &end) && va >= start && va < end;
}

/* Is @frames[0] a trampoline that called the function of @frames[1]? */
static bool begins_with_trampoline(const GsKernel *k, const uint64_t *frames,
                                   unsigned n)
{
    return n > 2 && !in_kernel_text(k, frames[0]) &&
           is_at_entry(k, frames[1]) && may_be_trampoline(k, frames[0]);
}

unsigned kt_wrapper_frames(const KtHooks *h, const GsKernel *k,
                           KtHookId *wrapper, bool pages,
                           const uint64_t *frames, unsigned n)
{
    unsigned skip = 0;
    KtHookId next = *wrapper;

    for (;;) {
        if (!next.v && begins_with_trampoline(k, frames + skip, n - skip)) {
            skip += 2;
            next = kt_hooks_wrapper(h, frames[skip], pages);
        }
        if (!next.v || skip + 1 >= n) {
            return skip;
        }
        *wrapper = next;
        next = kt_hooks_wrapper(h, frames[++skip], pages);
    }
}
