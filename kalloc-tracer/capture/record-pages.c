/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Record: entries and returns of the page allocator (pages=on).
 *
 * As in record.c, a free is recorded at entry and an allocation at return.
 *
 * Compaction removes pages from the free lists (ISOLATE). They count as
 * allocated, by compaction, until it frees them or gives them to a folio that
 * is migrated (MIGRATE):
 *
 *     free --ISOLATE--> compaction's --MIGRATE--> the folio's --FREE--> free
 *                            '--------FREE--------> free
 *
 * So each correct free is of pages that were allocated, and a free of free
 * pages is an error. ISOLATE, MIGRATE and alloc_contig_range() may cover blocks
 * that are allocated already, and carry KT_EVF_TAKE.
 *
 * On the vCPU's own thread.
 */
#include "kalloc-tracer/capture/record-internal.h"

/* For callbacks that walk a list or an array of pages.
 * @folios: each has an order of its own; false: single pages */
typedef struct PageWalk {
    KtHookCall *m;
    KtHookId id;
    bool folios;
    uint8_t flags;
} PageWalk;

/* ---- frees -------------------------------------------------------------- */

static void free_range(KtHookCall *m, KtHookId id, uint64_t va, uint64_t len,
                       uint8_t flags)
{
    if (!va || !len) {
        kt_record_drop(m, KT_CNT_PAGE_UNREADABLE);
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
 * Return true if this free repeats one that was just recorded. A hooked
 * function can pass the work to another hooked one: free_unref_page() to
 * __free_pages_ok(), free_frozen_pages() to __free_frozen_pages() and that to
 * __free_pages_ok().
 *
 * If it is a call, the return address is inside a freeing function. If it is a
 * jump, sp and return address are those of the first entry, the pages are the
 * same, and the row is further down the table. An interrupt between the two
 * entries hides a jump; therefore the event of an inner function carries
 * KT_EVF_AGAIN, and the model ignores it if the pages were just freed.
 */
static bool is_repeated(KtHookCall *m, const KtHookRow *hook, KtHookId id,
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

/* Return the address that a wrapper was called from; 0 if the walk of the stack
 * ended inside the wrapper. */
static uint64_t wrapper_caller(KtHookCall *m)
{
    const uint64_t *frames;
    unsigned n;
    GsStop stop;

    kt_record_complete(m);
    frames = kt_tracer_stack(m->c->tracer, m->ev.stack, &n, &stop);
    return n && !kt_hooks_wrapper(m->boot->hooks, frames[0], true).v ?
           frames[0] : 0;
}

/*
 * Answer: does an allocating function free its own pages, because the memory
 * cgroup refused the charge? The function then returns NULL, so no caller ever
 * had these pages. The caller is behind the wrapper __free_pages(), if any.
 */
static KtAnswer is_undone(KtHookCall *m)
{
    uint64_t caller = m->ra;

    m->wrapper = kt_record_free_site(m);
    if (m->wrapper.v) {
        if (!(m->boot->row[m->wrapper.v].flags & KT_HOOK_UNDO)) {
            return KT_NO;
        }
        caller = wrapper_caller(m);
    }
    if (!caller) {
        return KT_UNKNOWN;
    }
    return kt_hooks_in_role(m->boot->hooks, caller, KT_ROLE_PAGE_ALLOC) ?
           KT_YES : KT_NO;
}

/* Return what is known of the order that the caller passed. Wrappers that free
 * pieces of a block (free_contig_range(), for example) pass another one. */
static uint8_t order_flags(const KtHookCall *m, const KtHookRow *hook,
                           uint64_t page, uint64_t order)
{
    static const uint8_t flags[] = {
        [KT_ORDER_FITS] = 0,
        [KT_ORDER_DIFFERS] = KT_EVF_OTHER_ORDER,
        [KT_ORDER_SHORT] = KT_EVF_UNSPLIT,
    };
    unsigned known = hook->flags & KT_HOOK_ORDER;

    if (m->wrapper.v) {
        known &= m->boot->row[m->wrapper.v].flags;
    }
    return known ? KT_EVF_ORDER |
                   flags[kt_struct_page_fit(m->boot->pages, page, order)] : 0;
}

void kt_record_enter_page_free(KtHookCall *m, const KtHookRow *hook,
                               KtHookId id)
{
    const KtStructPages *p = m->boot->pages;
    uint64_t page = kt_vcpu_arg(m->v, hook->ptr);
    uint64_t order = kt_vcpu_arg(m->v, hook->size) & UINT32_MAX;
    uint64_t va = kt_struct_page_va(p, page);
    uint64_t len = kt_struct_page_len(p, order);
    bool fresh = hook->flags & KT_HOOK_FRESH;
    KtAnswer undone;

    if (is_repeated(m, hook, id, va, len)) {
        return;
    }
    undone = is_undone(m);
    if (undone != KT_YES) {
        free_range(m, id, va, len,
                   (fresh || undone == KT_UNKNOWN ? KT_EVF_FRESH : 0) |
                   (hook->flags & KT_HOOK_INNER ? KT_EVF_AGAIN : 0) |
                   kt_record_unsure(hook) |
                   order_flags(m, hook, page, order));
    }
}

/* Return true if __free_pages() passes the work to ___free_pages(), and was
 * recorded for it: by a call, or by a jump. */
static bool is_passed_on(KtHookCall *m, KtHookId id, uint64_t va, uint64_t len)
{
    const KtPageFree last = m->v->page_free;

    m->v->page_free = (KtPageFree) { m->sp_after, m->ra, va, len, id };
    return kt_hooks_in_role(m->boot->hooks, m->ra, KT_ROLE_PAGE_OUTER) ||
           (last.sp == m->sp_after && last.ra == m->ra && last.va == va &&
            last.id.v < id.v);
}

/* __free_pages() drops a reference and frees the pages if it was the last one.
 * If there is none, the kernel frees nothing, and says nothing. */
void kt_record_enter_page_put(KtHookCall *m, const KtHookRow *hook, KtHookId id)
{
    const KtStructPages *p = m->boot->pages;
    uint64_t page = kt_vcpu_arg(m->v, hook->ptr);
    uint64_t order = kt_vcpu_arg(m->v, hook->size) & UINT32_MAX;

    uint64_t va, len;

    if (!kt_struct_page_is_unreferenced(p, page)) {
        return;
    }
    va = kt_struct_page_va(p, page);
    len = kt_struct_page_len(p, order);
    if (!is_passed_on(m, id, va, len)) {
        free_range(m, id, va, len, KT_EVF_UNREFERENCED);
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

void kt_record_enter_page_batch(KtHookCall *m, const KtHookRow *hook,
                                KtHookId id)
{
    PageWalk w = { .m = m, .id = id, .folios = true };

    if (!kt_struct_page_walk_batch(m->boot->pages,
                                   kt_vcpu_arg(m->v, hook->array), free_page,
                                   &w)) {
        kt_record_drop(m, KT_CNT_BULK_UNREADABLE);
    }
}

void kt_record_enter_page_list(KtHookCall *m, const KtHookRow *hook,
                               KtHookId id)
{
    PageWalk w = { .m = m, .id = id };

    if (!kt_struct_page_walk_list(m->boot->pages,
                                  kt_vcpu_arg(m->v, hook->array), UINT64_MAX,
                                  free_page, &w)) {
        kt_record_drop(m, KT_CNT_BULK_UNREADABLE);
    }
}

/* ---- allocations -------------------------------------------------------- */

static void await(KtHookCall *m, const KtHookRow *hook,
                  const KtPendingCall *call)
{
    if (!(hook->flags & KT_HOOK_INNER) ||
        !kt_hooks_in_role(m->boot->hooks, m->ra, hook->role)) {
        kt_record_await(m, call);
    }
}

void kt_record_await_pages(KtHookCall *m, const KtHookRow *hook, KtHookId id)
{
    await(m, hook, &(KtPendingCall) {
        .sp = m->sp_after,
        .ra = m->ra,
        .hook = id,
        .size = kt_vcpu_arg(m->v, hook->size),
        .ptr = kt_vcpu_arg(m->v, hook->ptr),
        .gfp = kt_vcpu_arg(m->v, hook->gfp),
    });
}

void kt_record_await_page_bulk(KtHookCall *m, const KtHookRow *hook,
                               KtHookId id)
{
    await(m, hook, &(KtPendingCall) {
        .sp = m->sp_after,
        .ra = m->ra,
        .hook = id,
        .size = kt_vcpu_arg(m->v, hook->count),
        .ptr = kt_vcpu_arg(m->v, hook->array),
        .cache = kt_vcpu_arg(m->v, hook->list),
        .gfp = kt_vcpu_arg(m->v, hook->gfp),
    });
}

static void alloc_range(KtHookCall *m, const KtPendingCall *call, uint64_t va,
                        uint64_t len, uint8_t flags)
{
    if (!va || !len) {
        kt_record_drop(m, KT_CNT_PAGE_UNREADABLE);
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

/* The kernel skips entries of the array that the caller had filled before, but
 * its result counts them. KT_EVF_IF_NEW ignores pages of live blocks. */
void kt_record_return_page_bulk(KtHookCall *m, const KtPendingCall *call,
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
        kt_record_drop(m, KT_CNT_BULK_UNREADABLE);
    }
}

void kt_record_return_page_range(KtHookCall *m, const KtPendingCall *call,
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

/* The length of the 2^order pages that the call asked for. */
static uint64_t asked_len(const KtHookCall *m, const KtPendingCall *call)
{
    return kt_struct_page_len(m->boot->pages, call->size & UINT32_MAX);
}

void kt_record_return_isolated(KtHookCall *m, const KtPendingCall *call,
                               uint64_t result)
{
    if (result & UINT32_MAX) {
        alloc_range(m, call, kt_struct_page_va(m->boot->pages, call->ptr),
                    asked_len(m, call), KT_EVF_TAKE);
    }
}

void kt_record_return_folio(KtHookCall *m, const KtPendingCall *call,
                            uint64_t result)
{
    const KtStructPages *p = m->boot->pages;

    if (!result) {
        kt_vcpu_count(m->v, KT_CNT_ALLOC_FAILED, 1);
    } else {
        alloc_range(m, call, kt_struct_page_va(p, result),
                    kt_struct_page_folio_len(p, result), KT_EVF_TAKE);
    }
}

void kt_record_return_pages(KtHookCall *m, const KtPendingCall *call,
                            uint64_t result)
{
    if (!result) {
        kt_vcpu_count(m->v, KT_CNT_ALLOC_FAILED, 1);
    } else {
        alloc_range(m, call, kt_struct_page_va(m->boot->pages, result),
                    asked_len(m, call), 0);
    }
}

/* ---- memory that is removed --------------------------------------------- */
/*
 * The guest loses memory. The blocks in it end; they are removed, not freed.
 * Most are pages that their owner gave to the host:
 *
 *     free --ALLOC--> the balloon's --MANAGED--> removed --FREE--> free
 *     free --CONTIG--> virtio-mem's --MANAGED--> removed
 *     any --REMOVE (a memory block), OFFLINE (a page)--> removed
 *
 * Memory that comes back is freed, by the owner, or when it goes online again.
 */

/* @frames: how many pages from @va on */
static void remove_pages(KtHookCall *m, KtHookId id, uint64_t va,
                         uint64_t frames)
{
    uint64_t one = kt_struct_page_len(m->boot->pages, 0);

    free_range(m, id, va, frames < KT_FRAMES_MAX ? frames * one : 0,
               KT_EVF_REMOVED);
}

void kt_record_enter_page_remove(KtHookCall *m, const KtHookRow *hook,
                                 KtHookId id)
{
    uint64_t start = kt_vcpu_arg(m->v, hook->ptr);
    uint64_t end = kt_vcpu_arg(m->v, hook->size);

    if (start < end) {
        remove_pages(m, id, kt_struct_page_va_of(m->boot->pages, start),
                     end - start);
    }
}

/* When a memory block goes offline, the kernel calls this with its first page
 * and the number of all its pages. PAGE_REMOVE has removed these already. */
void kt_record_enter_page_managed(KtHookCall *m, const KtHookRow *hook,
                                  KtHookId id)
{
    uint64_t page = kt_vcpu_arg(m->v, hook->ptr);
    int64_t more = kt_vcpu_arg(m->v, hook->count);

    if (more < 0) {
        remove_pages(m, id, kt_struct_page_va(m->boot->pages, page),
                     -(uint64_t)more);
    }
}

void kt_record_return_page_offline(KtHookCall *m, const KtPendingCall *call,
                                   uint64_t result)
{
    if (!(result & UINT32_MAX)) {
        remove_pages(m, call->hook,
                     kt_struct_page_va_of(m->boot->pages, call->ptr), 1);
    }
}

/* The balloon gave the host another page in exchange. The number of managed
 * pages stays the same, so there is no call for PAGE_MANAGED. */
void kt_record_return_page_exchange(KtHookCall *m, const KtPendingCall *call,
                                    uint64_t result)
{
    if (!(result & UINT32_MAX)) {
        remove_pages(m, call->hook,
                     kt_struct_page_va(m->boot->pages, call->ptr), 1);
    }
}
