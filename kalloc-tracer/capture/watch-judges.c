/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Judges of an access to a bad byte, the cheapest first. If one of them
 * explains the access, it is counted; else it is an event, which the model
 * compares with the map as it was at that moment.
 *
 *   code     this function may load so many bytes too many, or from anywhere
 *   caller   the allocator called it: memset() of new memory, a constructor
 *   page     the page has another owner, and the shadow did not see it
 *   lists    (--verify) the allocator has handed out the block, unseen
 *
 * On the vCPU's own thread.
 */
#include "kalloc-tracer/capture/capture-internal.h"
#include "kalloc-tracer/capture/watch-internal.h"

#include <string.h>

#include "kalloc-tracer/tracer/tracer.h"

/* Frames that may be the allocator's: the first that is no leaf, and three
 * above. A shrinker, which the allocator calls too, is further away. */
#define CALLERS 4

/* A call that is not further up the stack, and has not returned. */
#define STACK_NEAR 4096u

/* Larger than any MAX_PAGE_ORDER. */
#define MAX_ORDER 20u

/* Suspects of one vCPU: so many at once, and then so many a millisecond. */
#define BURST   16384u
#define PER_MS  64u

static void explain(const KtAccessWatch *w, KtHookCall *m, KtAccessReason why,
                    uint64_t pc)
{
    static const KtCounter counter[KT_ACCESS__COUNT] = {
        [KT_ACCESS_OVERREAD] = KT_CNT_ACCESS_OVERREAD,
        [KT_ACCESS_LOADS_OK] = KT_CNT_ACCESS_LOADS_OK,
        [KT_ACCESS_BY_ALLOCATOR] = KT_CNT_ACCESS_BY_ALLOCATOR,
        [KT_ACCESS_PAGE_GONE] = KT_CNT_ACCESS_PAGE_GONE,
        [KT_ACCESS_UNSEEN_ALLOC] = KT_CNT_ACCESS_UNSEEN_ALLOC,
    };

    kt_vcpu_count(m->v, counter[why], 1);
    kt_arming_explain(w->arming, why, pc,
                      gs_kernel_era(m->c->kernel, &pc, 1).all);
}

/* ---- code ---------------------------------------------------------------- */

/* Return true if the bad bytes are at one end of what was loaded, and not more
 * than the function may load there. */
static bool is_overread(const KtCodeRow *row, const KtSuspect *s)
{
    uint64_t end = s->va + s->len, good = s->va;

    if (s->bad > s->va) {
        return end - s->bad <= row->max_past;
    }
    while (good < end &&
           kt_shadow_state(s->shadow, good) > KT_SHADOW_LIVE) {
        good++;
    }
    return good < end && good - s->va <= row->max_before;
}

/* The loads of a BPF program may fault: the kernel then goes on with 0. */
static bool is_bpf(const GsKernel *k, uint64_t pc)
{
    GsModule module;

    return !gs_kernel_in_image(k, pc) && gs_kernel_module_at(k, pc, &module) &&
           !strcmp(module.name, "bpf");
}

/* Return KT_ACCESS__COUNT if the code does not explain the access. */
static KtAccessReason judge_code(const KtAccessWatch *w, const GsKernel *k,
                                 const KtSuspect *s)
{
    const KtCodeRow *row = kt_code_classes_at(w->classes, s->pc);

    if (s->write || s->range) {
        return KT_ACCESS__COUNT;
    }
    if (!row) {
        return is_bpf(k, s->pc) ? KT_ACCESS_LOADS_OK : KT_ACCESS__COUNT;
    }
    if (row->class == KT_CODE_LOADS_OK) {
        return KT_ACCESS_LOADS_OK;
    }
    return row->class == KT_CODE_OVERREAD && is_overread(row, s) ?
               KT_ACCESS_OVERREAD : KT_ACCESS__COUNT;
}

/* ---- caller -------------------------------------------------------------- */

/* Find the call of an allocating function that the vCPU is inside of, with a
 * kmem_cache. If it was entered on another vCPU, it is not found. */
