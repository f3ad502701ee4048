/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Record: the page allocator (pages=on).
 *
 * The same order as in record.c: a free at entry, an allocation at return.
 * Pages that compaction takes out of the free lists are its own until it
 * gives them back, by freeing them, or to a folio that is migrated: so each
 * free is of something that was handed out, and a free of what is free
 * already is an error.
 */
#include "kalloc-tracer/capture/record-internal.h"

typedef struct PageWalk {
    KtHookCall *m;
    KtHookId id;
    bool folios;            /* their own order, not single pages */
    uint8_t flags;
} PageWalk;

/* ---- frees -------------------------------------------------------------- */

static void free_range(KtHookCall *m, KtHookId id, uint64_t va, uint64_t len,
                       uint8_t flags)
{
    if (!va || !len) {
        kt_record_lose(m, KT_CNT_PAGE_UNREADABLE);
        return;
    }
    if (!m->have_stack) {
        m->wrapper = kt_record_free_site(m);
    }
    m->ev.family = KT_FAMILY_PAGES;
    m->ev.size = len;
    m->ev.flags = flags;
    kt_record_event(m, KT_EV_FREE, id, va);
}

/*
 * free_unref_page() and __free_pages_core() leave it to __free_pages_ok(), as
 * free_frozen_pages() does to __free_frozen_pages(), and that again: by calls
 * or by jumps, which look like calls from where the first one was called, of
 * rows further down the table. The event says that it may be one told before:
 * an interrupt between the two can hide that here, the model sees it.
 */
static bool told_already(KtHookCall *m, const KtHookRow *hook, KtHookId id,
                         uint64_t va, uint64_t len)
{
    const KtPageFree last = m->v->page_free;
    bool inner = hook->flags & KT_HOOK_INNER;

    m->v->page_free = (KtPageFree) { m->sp_after, m->ra, va, len, id };
    return inner && ((last.sp == m->sp_after && last.ra == m->ra &&
                      last.va == va && last.len == len && id.v > last.id.v) ||
                     kt_hooks_in_role(m->boot->hooks, m->ra,
                                      KT_ROLE_PAGE_FREE));
}

/*
 * Pages that the memory cgroup does not pay for are freed again by the call
 * that got them, which hands out nothing then.
 */
static bool takes_back(KtHookCall *m)
{
    uint64_t caller = m->ra;

    m->wrapper = kt_record_free_site(m);
    if (m->wrapper.v) {
        const uint64_t *frames;
        unsigned n;
        GsStop stop;

        if (!(m->boot->row[m->wrapper.v].flags & KT_HOOK_UNDO)) {
            return false;
        }
        kt_record_complete(m);
        frames = kt_tracer_stack(m->c->tracer, m->ev.stack, &n, &stop);
        caller = n ? frames[0] : 0;
    }
    return kt_hooks_in_role(m->boot->hooks, caller, KT_ROLE_PAGE_ALLOC);
}

static void enter_free(KtHookCall *m, const KtHookRow *hook, KtHookId id)
{
    const KtStructPages *p = m->boot->pages;
    uint64_t va = kt_struct_page_va(p, kt_vcpu_arg(m->v, hook->ptr));
    uint64_t len = kt_struct_page_len(p, kt_vcpu_arg(m->v, hook->size) &
                                             UINT32_MAX);

    if (!told_already(m, hook, id, va, len) && !takes_back(m)) {
        free_range(m, id, va, len,
                   (hook->flags & KT_HOOK_FRESH ? KT_EVF_FRESH : 0) |
                   (hook->flags & KT_HOOK_INNER ? KT_EVF_AGAIN : 0));
    }
}

static bool free_page(uint64_t page, void *opaque)
{
    const PageWalk *w = opaque;
    const KtStructPages *p = w->m->boot->pages;

    free_range(w->m, w->id, kt_struct_page_va(p, page),
               w->folios ? kt_struct_page_folio_len(p, page) :
                           kt_struct_page_len(p, 0),
               0);
    return true;
}

static void enter_free_many(KtHookCall *m, const KtHookRow *hook, KtHookId id)
{
    const KtStructPages *p = m->boot->pages;
    uint64_t at = kt_vcpu_arg(m->v, hook->array);
    PageWalk w = { .m = m, .id = id };
    bool all;

    if (hook->role == KT_ROLE_PAGE_FREE_BATCH) {
        w.folios = true;
        all = kt_struct_page_walk_batch(p, at, free_page, &w);
    } else {
        all = kt_struct_page_walk_list(p, at, UINT64_MAX, free_page, &w);
    }
    if (!all) {
        kt_record_lose(m, KT_CNT_BULK_UNREADABLE);
    }
}

/* ---- allocations -------------------------------------------------------- */

