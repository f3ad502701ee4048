/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The shadow of access checks, as events of blocks change it. Each vCPU changes
 * it for its own events, before it pushes them.
 *
 *     allocation   live up to the requested size, slack behind; if it is the
 *                  first in its slab, other slots are marked (watch-verify.c)
 *     free         bad, except in caches whose readers may use freed objects
 *     pages        unknown: the page has another owner; bad if it was freed
 *     vmalloc()    slack behind the requested size
 */
#include "kalloc-tracer/capture/watch-internal.h"

#include "kalloc-tracer/tracer/tracer.h"

/* Before the flags were an enum, in 6.9. */
#define TYPESAFE_BY_RCU 0x80000u
#define DEBUG_OBJECTS 0x400000u
#define NOLEAKTRACE 0x800000u
/* Guest memory that a shadow describes. A byte of it costs address space only
 * where nothing was allocated. */
#define MEMORY_MAX ((uint64_t)1 << 40)

/* ---- what the kernel's types say ----------------------------------------- */

/* Return a flag of kmem_cache.flags by the name of its bit, @other if the
 * kernel's types have no such name. */
static uint32_t flag(const GsKernel *k, const char *name, uint32_t other)
{
    int64_t bit;

    return gs_kernel_enum_value(k, name, &bit) && bit >= 0 && bit < 32 ?
               1u << bit : other;
}

/* Before 6.9 types do not name the bits. Since then a bit that they do not name
 * is another one, or none. */
void kt_cache_flags(const GsKernel *k, uint32_t *typesafe, uint32_t *debug)
{
    uint32_t named = flag(k, "_SLAB_TYPESAFE_BY_RCU", 0);

    *typesafe = named ? named : TYPESAFE_BY_RCU;
    *debug = flag(k, "_SLAB_DEBUG_OBJECTS", named ? 0 : DEBUG_OBJECTS) |
             flag(k, "_SLAB_NOLEAKTRACE", named ? 0 : NOLEAKTRACE);
}

bool kt_access_watch_layout(KtAccessWatch *w, const GsKernel *k)
{
    static const char *const ksize[KT_KSIZES] = { "ksize", "__ksize" };
    GsSymbol sym;

    w->roundup = gs_kernel_lookup(k, "kmalloc_size_roundup", &sym);
    for (unsigned i = 0; i < G_N_ELEMENTS(ksize); i++) {
        w->ksize[i] = !w->roundup && gs_kernel_lookup(k, ksize[i], &sym) ?
                          sym.va : 0;
    }
    w->cache_flags = kt_member(k, KT_M_CACHE_FLAGS);
    w->typesafe = flag(k, "_SLAB_TYPESAFE_BY_RCU", TYPESAFE_BY_RCU);
    w->ext_in_object = flag(k, "_SLAB_OBJ_EXT_IN_OBJ", 0);
    w->page.refcount = kt_member(k, KT_M_PAGE_REFCOUNT);
    w->page.lru = kt_member(k, KT_M_PAGE_LRU);
    return gs_kernel_type_size(k, "page", &w->page.size) &&
           w->page.refcount != KT_NO_MEMBER && w->page.lru != KT_NO_MEMBER;
}

/* Read what kind of cache it is. If its flags cannot be read, it counts as
 * SLAB_TYPESAFE_BY_RCU: its freed objects are not checked. */
static uint8_t read_cache(const KtAccessWatch *w, KtTracer *t, KtGuest *g,
                          KtCacheId id)
{
    KtCacheInfo info;
    uint32_t flags;

    if (w->cache_flags == KT_NO_MEMBER || !kt_tracer_cache(t, id, &info) ||
        !kt_guest_read(g, info.va + w->cache_flags, &flags, sizeof(flags))) {
        return KT_CACHE_KNOWN | KT_CACHE_TYPESAFE;
    }
    flags = GUINT32_FROM_LE(flags);
    return KT_CACHE_KNOWN | (flags & w->typesafe ? KT_CACHE_TYPESAFE : 0) |
           (flags & w->ext_in_object ? KT_CACHE_EXT : 0);
}

static uint8_t kind_of(KtAccessWatch *w, KtTracer *t, KtGuest *g, KtCacheId id)
{
    uint8_t kind;

    if (!id.v) {
        return KT_CACHE_KNOWN;
    }
    kind = __atomic_load_n(&w->cache_kind[id.v], __ATOMIC_RELAXED);
    if (!kind) {
        kind = read_cache(w, t, g, id);
        __atomic_store_n(&w->cache_kind[id.v], kind, __ATOMIC_RELAXED);
    }
    return kind;
}