static bool find_allocating(KtHookCall *m, KtPendingCall *out)
{
    const KtAllocating *a = &m->v->allocating;

    return a->sp - kt_vcpu_reg(m->v, GS_REG_SP) < STACK_NEAR &&
           kt_pending_calls_find(m->c->calls, a->sp, a->ra, out) &&
           kt_role_does(m->boot->row[out->hook.v].role, KT_DOES_ALLOCATE) &&
           out->cache;
}

/* Return true if the allocator, which called the code that accesses, hands out
 * an object of another cache than the one that the bad byte is in: then a
 * constructor has nothing to do there. */
static bool is_of_other_cache(KtHookCall *m, const KtSuspect *s)
{
    KtGuest *g = m->boot->guest;
    const KtGuestCache *c;
    KtCacheId now = { 0 }, id;
    KtPendingCall call;

    if (!find_allocating(m, &call)) {
        return false;
    }
    c = kt_guest_cache(g, &m->v->seen, call.cache);
    id = c ? c->id : now;
    return id.v && kt_guest_slab(g, &m->v->seen, s->bad, &now) && now.v &&
           now.v != id.v;
}

/* Return true if one of the callers that count is code of the allocator. */
static bool is_by_allocator(const KtAccessWatch *w, KtHookCall *m,
                            const KtSuspect *s, const KtWatchStack *st)
{
    unsigned first = kt_watch_first(w->classes, st);

    for (unsigned i = first; i < st->n && i < first + CALLERS; i++) {
        if (kt_watch_frame_class(w->classes, st, i) == KT_CODE_ALLOCATOR) {
            return i == first || !is_of_other_cache(m, s);
        }
    }
    return false;
}

/* ---- page ---------------------------------------------------------------- */

/* What a struct page says of its page. */
typedef enum PageUse {
    PAGE_SAYS_NOTHING,
    PAGE_FREE,              /* it is on a list, and has no reference */
    PAGE_OWNED,             /* somebody has a reference */
} PageUse;

/* @page: address of the struct page */
static PageUse page_use(const KtAccessWatch *w, const KtGuest *g, uint64_t page)
{
    uint64_t lru = page + w->page.lru, next, back;
    uint32_t refs;

    if (!kt_guest_read(g, page + w->page.refcount, &refs, sizeof(refs))) {
        return PAGE_SAYS_NOTHING;
    }
    if ((int32_t)GUINT32_FROM_LE(refs) > 0) {
        return PAGE_OWNED;
    }
    return kt_guest_u64(g, lru, &next) && kt_guest_u64(g, next + 8, &back) &&
           back == lru ? PAGE_FREE : PAGE_SAYS_NOTHING;
}

/*
 * Return true if the page that contains @va is certainly free. Only the first
 * page of a block says something; blocks are aligned to their size, so the
 * first page that says something, from small blocks to large ones, is that of
 * the page's own block:
 *
 *     page 5 of an allocated block 4..5     4: owned
 *     page 5 of a free block 4..7           4: free
 *     page 7 of that block                  6: nothing, 4: free
 */
static bool is_free(const KtAccessWatch *w, KtGuest *g, uint64_t va)
{
    uint64_t vmemmap, page_offset, pfn;

    if (!kt_guest_direct_map(g, &vmemmap, &page_offset)) {
        return false;
    }
    pfn = (va - page_offset) >> kt_guest_page_shift(g);
    for (unsigned order = 0; order <= MAX_ORDER; order++) {
        uint64_t first = pfn >> order << order;
        PageUse use = page_use(w, g, vmemmap + first * w->page.size);

        if (use != PAGE_SAYS_NOTHING) {
            return use == PAGE_FREE;
        }
    }
    return false;
}

/* Return true if the page may have another owner, which the shadow did not see:
 * it is no slab any more, and not certainly free. Memory behind the requested
 * bytes of a large block is no slab, either, and belongs to that block. An area
 * of vmalloc() has its own addresses.
 * @now: (out) the cache of the page's slab */
static bool is_page_gone(KtAccessWatch *w, KtHookCall *m, const KtSuspect *s,
                         KtCacheId *now)
{
    KtGuest *g = m->boot->guest;
    uint64_t page = 1ull << kt_guest_page_shift(g);

    if (s->shadow != w->shadow) {
        return false;
    }
    if (!kt_guest_slab(g, &m->v->seen, s->bad, now)) {
        return true;
    }
    if (now->v || s->state == KT_SHADOW_SLACK || is_free(w, g, s->bad)) {
        return false;
    }
    kt_shadow_forget(w->shadow, s->bad & -page, page);
    return true;
}

