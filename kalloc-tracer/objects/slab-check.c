/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compare the lists of free objects with the map, see kt-slab-check.h. Each
 * cache in turn:
 *
 *     walk its lists       what is wrong with the lists; free objects
 *     sort them by slab
 *     for each slab        the blocks of its memory, from the map; slot by slot
 *
 * The VM stands. Values of the guest are untrusted: they are only compared, and
 * name no memory that is read without a check.
 */
#include "kalloc-tracer/api/kt-slab-check.h"
#include "kalloc-tracer/objects/slab-internal.h"

#include <string.h>

/** struct Free - an object on a list; @base, @slots: its slab */
typedef struct Free {
    uint64_t va, base;
    uint32_t slot, slots;
    uint64_t position;
    KtSlabListKind list;
    unsigned number;
} Free;

/** struct Check - the state; @cache: the current one, @free: its Free; @blocks:
 *  KtBlock, those of one slab */
typedef struct Check {
    KtSlabs *s;
    KtTracer *t;
    KtSlabReport *out;
    KtSlabCache cache;
    GArray *free, *blocks;
} Check;

static const struct {
    const char *name, *text;
} kinds[KT_FOUND__COUNT] = {
#define KT_SLAB_PROBLEM(id, name, text) [KT_FOUND_##id] = { name, text },
#include "kalloc-tracer/api/slab-problems.def"
#define KT_SLAB_FINDING(id, name, text) [KT_FOUND_##id] = { name, text },
#include "kalloc-tracer/api/slab-findings.def"
};

const char *kt_slab_finding_name(KtSlabFindingKind kind)
{
    return kinds[kind].name;
}

const char *kt_slab_finding_text(KtSlabFindingKind kind)
{
    return kinds[kind].text;
}

static void add_finding(Check *k, const KtSlabFinding *f)
{
    if (k->out->findings->len >= KT_SLAB_FINDINGS_MAX) {
        k->out->dropped++;
        return;
    }
    g_array_append_val(k->out->findings, *f);
}

/* ---- lists --------------------------------------------------------------- */

static void on_object(void *opaque, const KtSlabList *l, const KtFreeObject *f)
{
    Check *k = opaque;

    g_array_append_val(k->free, ((Free) {
        .va = f->va, .base = f->slab->base, .slot = f->slot,
        .slots = f->slab->objects, .position = f->position, .list = l->kind,
        .number = l->number }));
}

/* Is the value an object of another slab of the same cache? */
static bool is_other_slab(const Check *k, uint64_t value)
{
    KtSlab slab;

    return kt_slabs_slab_of(k->s, value, &slab) && slab.is_slab &&
           slab.cache == k->cache.va && kt_slab_len(k->s, &k->cache, &slab) &&
           kt_slab_slot(&k->cache, &slab, value) != KT_NO_SLOT;
}

/*
 * A vCPU can be stopped between two stores that belong together. Numbers: while
 * it holds a lock. A CPU's list without a slab: flush_slab() clears first the
 * slab, then the list. Two sheaves that are one: while it exchanges them.
 */
static KtAnswer is_transit(const Check *k, const KtSlabProblem *p)
{
    switch (p->kind) {
    case KT_SLAB_COUNT:
    case KT_SLAB_LENGTH:
        return kt_slab_is_locked(k->s, &k->cache, p->slab);
    case KT_SLAB_OUTSIDE:
        return p->list->kind == KT_SLAB_LIST_CPU && !p->slab;
    case KT_SLAB_TWICE:
        return p->list->kind == KT_SLAB_LIST_SPARE && !p->slab;
    default:
        return KT_NO;
    }
}

static void add_problem(Check *k, const KtSlabProblem *p)
{
    KtSlabFinding f = {
        .kind = (KtSlabFindingKind)p->kind, .cache = k->cache,
        .list = p->list->kind, .number = p->list->number,
        .position = p->slot == KT_NO_SLOT ? KT_NO_COUNT : p->list->objects - 1,
        .slab = p->slab ? p->slab->base : 0, .slot = p->slot,
        .value = p->value, .expected = p->expected,
    };

    if (p->slab && p->slot != KT_NO_SLOT) {
        f.object = kt_slab_object(&k->cache, p->slab, p->slot);
    }
    if (p->kind == KT_SLAB_OUTSIDE && p->slab &&
        is_other_slab(k, p->value)) {
        f.kind = KT_FOUND_WRONG_SLAB;
    }
    add_finding(k, &f);
}

static void on_problem(void *opaque, const KtSlabProblem *p)
{
    Check *k = opaque;

    switch (is_transit(k, p)) {
    case KT_NO:
        add_problem(k, p);
        break;
    case KT_YES:
        k->out->transit++;
        break;
    default:
        k->out->unsure++;
    }
}

/* ---- the map ------------------------------------------------------------- */

static bool copy_block(const KtBlock *b, void *opaque)
{
    g_array_append_val((GArray *)opaque, *b);
    return true;
}