/* ---- the shadow ---------------------------------------------------------- */

static const char *why_refused(const GError *err)
{
    return g_error_matches(err, GS_ERROR, GS_ERROR_IO) ?
               "the host has no address space for the shadow of the guest's "
               "memory" :
               "no kernel has a direct map where the guest's seems to be";
}

/* Two vCPUs may find the direct map at once; one shadow is published. If none
 * can be made, it is not tried again until checks begin anew. */
void kt_access_watch_make_shadow(KtAccessWatch *w, KtGuest *g)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(KtShadow) s = NULL;
    KtShadow *none = NULL;
    uint64_t vmemmap, page_offset;

    if (__atomic_load_n(&w->refused, __ATOMIC_RELAXED) ||
        !kt_guest_has_direct_map(g) ||
        !kt_guest_direct_map(g, &vmemmap, &page_offset)) {
        return;
    }
    s = kt_shadow_new(page_offset, MIN(MEMORY_MAX, -page_offset), w->budget,
                      &err);
    if (!s) {
        __atomic_store_n(&w->refused, true, __ATOMIC_RELAXED);
        kt_access_watch_refuse(why_refused(err));
        return;
    }
    if (__atomic_compare_exchange_n(&w->shadow, &none, s, false,
                                    __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
        __atomic_store_n(&w->look.map, s, __ATOMIC_RELEASE);
        s = NULL;
    }
}

/**
 * struct Block - a block, as an event or the map describes it
 */
typedef struct Block {
    uint64_t va, size, actual;
    KtLayer layer;
    KtCacheId cache;
    KtStackId stack;
} Block;

static bool is_checked_layer(KtLayer layer)
{
    return layer == KT_LAYER_KMALLOC || layer == KT_LAYER_LARGE ||
           layer == KT_LAYER_CACHE;
}

/* Return the bytes of the block that its owner may use. Before 6.1 ksize() may
 * have granted the slack of a block that is not @new. */
static uint64_t usable(const KtAccessWatch *w, const Block *b, uint8_t kind,
                       bool new)
{
    bool all = kind & KT_CACHE_EXT ||
               (!w->roundup && !new && b->layer != KT_LAYER_CACHE);

    return all && b->actual ? b->actual : b->size;
}

static bool is_armed(const KtAccessWatch *w, const Block *b)
{
    return (b->layer != KT_LAYER_CACHE || b->cache.v) &&
           kt_access_filter_block(w->filter, b->layer, b->cache, b->stack);
}

/* Return true if accesses to the block are checked. */
static bool mark_live(KtAccessWatch *w, KtTracer *t, KtGuest *g, const Block *b,
                      bool armed, bool new)
{
    uint8_t kind = kind_of(w, t, g, b->cache);

    if (!kt_shadow_alloc(w->shadow, b->va, usable(w, b, kind, new), b->actual,
                         armed)) {
        kt_tracer_count(t, KT_CNT_ACCESS_NO_MEMORY, 1);
        return false;
    }
    return armed;
}

/* The first area that has slack has made the shadow. */
static void look_at_areas(KtAccessWatch *w)
{
    const KtShadow *vm = kt_vm_areas_shadow(w->vm_areas);

    if (vm) {
        __atomic_store_n(&w->look.vm, vm, __ATOMIC_RELEASE);
    }
}

/* Mark what is behind the requested size of an area of vmalloc(). @resized: the
 * area has the same pages as before */
static void mark_area(KtAccessWatch *w, KtTracer *t, KtGuest *g, const Block *b,
                      bool resized)
{
    uint64_t page = 1ull << kt_guest_page_shift(g);
    KtAreaResult result;

    if (!kt_access_filter_block(w->filter, b->layer, b->cache, b->stack)) {
        return;
    }
    result = kt_vm_areas_set(w->vm_areas, b->va, b->size, page, resized);
    if (result != KT_AREA_OK) {
        kt_tracer_count(t, result == KT_AREA_OUTSIDE ?
                               KT_CNT_ACCESS_OUTSIDE :
                               KT_CNT_ACCESS_NO_MEMORY, 1);
    }
    look_at_areas(w);
}

/* ---- events -------------------------------------------------------------- */

/* The slot of the block was unknown. If readers may use freed objects of the
 * cache, it became unknown when it was freed. */