/* ---- the event ----------------------------------------------------------- */

/* Return false if this vCPU has too many suspects: the guest can make them at
 * will, and each costs a walk of the stack. */
static bool has_time(KtVcpu *v)
{
    uint64_t ms = kt_clock_ns(CLOCK_MONOTONIC) / 1000000;
    uint64_t more = (ms - v->suspects_ms) * PER_MS;

    v->suspects = more < v->suspects ? v->suspects - (unsigned)more : 0;
    v->suspects_ms = ms;
    if (v->suspects >= BURST) {
        return false;
    }
    v->suspects++;
    return true;
}

/* Return the microseconds, up to @us, in which the access was made: after the
 * last event of this vCPU. A loaded snapshot can set the time back. */
static uint32_t uncertain_us(const KtVcpu *v, uint64_t us)
{
    return us < v->recorded_us ? UINT32_MAX :
                                 MIN(us - v->recorded_us, UINT32_MAX);
}

static void push(KtAccessWatch *w, KtHookCall *m, const KtSuspect *s,
                 const KtWatchStack *st, KtCacheId now)
{
    m->ev.stack = kt_watch_intern(m, st);
    m->ev.us = qemu_plugin_get_virtual_ns(m->insns_left) / 1000;
    m->ev.gfp = uncertain_us(m->v, m->ev.us);
    m->ev.cpu = m->v->index;
    m->ev.size = s->len;
    m->ev.actual = s->bad - s->va;
    m->ev.cache = now;
    m->ev.flags = (s->write ? KT_EVF_WRITE : 0) |
                  (s->range ? KT_EVF_RANGE : 0) |
                  (s->state == KT_SHADOW_FRESH ? KT_EVF_FREE_SLOT : 0);
    m->ev.kind = KT_EV_ACCESS;
    m->ev.va = s->va;
    if (!w->verify || !now.v || s->state == KT_SHADOW_SLACK ||
        kt_access_watch_verify(w, m, s, now)) {
        kt_record_push(m, KT_EV_ACCESS, (KtHookId) { 0 }, s->va);
    }
    /* The next store of this vCPU comes later, also if this access waits. */
    m->v->recorded_us = m->ev.us;
}

/* Return the error that an access to such a byte is. */
static KtErrorKind kind_of(KtShadowState state)
{
    return state == KT_SHADOW_SLACK ? KT_ERR_OUT_OF_BOUNDS :
           state == KT_SHADOW_FRESH ? KT_ERR_FREE_SLOT : KT_ERR_USE_AFTER_FREE;
}

void kt_access_watch_suspect(KtAccessWatch *w, KtHookCall *m, KtSuspect *s)
{
    KtAccessReason why;
    KtCacheId now = { 0 };
    uint64_t task;
    KtWatchStack st;

    if (!kt_access_filter_kind(w->filter, kind_of(s->state))) {
        return;
    }
    why = judge_code(w, m->c->kernel, s);
    if (why != KT_ACCESS__COUNT) {
        explain(w, m, why, s->pc);
        return;
    }
    if (s->range &&
        kt_watch_class(w->classes, m->ra - 1) == KT_CODE_ALLOCATOR) {
        explain(w, m, KT_ACCESS_BY_ALLOCATOR, s->pc);
        return;
    }
    if (!has_time(m->v)) {
        kt_vcpu_count(m->v, KT_CNT_ACCESS_DROPPED, 1);
        return;
    }
    task = kt_watch_task(m);
    if (!kt_access_filter_access(w->filter, m->ev.task, s->write)) {
        return;
    }
    kt_watch_walk(m, s->pc, s->range, task, &st);
    if (is_by_allocator(w, m, s, &st)) {
        explain(w, m, KT_ACCESS_BY_ALLOCATOR, s->pc);
    } else if (is_page_gone(w, m, s, &now)) {
        explain(w, m, KT_ACCESS_PAGE_GONE, s->pc);
    } else {
        if (!s->range) {
            kt_watch_walk_code(m, s->pc, task, &st);
        }
        push(w, m, s, &st, now);
    }
}