/* Judge an object on a list. @b: (nullable) the block there */
static void judge(Check *k, const Free *f, const KtBlock *b)
{
    bool live = b && b->state == KT_BLOCK_ALLOCATED;
    bool in_rcu = f->list == KT_SLAB_LIST_RCU;
    KtSlabFindingKind kind = live && !b->rcu_queued ? KT_FOUND_LIVE :
                             live && !in_rcu ? KT_FOUND_EARLY :
                             in_rcu && !b ? KT_FOUND_FOREIGN :
                             KT_FOUND__COUNT;

    if (kind == KT_FOUND__COUNT) {
        return;
    }
    if (k->out->why) {
        k->out->unsure++;
        return;
    }
    add_finding(k, &(KtSlabFinding) {
        .kind = kind, .cache = k->cache, .list = f->list, .number = f->number,
        .position = f->position, .slab = f->base, .slot = f->slot,
        .object = f->va });
}

/* Compare a slab that has objects on lists, @n of them from @f on. The
 * tracer's lock is held. */
static void compare_slab(Check *k, const Free *f, unsigned n)
{
    uint64_t va = f->base + k->cache.left_pad;
    unsigned at = 0, done = 0;

    g_array_set_size(k->blocks, 0);
    kt_query_range(k->t, va, va + (uint64_t)f->slots * k->cache.size - 1,
                   copy_block, k->blocks);
    for (uint32_t i = 0; i < f->slots; i++, va += k->cache.size) {
        const KtBlock *b = NULL;

        while (at < k->blocks->len &&
               g_array_index(k->blocks, KtBlock, at).va < va) {
            at++;
        }
        if (at < k->blocks->len &&
            g_array_index(k->blocks, KtBlock, at).va == va) {
            b = &g_array_index(k->blocks, KtBlock, at);
        }
        if (done < n && f[done].va == va) {
            judge(k, &f[done++], b);
        } else {
            k->out->transit += !b || b->state != KT_BLOCK_ALLOCATED;
        }
    }
    k->out->slabs++;
}

static void compare(Check *k)
{
    const Free *f = (const Free *)k->free->data;
    unsigned n = k->free->len;

    g_array_sort(k->free, kt_objects_order);
    kt_query_begin(k->t);
    for (unsigned i = 0, len; i < n; i += len) {
        for (len = 1; i + len < n && f[i + len].base == f[i].base; len++) {
        }
        compare_slab(k, f + i, len);
    }
    kt_query_end(k->t);
    k->out->objects += n;
}

/* ---- all ----------------------------------------------------------------- */

static void check_cache(Check *k)
{
    static const KtSlabOps ops = {
        .object = on_object, .problem = on_problem,
    };

    g_array_set_size(k->free, 0);
    k->out->no_form |= !kt_slabs_walk(k->s, &k->cache, &ops, k);
    compare(k);
    k->out->caches++;
}

/* The pages of a slab are no object's block. */
static bool find_block(KtTracer *t, uint64_t object, KtBlock *out)
{
    return object && kt_query_find(t, object, out) &&
           out->layer != KT_LAYER_PAGES;
}

/* Find the blocks of the findings. */
static void name_blocks(Check *k)
{
    kt_query_begin(k->t);
    for (unsigned i = 0; i < k->out->findings->len; i++) {
        KtSlabFinding *f = &g_array_index(k->out->findings, KtSlabFinding, i);

        f->has_block = find_block(k->t, f->object, &f->block);
        f->has_below = f->object && f->slot &&
                       find_block(k->t, f->object - f->cache.size, &f->below);
    }
    kt_query_end(k->t);
}

/* Return (static, nullable) why the map may lack frees that happened. */
static const char *why_unsure(const KtSlabs *s, KtTracer *t)
{
    KtStats stats;
    GsSymbol sym;

    kt_query_begin(t);
    kt_query_stats(t, &stats);
    kt_query_end(t);
    if (!kt_tracer_enabled(t)) {
        return "recording is off";
    }
    if (stats.gap || stats.unseen || stats.blind) {
        return "events were not recorded (a gap)";
    }
    if (!stats.complete) {
        return "tracing began late";
    }
    if ((!kt_slab_has(&s->at, KT_M_CACHE_CPU_SLAB) &&
         !kt_slab_has(&s->at, KT_M_CACHE_SHEAVES)) ||
        !gs_kernel_lookup(s->o.kernel, "rcu_gp_kthread", &sym)) {
        return "not every free is seen in a kernel with SLUB_TINY or TINY_RCU";
    }
    return NULL;
}

/* Check the caches of that name. Return how many there are. */
static uint64_t check_named(Check *k, const GArray *caches, const char *name)
{
    for (unsigned i = 0; i < caches->len; i++) {
        if (!kt_slabs_cache(k->s, g_array_index(caches, uint64_t, i),
                            &k->cache)) {
            k->out->unreadable++;
        } else if (!name || g_pattern_match_simple(name, k->cache.name)) {
            check_cache(k);
        }
    }
    return k->out->caches;
}