static void on_new_slot(KtAccessWatch *w, KtHookCall *m, const Block *b)
{
    if (b->layer != KT_LAYER_LARGE && b->cache.v &&
        kt_access_filter_slots(w->filter) &&
        !(kind_of(w, m->c->tracer, m->boot->guest, b->cache) &
          KT_CACHE_TYPESAFE)) {
        kt_access_watch_slots(w, m, b->va, b->cache);
    }
}

/* Pages can leave a slab without an event. The first block of another cache on
 * the page shows that. Blocks above KT_SHADOW_BLOCK_MAX have no marks. */
static void set_owner(KtAccessWatch *w, const Block *b)
{
    uint32_t owner = b->layer == KT_LAYER_LARGE ? UINT32_MAX : b->cache.v;
    uint64_t len = MAX(b->size, b->actual);

    if (owner && len <= KT_SHADOW_BLOCK_MAX) {
        kt_shadow_set_owner(w->shadow, b->va, len, owner);
    }
}

/* A block that is not armed, where nothing is known, changes nothing. The
 * owner of a page matters only if something is known there. */
static void on_alloc_object(KtAccessWatch *w, KtHookCall *m, const Block *b)
{
    bool armed = is_armed(w, b), new;

    if (!armed &&
        !kt_shadow_any_marked(w->shadow, b->va, MAX(b->size, b->actual))) {
        return;
    }
    set_owner(w, b);
    new = kt_shadow_state(w->shadow, b->va) == KT_SHADOW_UNKNOWN;
    if (mark_live(w, m->c->tracer, m->boot->guest, b, armed, true) && new) {
        on_new_slot(w, m, b);
    }
}

static void on_alloc(KtAccessWatch *w, KtHookCall *m)
{
    const KtEvent *ev = &m->ev;
    const Block b = {
        .va = ev->va, .size = ev->size, .actual = ev->actual,
        .layer = ev->layer, .cache = ev->cache, .stack = ev->stack,
    };

    if (is_checked_layer(b.layer)) {
        on_alloc_object(w, m, &b);
    } else if (b.layer == KT_LAYER_PAGES) {
        kt_shadow_forget(w->shadow, b.va, b.size);
    } else if (b.layer == KT_LAYER_VMALLOC) {
        mark_area(w, m->c->tracer, m->boot->guest, &b, false);
    }
}

/* Pages are freed (pages=on). Nothing is known of those that the kernel has
 * from the firmware, of those that it may keep, and of removed memory. */
static void on_free_pages(KtAccessWatch *w, KtHookCall *m)
{
    const KtEvent *ev = &m->ev;

    if (ev->flags & (KT_EVF_FRESH | KT_EVF_UNREFERENCED | KT_EVF_UNSURE |
                     KT_EVF_REMOVED) ||
        !kt_access_filter_block(w->filter, KT_LAYER_PAGES, (KtCacheId) { 0 },
                                (KtStackId) { 0 })) {
        kt_shadow_forget(w->shadow, ev->va, ev->size);
    } else if (!kt_shadow_release(w->shadow, ev->va, ev->size)) {
        kt_tracer_count(m->c->tracer, KT_CNT_ACCESS_NO_MEMORY, 1);
    }
}

/* Return the cache that the object at @va is in now, 0 if unknown. */
static KtCacheId cache_now(KtHookCall *m, uint64_t va)
{
    KtCacheId id = { 0 };

    kt_guest_slab(m->boot->guest, &m->v->seen, va, &id);
    return id;
}

/* Return true if the kernel keeps an object that is freed to a cache from which
 * it was not allocated. */
static bool is_kept(const KtEvent *ev, KtCacheId now)
{
    return ev->flags & KT_EVF_STRICT && ev->cache.v && now.v &&
           ev->cache.v != now.v;
}

static void on_free(KtAccessWatch *w, KtHookCall *m)
{
    const KtEvent *ev = &m->ev;
    KtCacheId id = ev->cache;
    KtCacheInfo info;

    if (ev->family == KT_FAMILY_PAGES) {
        on_free_pages(w, m);
        return;
    }
    if (!kt_shadow_covers(w->shadow, ev->va)) {
        kt_vm_areas_freed(w->vm_areas, ev->va);
        return;
    }
    if (!kt_shadow_is_marked(w->shadow, ev->va) ||
        kt_shadow_state(w->shadow, ev->va) == KT_SHADOW_UNKNOWN ||
        ev->flags & KT_EVF_INSIDE) {
        return;
    }
    if (!id.v || ev->flags & KT_EVF_STRICT) {
        id = cache_now(m, ev->va);
    }
    if (is_kept(ev, id)) {
        return;
    }
    if (kind_of(w, m->c->tracer, m->boot->guest, id) & KT_CACHE_TYPESAFE ||
        ev->flags & KT_EVF_UNSURE) {
        kt_shadow_forget(w->shadow, ev->va,
                         kt_tracer_cache(m->c->tracer, id, &info) ? info.size :
                                                                    1);
    } else {
        kt_shadow_freed(w->shadow, ev->va);
    }
}

