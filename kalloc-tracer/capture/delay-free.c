/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Delay frees: see capture-internal.h. The entry of a free:
 *
 *     event of the free of p
 *       | called by the allocator; no slab; a cache that must not wait
 *       |                                        -> kfree(p) as it is
 *       v
 *     the quarantine takes p, and says what the call frees in its place
 *       |
 *       v
 *     argument registers: kfree(0), kfree(q), or kmem_cache_free(s, q)
 *
 * Which caches may wait. When a cache is destroyed, all of its objects must be
 * free, and nobody could free those that wait. A cache that a module creates is
 * destroyed with it. So only objects of caches wait that had a use before the
 * kernel started its first program, and those of kmalloc().
 */
#include "kalloc-tracer/capture/capture-internal.h"

#include <string.h>

#include "kalloc-tracer/access/code-classes.h"
#include "kalloc-tracer/access/quarantine.h"
#include "kalloc-tracer/capture/watch-internal.h"
#include "kalloc-tracer/tracer/tracer.h"

/* What is known of a cache. */
enum {
    OF_BOOT = 1,        /* it was used before the first program ran */
    KNOWN = 2,          /* the next bit is valid */
    MAY_WAIT = 4,
};

/**
 * struct KtFreeDelay - what frees of the running boot need
 * @state: address of system_state; @running: its value when the first program
 *         runs
 * @cache_flags: offset in kmem_cache; @typesafe: a flag
 * @debug: flags of caches whose objects are freed while another one is freed,
 *         by kmemleak and debugobjects
 * @begun: (atomic) the first program runs
 * @kind: (atomic) by cache id: the bits above
 */
struct KtFreeDelay {
    KtQuarantine *q;
    KtCodeClasses *classes;
    uint64_t state;
    int64_t running;
    uint32_t cache_flags, typesafe, debug;
    bool begun;
    uint8_t kind[UINT16_MAX + 1];
};

/* A VM has one boot at a time. */
static KtFreeDelay delay;

/* ---- which caches -------------------------------------------------------- */

/* Return true if the cache has one of @flags, or nobody knows. */
static bool has_flags(const KtFreeDelay *d, KtGuest *g, uint64_t cache_va,
                      uint32_t flags)
{
    uint32_t is;

    return !kt_guest_read(g, cache_va + d->cache_flags, &is, sizeof(is)) ||
           GUINT32_FROM_LE(is) & flags;
}

static uint8_t read_kind(const KtFreeDelay *d, KtHookCall *m, KtCacheId id,
                         uint8_t kind)
{
    KtCacheInfo info;
    bool stays = kt_tracer_cache(m->c->tracer, id, &info) &&
                 (kind & OF_BOOT || g_str_has_prefix(info.name, "kmalloc-"));

    return kind | KNOWN |
           (stays && !has_flags(d, m->boot->guest, info.va,
                                d->typesafe | d->debug) ? MAY_WAIT : 0);
}

static bool may_wait(KtFreeDelay *d, KtHookCall *m, KtCacheId id)
{
    uint8_t kind = __atomic_load_n(&d->kind[id.v], __ATOMIC_RELAXED);

    if (G_UNLIKELY(!(kind & KNOWN))) {
        kind = read_kind(d, m, id, kind);
        __atomic_store_n(&d->kind[id.v], kind, __ATOMIC_RELAXED);
    }
    return kind & MAY_WAIT;
}