static bool check_caches(Check *k, const char *name, GError **errp)
{
    g_autoptr(GArray) caches = kt_slabs_caches(k->s);

    if (!caches->len) {
        g_set_error(errp, GS_ERROR, GS_ERROR_GUEST,
                    "no vCPU maps the kernel's memory now (all are in user "
                    "mode or in firmware, or it has not booted so far): let "
                    "it run for a moment");
        return false;
    }
    if (!check_named(k, caches, name) && name) {
        g_set_error(errp, GS_ERROR, GS_ERROR_GUEST, "\"%s\": no cache has this "
                    "name; it may contain * and ?", name);
        return false;
    }
    return true;
}

static bool check_all(Check *k, const char *name, GError **errp)
{
    bool ok;

    k->out->why = why_unsure(k->s, k->t);
    k->free = g_array_new(FALSE, FALSE, sizeof(Free));
    k->blocks = g_array_new(FALSE, FALSE, sizeof(KtBlock));
    ok = check_caches(k, name, errp);
    g_array_unref(k->free);
    g_array_unref(k->blocks);
    if (ok) {
        name_blocks(k);
        kt_tracer_count(k->t, KT_CNT_SLAB_FINDINGS_DROPPED, k->out->dropped);
    }
    return ok;
}

bool kt_slab_check(const KtObjects *o, const char *cache, KtSlabReport *out,
                   GError **errp)
{
    gint64 begun = g_get_monotonic_time();
    g_autoptr(KtSlabs) s = NULL;
    Check k = { .t = o->tracer, .out = out };

    *out = (KtSlabReport) {
        .findings = g_array_new(FALSE, FALSE, sizeof(KtSlabFinding)),
    };
    if (o->vm && o->vm->running) {
        g_set_error(errp, GS_ERROR, GS_ERROR_GUEST, "the VM runs: stop it "
                    "first, as lists change while they are read");
        return false;
    }
    k.s = s = kt_slabs_new(o, errp);
    if (!s || !check_all(&k, cache, errp)) {
        return false;
    }
    out->no_cpus = !kt_slabs_knows_cpus(s);
    out->us = g_get_monotonic_time() - begun;
    return true;
}

void kt_slab_report_clear(KtSlabReport *r)
{
    g_clear_pointer(&r->findings, g_array_unref);
}

/* ---- locks --------------------------------------------------------------- */
/*
 * Locks of the slab allocator, see slab-internal.h.
 *
 * A list of slabs and its length change under the lock of the node; those of a
 * barn under the lock of the barn. The list and the counters of a slab change
 * together, in one instruction; or under the slab's own lock, a bit of its
 * flags; in debug caches under the lock of the node.
 *
 * A spinlock is a word that is 0 if it is free, or has two numbers that are
 * equal then. With PREEMPT_RT it is a mutex, whose owner is NULL.
 */

#define FLAG_LOCKED 1u          /* PG_locked, in all versions */

/** struct Lock - where a lock is in a struct; @size 0: this kernel has none */
typedef struct Lock {
    uint32_t at, size;
} Lock;

/** struct Asking - the question while nodes are visited */
typedef struct Asking {
    const KtSlabs *s;
    Lock node, barn;
    bool held;
} Asking;

static Lock find_lock(const KtSlabs *s, const char *type, const char *name)
{
    static const char *const words[] = {
        "rlock.raw_lock", "raw_lock", "lock.owner",
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        g_autofree char *path = g_strdup_printf("%s.%s", name, words[i]);
        Lock lock;

        if (gs_kernel_member(s->o.kernel, type, path, &lock.at, &lock.size) &&
            (lock.size == 4 || lock.size == 8)) {
            return lock;
        }
    }
    return (Lock) { 0, 0 };
}

static bool is_held(const KtSlabs *s, uint64_t va, Lock lock)
{
    bool tickets = gs_kernel_arch(s->o.kernel)->spinlock ==
                   GS_SPINLOCK_TICKETS;
    uint64_t v;

    if (!lock.size || !kt_objects_number(&s->o, va + lock.at, lock.size, &v)) {
        return false;
    }
    return lock.size == 4 && tickets ? v >> 16 != (v & 0xffff) : v != 0;
}

static void ask_node(void *opaque, unsigned number, uint64_t node,
                     uint64_t barn)
{
    Asking *a = opaque;

    a->held |= node && is_held(a->s, node, a->node);
    a->held |= barn && is_held(a->s, barn, a->barn);
}

static bool is_slab_locked(const KtSlabs *s, const KtSlab *slab)
{
    uint64_t flags;

    return kt_slabs_member(s, slab->va, KT_M_PAGE_FLAGS, &flags) &&
           flags & FLAG_LOCKED;
}

KtAnswer kt_slab_is_locked(const KtSlabs *s, const KtSlabCache *c,
                           const KtSlab *slab)
{
    Asking a = {
        .s = s, .node = find_lock(s, "kmem_cache_node", "list_lock"),
        .barn = find_lock(s, "node_barn", "lock"),
    };

    if (!a.node.size) {
        return KT_UNKNOWN;
    }
    kt_slabs_foreach_node(s, c, ask_node, &a);
    return a.held || (slab && is_slab_locked(s, slab)) ? KT_YES : KT_NO;
}