static void resize_area(KtAccessWatch *w, KtHookCall *m)
{
    const Block b = {
        .va = m->ev.va, .size = m->ev.size, .layer = KT_LAYER_VMALLOC,
        .stack = m->ev.stack,
    };

    mark_area(w, m->c->tracer, m->boot->guest, &b, true);
}

/* The event of krealloc() does not have what the allocator reserved. */
static void on_resize(KtAccessWatch *w, KtHookCall *m)
{
    const KtEvent *ev = &m->ev;
    KtCacheId id = cache_now(m, ev->va);
    uint64_t page = 1ull << kt_guest_page_shift(m->boot->guest);
    uint64_t actual = (ev->size + page - 1) & -page;
    KtCacheInfo info;

    if (!kt_shadow_covers(w->shadow, ev->va)) {
        resize_area(w, m);
        return;
    }
    if (id.v && kt_tracer_cache(m->c->tracer, id, &info)) {
        actual = info.size;
    }
    kt_shadow_resize(w->shadow, ev->va, MIN(ev->size, actual), actual);
}

static void change_shadow(KtHookCall *m)
{
    KtAccessWatch *w = m->c->access;

    if (G_UNLIKELY(__atomic_load_n(&w->stale, __ATOMIC_RELAXED) == KT_STALE)) {
        kt_access_watch_recover(w);
    }
    if (G_UNLIKELY(!__atomic_load_n(&w->shadow, __ATOMIC_ACQUIRE))) {
        kt_access_watch_make_shadow(w, m->boot->guest);
        if (!w->shadow) {
            return;
        }
    }
    switch (m->ev.kind) {
    case KT_EV_ALLOC:
        on_alloc(w, m);
        break;
    case KT_EV_FREE:
        on_free(w, m);
        break;
    case KT_EV_RESIZE:
        on_resize(w, m);
        break;
    default:
        break;
    }
}

/* The model judges an access by the events before it. So whatever the shadow
 * says, an event before said it: a free is pushed first; an allocation changes
 * the shadow first, because a vCPU that has seen the old shadow made its access
 * before. A resize can be either. */
void kt_access_watch_push(KtHookCall *m)
{
    bool first = m->ev.kind == KT_EV_FREE || m->ev.kind == KT_EV_RESIZE;

    if (G_UNLIKELY(m->c->access->verify &&
                   kt_verify_waits(m->c->access->verify))) {
        kt_access_watch_release(m->c->access, m);
    }
    if (!first) {
        change_shadow(m);
    }
    kt_tracer_push(m->c->tracer, m->v->index, &m->ev);
    if (first) {
        change_shadow(m);
    }
    m->v->recorded_us = m->ev.us ? m->ev.us : m->v->recorded_us;
}

/* ---- blocks of the map --------------------------------------------------- */

/* @gap: events were not recorded, so a freed block may have an owner */
typedef struct Fill {
    KtAccessWatch *w;
    KtTracer *t;
    KtGuest *g;
    bool gap;
} Fill;

static bool fill_block(const KtBlock *b, void *opaque)
{
    const Fill *f = opaque;
    const Block block = {
        .va = b->va, .size = b->requested, .actual = b->actual,
        .layer = b->layer, .cache = b->cache, .stack = b->alloc_stack,
    };

    bool freed = b->state == KT_BLOCK_FREED;

    if (b->layer == KT_LAYER_VMALLOC && !freed) {
        mark_area(f->w, f->t, f->g, &block, false);
        return true;
    }
    if (!is_checked_layer(b->layer) ||
        (freed && (f->gap || kind_of(f->w, f->t, f->g, b->cache) &
                             KT_CACHE_TYPESAFE))) {
        return true;
    }
    mark_live(f->w, f->t, f->g, &block, is_armed(f->w, &block), false);
    if (freed) {
        kt_shadow_freed(f->w->shadow, b->va);
    }
    return true;
}

void kt_access_watch_fill(KtAccessWatch *w, KtTracer *t, KtGuest *g)
{
    Fill f = { w, t, g, kt_tracer_has_gap(t) };

    kt_query_begin(t);
    kt_query_range(t, 0, UINT64_MAX, fill_block, &f);
    kt_query_end(t);
}