/* Return true if the first program runs. Before, note which caches are used. */
static bool has_begun(KtFreeDelay *d, const KtHookCall *m)
{
    uint32_t state, n;

    if (G_LIKELY(__atomic_load_n(&d->begun, __ATOMIC_ACQUIRE))) {
        return true;
    }
    if (!kt_guest_read(m->boot->guest, d->state, &state, sizeof(state)) ||
        GUINT32_FROM_LE(state) < d->running) {
        return false;
    }
    n = kt_tracer_n_caches(m->c->tracer);
    for (uint32_t id = 1; id <= MIN(n, UINT16_MAX); id++) {
        __atomic_store_n(&d->kind[id], OF_BOOT, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&d->begun, true, __ATOMIC_RELEASE);
    return true;
}

/* ---- the call ------------------------------------------------------------ */

/** struct Call - the call whose arguments are exchanged */
typedef struct Call {
    KtHookCall *m;
    const KtHookRow *hook;
} Call;

/* Exchange the arguments of the call. If only the pointer could be changed, the
 * call frees the other block in the name of a wrong cache, which the kernel may
 * complain of; each block is freed once nevertheless. */
static KtInstead exchange(const Call *call, const KtDelayedFree *block)
{
    const KtHookRow *hook = call->hook;
    KtRegValue to[KT_VCPU_WRITES] = {
        { kt_vcpu_arg_reg(hook->ptr), block ? block->ptr : 0 },
    };
    unsigned n = 1;
    KtWritten done;

    if (hook->cache != KT_NO_ARG) {
        to[n++] = (KtRegValue) { kt_vcpu_arg_reg(hook->cache),
                                 block ? block->cache : 0 };
    }
    done = kt_vcpu_write_regs(call->m->v, to, n);
    kt_vcpu_count(call->m->v, KT_CNT_QUARANTINE_REFUSED,
                  done != KT_WRITTEN_ALL);
    return done == KT_WRITTEN_NONE ? KT_INSTEAD_REFUSED : KT_INSTEAD_DONE;
}

static KtInstead free_instead(void *opaque, const KtDelayedFree *block)
{
    const Call *call = opaque;
    KtHookCall *m = call->m;

    if (block && kt_guest_cache_of(m->boot->guest, block->ptr) !=
                     block->cache) {
        kt_vcpu_count(m->v, KT_CNT_QUARANTINE_DROPPED, 1);
        return KT_INSTEAD_STALE;
    }
    return exchange(call, block);
}

static bool is_by_allocator(const KtFreeDelay *d, const KtHookCall *m)
{
    const KtCodeRow *row = kt_code_classes_at(d->classes, m->ra - 1);

    return row && row->class == KT_CODE_ALLOCATOR;
}

/* Return the cache of a block whose free may be delayed, NULL for others. */
static const KtGuestCache *cache_of(KtFreeDelay *d, KtHookCall *m,
                                    const KtHookRow *hook, uint64_t va)
{
    KtGuest *g = m->boot->guest;
    KtCacheId id;
    uint64_t cache_va;

    if (is_by_allocator(d, m) || !kt_guest_slab(g, &m->v->seen, va, &id) ||
        !id.v || !may_wait(d, m, id)) {
        return NULL;
    }
    cache_va = kt_guest_cache_of(g, va);
    /* The kernel rejects, or warns of, an object of another cache. */
    return hook->cache == KT_NO_ARG ||
                   kt_vcpu_pointer(m->v, hook->cache) == cache_va ?
               kt_guest_cache(g, &m->v->seen, cache_va) : NULL;
}

/* exchange() has counted those that are refused. */
static void count(KtVcpu *v, KtDelay done)
{
    static const KtCounter counter[] = {
        [KT_DELAY_REFUSED] = KT_CNT_QUARANTINE_REFUSED,
        [KT_DELAY_NO_ROOM] = KT_CNT_QUARANTINE_FULL,
        [KT_DELAY_ALONE] = KT_CNT_QUARANTINE_DELAYED,
        [KT_DELAY_SWAPPED] = KT_CNT_QUARANTINE_DELAYED,
        [KT_DELAY_TWICE] = KT_CNT_QUARANTINE_TWICE,
        [KT_DELAY_TWICE_SWAPPED] = KT_CNT_QUARANTINE_TWICE,
    };

    kt_vcpu_count(v, counter[done], done != KT_DELAY_REFUSED);
    kt_vcpu_count(v, KT_CNT_QUARANTINE_FREED,
                  done == KT_DELAY_SWAPPED || done == KT_DELAY_TWICE_SWAPPED);
}

/* Drop the block if it waits: the call frees it. */
static void drop_block(KtFreeDelay *d, KtHookCall *m, uint64_t va)
{
    kt_vcpu_count(m->v, KT_CNT_QUARANTINE_DROPPED,
                  kt_quarantine_drop(d->q, va));
}

static void delay_block(KtFreeDelay *d, KtHookCall *m, const KtHookRow *hook,
                        const KtGuestCache *cache)
{
    const KtDelayedFree block = {
        .ptr = kt_vcpu_arg(m->v, hook->ptr), .cache = cache->va,
        .size = cache->size,
    };
    Call call = { m, hook };
    KtDelay done = kt_quarantine_delay(d->q, &block, hook->cache == KT_NO_ARG,
                                       free_instead, &call);

    count(m->v, done);
    if (done == KT_DELAY_NO_ROOM || done == KT_DELAY_REFUSED) {
        drop_block(d, m, block.ptr);
    }
}

static void drain(KtFreeDelay *d, KtHookCall *m, const KtHookRow *hook)
{
    Call call = { m, hook };

    kt_vcpu_count(m->v, KT_CNT_QUARANTINE_FREED,
                  !is_by_allocator(d, m) &&
                  kt_quarantine_drain(d->q, free_instead, &call));
}

void kt_delay_free(KtHookCall *m, const KtHookRow *hook, uint64_t va)
{
    KtFreeDelay *d = m->c->delay;
    const KtGuestCache *cache;

    if (!has_begun(d, m)) {
        return;
    }
    if (!va && hook->cache == KT_NO_ARG) {
        drain(d, m, hook);
        return;
    }
    cache = cache_of(d, m, hook, va);
    if (cache) {
        delay_block(d, m, hook, cache);
    } else {
        kt_vcpu_count(m->v, KT_CNT_QUARANTINE_SKIPPED, 1);
        drop_block(d, m, va);
    }
}

void kt_delay_free_done(KtHookCall *m, uint64_t va)
{
    drop_block(m->c->delay, m, va);
}

void kt_delay_free_drop(KtHookCall *m, uint64_t cache_va)
{
    kt_vcpu_count(m->v, KT_CNT_QUARANTINE_DROPPED,
                  kt_quarantine_drop_cache(m->c->delay->q, cache_va));
}

/* ---- boots --------------------------------------------------------------- */

/* Return why frees of this kernel cannot be delayed, NULL if they can. */
static const char *find_layout(KtFreeDelay *d, const KtCapture *c)
{
    const GsKernel *k = c->shared.kernel;
    GsSymbol sym;

    if (c->shared.profile) {
        return "the guest's kernel is not Linux";
    }
    if (gs_kernel_tags_pointers(k)) {
        return "the kernel keeps tags in its pointers, and has a quarantine "
               "of its own";
    }
    if (!gs_kernel_has_all_symbols(k)) {
        return "the kernel has no symbol table, so that code of its allocator "
               "cannot be told from other code";
    }
    d->cache_flags = kt_member(k, KT_M_CACHE_FLAGS);
    if (!gs_kernel_enum_value(k, "SYSTEM_RUNNING", &d->running) ||
        d->cache_flags == KT_NO_MEMBER) {
        return "the kernel has no types; types=FILE gives them";
    }
    if (!gs_kernel_lookup(k, "system_state", &sym)) {
        return "the kernel's symbols have no data (CONFIG_KALLSYMS_ALL), so "
               "that nobody knows when its first program runs; kernel=FILE "
               "has them";
    }
    d->state = sym.va;
    kt_cache_flags(k, &d->typesafe, &d->debug);
    return NULL;
}

void kt_delay_free_begin_boot(KtCapture *c)
{
    KtQuarantine *q = kt_quarantine_of(c->shared.tracer);
    const char *why_not;

    if (!kt_quarantine_is_wanted(q)) {
        return;
    }
    why_not = find_layout(&delay, c);
    kt_quarantine_begun(q, why_not);
    if (why_not) {
        return;
    }
    delay.q = q;
    delay.classes = kt_access_code(c->shared.tracer, c->shared.kernel);
    c->shared.delay = &delay;
}

void kt_delay_free_end_boot(KtCapture *c)
{
    c->shared.delay = NULL;
    g_clear_pointer(&delay.classes, kt_code_classes_free);
    memset(&delay, 0, sizeof(delay));
}

/* ---- snapshots ----------------------------------------------------------- */

static bool is_of_boot(const KtFreeDelay *d, uint32_t id)
{
    return __atomic_load_n(&d->kind[id], __ATOMIC_RELAXED) & OF_BOOT;
}

/* If the first program does not run yet, all caches so far are of the boot. */
void kt_delay_free_pack(const KtCapture *c, GsOut *p)
{
    const KtFreeDelay *d = c->shared.delay;
    uint32_t n = MIN(kt_tracer_n_caches(c->shared.tracer), UINT16_MAX);

    gs_out_varint(p, d->begun);
    gs_out_varint(p, n);
    for (uint32_t id = 1; id <= n; id++) {
        gs_out_varint(p, is_of_boot(d, id));
    }
    kt_quarantine_pack(d->q, p);
}

/* Without these data no cache is known to be of the boot. */
void kt_delay_free_unpack(KtCapture *c, GsBytes *u, const KtIdMap *ids)
{
    KtQuarantine *q = kt_quarantine_of(c->shared.tracer);
    uint64_t n;

    delay.begun = !u || gs_bytes_upto(u, 1, "a flag");
    if (!u) {
        return;
    }
    n = gs_bytes_upto(u, UINT16_MAX, "the number of caches");
    for (uint32_t id = 1; id <= n && gs_bytes_ok(u); id++) {
        KtCacheId here = kt_id_map_cache(ids, id);

        if (gs_bytes_upto(u, 1, "a flag") && here.v) {
            delay.kind[here.v] = OF_BOOT;
        }
    }
    kt_tracer_count(c->shared.tracer, KT_CNT_QUARANTINE_DROPPED,
                    kt_quarantine_unpack(q, u));
}