static void await_pages(KtHookCall *m, const KtHookRow *hook, KtHookId id)
{
    KtPendingCall call = {
        .sp = m->sp_after,
        .ra = m->ra,
        .hook = id,
        .size = kt_vcpu_arg(m->v, hook->size),
        .ptr = kt_vcpu_arg(m->v, hook->ptr),
        .gfp = kt_vcpu_arg(m->v, hook->gfp),
    };

    if ((hook->flags & KT_HOOK_INNER) &&
        kt_hooks_in_role(m->boot->hooks, m->ra, hook->role)) {
        return;
    }
    if (hook->role == KT_ROLE_PAGE_BULK) {
        call.size = kt_vcpu_arg(m->v, hook->count);
        call.ptr = kt_vcpu_arg(m->v, hook->array);
        call.cache = kt_vcpu_arg(m->v, hook->list);
    }
    kt_record_await(m, &call);
}

void kt_record_pages_enter(KtHookCall *m, const KtHookRow *hook, KtHookId id)
{
    switch (hook->role) {
    case KT_ROLE_PAGE_FREE:
        enter_free(m, hook, id);
        break;
    case KT_ROLE_PAGE_FREE_BATCH:
    case KT_ROLE_PAGE_FREE_LIST:
        enter_free_many(m, hook, id);
        break;
    default:
        await_pages(m, hook, id);
        break;
    }
}

static void alloc_range(KtHookCall *m, const KtPendingCall *call, uint64_t va,
                        uint64_t len, uint8_t flags)
{
    if (!va || !len) {
        kt_record_lose(m, KT_CNT_PAGE_UNREADABLE);
        return;
    }
    m->ev.layer = KT_LAYER_PAGES;
    m->ev.size = len;
    m->ev.actual = len;
    m->ev.gfp = call->gfp;
    m->ev.cache = (KtCacheId) { 0 };
    m->ev.flags = flags;
    kt_record_event(m, KT_EV_ALLOC, call->hook, va);
    m->ev.flags = 0;
}

static bool alloc_page(uint64_t page, void *opaque)
{
    const PageWalk *w = opaque;
    const KtStructPages *p = w->m->boot->pages;
    const KtPendingCall call = { .hook = w->id, .gfp = w->m->ev.gfp };

    alloc_range(w->m, &call, kt_struct_page_va(p, page),
                kt_struct_page_len(p, 0), KT_EVF_IF_NEW);
    return true;
}

/* What the caller had in the array before is skipped by the kernel, and
 * counted as if it came from here. */
static void leave_bulk(KtHookCall *m, const KtPendingCall *call,
                       uint64_t result)
{
    const KtStructPages *p = m->boot->pages;
    uint64_t n = MIN(result & UINT32_MAX, call->size & UINT32_MAX);
    PageWalk w = { .m = m, .id = call->hook };

    m->ev.gfp = call->gfp;
    if (!n) {
        kt_vcpu_count(m->v, KT_CNT_ALLOC_FAILED, 1);
    } else if (!(call->ptr ? kt_struct_page_walk_array(p, call->ptr, n,
                                                       alloc_page, &w) :
                             kt_struct_page_walk_list(p, call->cache, n,
                                                      alloc_page, &w))) {
        kt_record_lose(m, KT_CNT_BULK_UNREADABLE);
    }
}

static void leave_contig(KtHookCall *m, const KtPendingCall *call,
                         uint64_t result)
{
    const KtStructPages *p = m->boot->pages;
    uint64_t start = call->ptr, end = call->size;

    if (result & UINT32_MAX) {
        kt_vcpu_count(m->v, KT_CNT_ALLOC_FAILED, 1);
    } else if (start < end && kt_struct_page_va_of(p, end)) {
        alloc_range(m, call, kt_struct_page_va_of(p, start),
                    (end - start) * kt_struct_page_len(p, 0), KT_EVF_TAKE);
    }
}

void kt_record_pages_leave(KtHookCall *m, const KtPendingCall *call,
                           uint64_t result)
{
    const KtStructPages *p = m->boot->pages;
    uint64_t order = call->size & UINT32_MAX;
    KtRole role = m->boot->row[call->hook.v].role;

    switch (role) {
    case KT_ROLE_PAGE_BULK:
        leave_bulk(m, call, result);
        return;
    case KT_ROLE_PAGE_CONTIG:
        leave_contig(m, call, result);
        return;
    case KT_ROLE_PAGE_ISOLATE:
        if (result & UINT32_MAX) {
            alloc_range(m, call, kt_struct_page_va(p, call->ptr),
                        kt_struct_page_len(p, order), KT_EVF_TAKE);
        }
        return;
    default:
        break;
    }
    if (!result) {
        kt_vcpu_count(m->v, KT_CNT_ALLOC_FAILED, 1);
    } else if (role == KT_ROLE_PAGE_MIGRATE) {
        alloc_range(m, call, kt_struct_page_va(p, result),
                    kt_struct_page_folio_len(p, result), KT_EVF_TAKE);
    } else {
        alloc_range(m, call, kt_struct_page_va(p, result),
                    kt_struct_page_len(p, order), 0);
    }
}
