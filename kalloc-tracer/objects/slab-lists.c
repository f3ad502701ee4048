/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Walk the lists of free objects of a cache: see api/kt-slabs.h.
 *
 * Everything is untrusted. Nothing is followed that is not a slot of its slab,
 * no slab that is not of the cache. A bit for each slot says whether a list
 * had it: so each object is visited once, which bounds the walk, and finds
 * cycles.
 */
#include "kalloc-tracer/objects/slab-internal.h"

#include <string.h>

#define PARTS_MAX       (1u << 20)  /* slabs or sheaves of a list */
#define SHEAF_MAX       8192u       /* objects of a sheaf */
#define COPY_MAX        (1u << 16)  /* bytes of a slab that is copied whole */
#define COPY_MIN        16u         /* free objects that are worth it */

/** struct Seen - a slab of the cache; @listed: it was on a list of slabs;
 *  @bits: slots that were on a list */
typedef struct Seen {
    KtSlab slab;
    uint64_t len;
    bool listed;
    uint64_t bits[];
} Seen;

/**
 * struct Walk - the state
 * @seen: address of a struct slab (in the value) -> Seen (owned)
 * @sheaves: addresses of sheaves that were walked (owned keys)
 * @list: the current one
 * @copy: of the memory of one slab; @copy_base: its address, @copy_len: bytes
 */
typedef struct Walk {
    KtSlabs *s;
    const KtSlabCache *c;
    const KtSlabOps *ops;
    void *opaque;
    KtFreeForm form;
    GHashTable *seen, *sheaves;
    KtSlabList list;
    uint8_t *copy;
    uint64_t copy_base, copy_len;
} Walk;

static void report(Walk *w, const KtSlabProblem *p)
{
    KtSlabProblem problem = *p;

    problem.list = &w->list;
    if (w->ops->problem) {
        w->ops->problem(w->opaque, &problem);
    }
}

/* ---- one slab ------------------------------------------------------------ */

static bool test_and_set(Seen *seen, uint32_t slot)
{
    uint64_t bit = 1ull << slot % 64;
    bool was = seen->bits[slot / 64] & bit;

    seen->bits[slot / 64] |= bit;
    return was;
}

/* Is the slab wrong? @value: the word that led to it */
static bool refuses(Walk *w, const KtSlab *slab, uint64_t value)
{
    if (!slab->is_slab) {
        report(w, &(KtSlabProblem) { KT_SLAB_NOT_SLAB, .slot = KT_NO_SLOT,
                                     .value = value });
    } else if (slab->cache != w->c->va) {
        report(w, &(KtSlabProblem) { KT_SLAB_WRONG_CACHE, .slab = slab,
                                     .slot = KT_NO_SLOT,
                                     .value = slab->cache,
                                     .expected = w->c->va });
    } else if (!kt_slab_len(w->s, w->c, slab)) {
        report(w, &(KtSlabProblem) { KT_SLAB_BAD_SLAB, .slab = slab,
                                     .slot = KT_NO_SLOT,
                                     .value = slab->objects,
                                     .expected = w->c->per_slab });
    } else {
        return false;
    }
    return true;
}

/* Return (borrowed) what is known of a slab that was just read; NULL if it is
 * not one of the cache. */
static Seen *accept(Walk *w, const KtSlab *slab, uint64_t value)
{
    Seen *seen = g_hash_table_lookup(w->seen, &slab->va);

    if (seen || refuses(w, slab, value)) {
        return seen;
    }
    seen = g_malloc0(sizeof(*seen) + ((uint64_t)slab->objects + 63) / 64 * 8);
    seen->slab = *slab;
    seen->len = kt_slab_len(w->s, w->c, slab);
    g_hash_table_insert(w->seen, &seen->slab.va, seen);
    return seen;
}

static Seen *find_slab(Walk *w, uint64_t va)
{
    Seen *seen = g_hash_table_lookup(w->seen, &va);
    KtSlab slab;

    if (seen) {
        return seen;
    }
    if (!kt_slabs_slab(w->s, va, &slab)) {
        report(w, &(KtSlabProblem) { KT_SLAB_UNREADABLE, .slot = KT_NO_SLOT,
                                     .value = va });
        return NULL;
    }
    return accept(w, &slab, va);
}

static Seen *find_slab_of(Walk *w, uint64_t object)
{
    KtSlab slab;

    if (!kt_slabs_slab_of(w->s, object, &slab)) {
        report(w, &(KtSlabProblem) { KT_SLAB_OUTSIDE, .slot = KT_NO_SLOT,
                                     .value = object });
        return NULL;
    }
    return accept(w, &slab, object);
}

static void add_object(Walk *w, const Seen *seen, uint32_t slot, uint64_t va)
{
    if (!w->list.objects) {
        w->list.first = va;
    }
    if (w->ops->object) {
        w->ops->object(w->opaque, &w->list, &(KtFreeObject) {
            va, &seen->slab, slot, w->list.objects });
    }
    w->list.objects++;
}

/* ---- free pointers ------------------------------------------------------- */

/* Copy the memory of a slab with many free objects. */
static void copy_slab(Walk *w, const Seen *seen, uint32_t n)
{
    w->copy_len = 0;
    if (n >= COPY_MIN && seen->len <= COPY_MAX &&
        kt_objects_read(&w->s->o, seen->slab.base, w->copy, seen->len)) {
        w->copy_base = seen->slab.base;
        w->copy_len = seen->len;
    }
}

static bool read_word(const Walk *w, uint64_t va, uint64_t *out)
{
    uint64_t off = va - w->copy_base;

    if (w->copy_len < 8 || off > w->copy_len - 8) {
        return kt_objects_number(&w->s->o, va, 8, out);
    }
    memcpy(out, w->copy + off, 8);
    *out = GUINT64_FROM_LE(*out);
    return true;
}

/* Read the object behind the one at @va. */
static bool read_next(const Walk *w, uint64_t va, uint64_t *next)
{
    uint64_t at = va + w->c->offset, stored;

    *next = 0;
    if (!read_word(w, at, &stored)) {
        return false;
    }
    *next = gs_untag(w->s->tag_bits,
                     kt_free_pointer(w->form, w->c->random, at, stored));
    return true;
}

/* Did this chain have the object at @va among its first @n? */
static bool is_in_chain(const Walk *w, uint64_t first, uint32_t n, uint64_t va)
{
    uint64_t at = first;

    for (; n && at != va; n--) {
        if (!read_next(w, at, &at)) {
            return false;
        }
    }
    return n;
}

/* Walk a chain of objects of one slab. Return false if it was left early. @n:
 * (out) its objects */
static bool walk_chain(Walk *w, Seen *seen, uint64_t first, uint32_t *n)
{
    uint32_t slot, prev = KT_NO_SLOT;
    uint64_t at = first;

    for (*n = 0; at; ++*n) {
        KtSlabProblem p = { .slab = &seen->slab, .slot = prev, .value = at };

        slot = kt_slab_slot(w->c, &seen->slab, at);
        if (slot == KT_NO_SLOT) {
            p.kind = KT_SLAB_OUTSIDE;
            report(w, &p);
            return false;
        }
        if (test_and_set(seen, slot)) {
            p.kind = is_in_chain(w, first, *n, at) ? KT_SLAB_CYCLE :
                                                     KT_SLAB_TWICE;
            report(w, &p);
            return false;
        }
        add_object(w, seen, slot, at);
        prev = slot;
        if (!read_next(w, at, &at)) {
            p.kind = KT_SLAB_UNREADABLE;
            p.slot = slot;
            report(w, &p);
            return false;
        }
    }
    return true;
}

/* Walk a slab's own list, which must have the objects that are not in use. */
static void walk_own(Walk *w, Seen *seen)
{
    const KtSlab *slab = &seen->slab;
    uint32_t expected = slab->objects - slab->inuse, n;

    if (w->form == KT_FREE_UNKNOWN) {
        return;
    }
    copy_slab(w, seen, expected);
    if (walk_chain(w, seen, slab->freelist, &n) && n != expected) {
        report(w, &(KtSlabProblem) { KT_SLAB_COUNT, .slab = slab,
                                     .slot = KT_NO_SLOT, .value = n,
                                     .expected = expected });
    }
    w->copy_len = 0;
}

/* ---- lists of slabs ------------------------------------------------------ */

static void begin_list(Walk *w, KtSlabListKind kind, unsigned number,
                       uint64_t at)
{
    w->list = (KtSlabList) { .kind = kind, .number = number, .at = at,
                             .counted = KT_NO_COUNT };
}

static void end_list(Walk *w)
{
    if (w->ops->list) {
        w->ops->list(w->opaque, &w->list);
    }
}

static void end_slab(Walk *w, const Seen *seen)
{
    if (w->ops->slab) {
        w->ops->slab(w->opaque, &w->list, &seen->slab);
    }
}

/* Walk one slab of a list of slabs. Return false if the list must be left. */
static bool walk_part(Walk *w, Seen *seen)
{
    if (seen->listed) {
        report(w, &(KtSlabProblem) { KT_SLAB_TWICE, .slab = &seen->slab,
                                     .slot = KT_NO_SLOT,
                                     .value = seen->slab.va });
        return false;
    }
    if (w->list.parts == PARTS_MAX) {
        report(w, &(KtSlabProblem) { KT_SLAB_TOO_LONG, .slot = KT_NO_SLOT,
                                     .value = PARTS_MAX });
        return false;
    }
    seen->listed = true;
    w->list.parts++;
    walk_own(w, seen);
    end_slab(w, seen);
    return true;
}

static void check_length(Walk *w)
{
    if (w->list.counted != KT_NO_COUNT && w->list.counted != w->list.parts) {
        report(w, &(KtSlabProblem) { KT_SLAB_LENGTH, .slot = KT_NO_SLOT,
                                     .value = w->list.parts,
                                     .expected = w->list.counted });
    }
}

static void walk_node_partial(Walk *w, unsigned number, uint64_t node)
{
    const KtSlabLayout *at = &w->s->at;
    uint64_t head = node + at->layout.at[KT_M_NODE_PARTIAL], link;
    Seen *seen;

    begin_list(w, KT_SLAB_LIST_NODE_PARTIAL, number, head);
    if (!kt_slabs_member(w->s, node, KT_M_NODE_NR_PARTIAL,
                         &w->list.counted)) {
        w->list.counted = KT_NO_COUNT;
    }
    if (!kt_slabs_pointer(w->s, head, &link)) {
        report(w, &(KtSlabProblem) { KT_SLAB_UNREADABLE, .slot = KT_NO_SLOT,
                                     .value = head });
        link = head;
    }
    for (; link != head; link = seen->slab.link) {
        seen = find_slab(w, link - at->layout.at[KT_M_SLAB_LIST]);
        if (!seen || !walk_part(w, seen)) {
            end_list(w);
            return;
        }
    }
    check_length(w);
    end_list(w);
}

/* ---- CPUs before 7.0 ----------------------------------------------------- */

/* Return the slab that a CPU allocates from, NULL if it is none of this cache
 * or has been on another list. */
static Seen *find_active(Walk *w, uint64_t va)
{
    Seen *seen = find_slab(w, va);

    if (seen && seen->listed) {
        report(w, &(KtSlabProblem) { KT_SLAB_TWICE, .slab = &seen->slab,
                                     .slot = KT_NO_SLOT, .value = va });
        return NULL;
    }
    if (seen) {
        seen->listed = true;
    }
    return seen;
}

/* Walk the list that a CPU allocates from, and its slab's own list, to which
 * other CPUs free. */
static void walk_active(Walk *w, unsigned cpu, uint64_t at)
{
    uint64_t slab_va, first;
    Seen *seen = NULL;
    uint32_t n;

    begin_list(w, KT_SLAB_LIST_CPU, cpu, at);
    kt_slabs_link(w->s, at, KT_M_CPU_SLAB, &slab_va);
    kt_slabs_link(w->s, at, KT_M_CPU_FREELIST, &first);
    if (slab_va) {
        seen = find_active(w, slab_va);
    } else if (first) {
        report(w, &(KtSlabProblem) { KT_SLAB_OUTSIDE, .slot = KT_NO_SLOT,
                                     .value = first });
    }
    if (seen && w->form != KT_FREE_UNKNOWN) {
        copy_slab(w, seen, first ? COPY_MIN : 0);
        walk_chain(w, seen, first, &n);
        w->copy_len = 0;
    }
    end_list(w);
    if (seen) {
        begin_list(w, KT_SLAB_LIST_CPU_SLAB, cpu, slab_va);
        walk_own(w, seen);
        end_slab(w, seen);
        end_list(w);
    }
}

static void walk_cpu_partial(Walk *w, unsigned cpu, uint64_t at)
{
    uint64_t va;
    Seen *seen;

    if (!kt_slabs_link(w->s, at, KT_M_CPU_PARTIAL, &va)) {
        return;
    }
    begin_list(w, KT_SLAB_LIST_CPU_PARTIAL, cpu,
               at + w->s->at.layout.at[KT_M_CPU_PARTIAL]);
    for (; va; va = seen->slab.next) {
        seen = find_slab(w, va);
        if (!seen || !walk_part(w, seen)) {
            break;
        }
    }
    end_list(w);
}

/* ---- sheaves ------------------------------------------------------------- */

static void walk_sheaf_object(Walk *w, uint64_t va)
{
    Seen *seen = find_slab_of(w, va);
    uint32_t slot = seen ? kt_slab_slot(w->c, &seen->slab, va) : KT_NO_SLOT;
    KtSlabProblem p = { KT_SLAB_OUTSIDE, .slot = KT_NO_SLOT, .value = va };

    if (!seen) {
        return;
    }
    p.slab = &seen->slab;
    if (slot == KT_NO_SLOT) {
        report(w, &p);
    } else if (test_and_set(seen, slot)) {
        p.kind = KT_SLAB_TWICE;
        report(w, &p);
    } else {
        add_object(w, seen, slot, va);
    }
}

static void walk_sheaf_objects(Walk *w, uint64_t sheaf, uint64_t n)
{
    g_autofree uint64_t *object = g_new(uint64_t, n);
    uint64_t at = sheaf + w->s->at.layout.at[KT_M_SHEAF_OBJECTS];

    if (!kt_objects_read(&w->s->o, at, object, n * 8)) {
        report(w, &(KtSlabProblem) { KT_SLAB_UNREADABLE, .slot = KT_NO_SLOT,
                                     .value = at });
        return;
    }
    while (n--) {
        walk_sheaf_object(w, gs_untag(w->s->tag_bits,
                                      GUINT64_FROM_LE(object[n])));
    }
}

/* Is the sheaf of this cache, and not yet walked? */
static bool accept_sheaf(Walk *w, uint64_t sheaf)
{
    KtSlabProblem p = { KT_SLAB_UNREADABLE, .slot = KT_NO_SLOT,
                        .value = sheaf };
    uint64_t cache;

    if (!g_hash_table_add(w->sheaves, g_memdup2(&sheaf, sizeof(sheaf)))) {
        p.kind = KT_SLAB_TWICE;
    } else if (w->list.parts == PARTS_MAX) {
        p.kind = KT_SLAB_TOO_LONG;
    } else if (kt_slabs_link(w->s, sheaf, KT_M_SHEAF_CACHE, &cache)) {
        if (cache == w->c->va) {
            return true;
        }
        p.kind = KT_SLAB_WRONG_CACHE;
        p.value = cache;
        p.expected = w->c->va;
    }
    report(w, &p);
    return false;
}

/* Return false if the list of sheaves must be left. */
static bool walk_sheaf(Walk *w, uint64_t sheaf)
{
    uint64_t n;

    if (!accept_sheaf(w, sheaf)) {
        return false;
    }
    w->list.parts++;
    if (!kt_slabs_member(w->s, sheaf, KT_M_SHEAF_SIZE, &n) ||
        n > w->c->sheaf_capacity || n > SHEAF_MAX) {
        report(w, &(KtSlabProblem) { KT_SLAB_BAD_SHEAF, .slot = KT_NO_SLOT,
                                     .value = n,
                                     .expected = w->c->sheaf_capacity });
    } else if (n) {
        walk_sheaf_objects(w, sheaf, n);
    }
    return true;
}

static void walk_sheaves(Walk *w, unsigned cpu, uint64_t at)
{
    static const struct {
        KtSlabListKind kind;
        KtMember member;
    } row[] = {
        { KT_SLAB_LIST_MAIN, KT_M_SHEAVES_MAIN },
        { KT_SLAB_LIST_SPARE, KT_M_SHEAVES_SPARE },
        { KT_SLAB_LIST_RCU, KT_M_SHEAVES_RCU },
    };
    uint64_t sheaf;

    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        if (kt_slabs_link(w->s, at, row[i].member, &sheaf) && sheaf) {
            begin_list(w, row[i].kind, cpu, sheaf);
            walk_sheaf(w, sheaf);
            end_list(w);
        }
    }
}

static void walk_barn_list(Walk *w, uint64_t head)
{
    uint64_t link = head;

    for (;;) {
        if (!kt_slabs_pointer(w->s, link, &link)) {
            report(w, &(KtSlabProblem) { KT_SLAB_UNREADABLE,
                                         .slot = KT_NO_SLOT,
                                         .value = link });
            return;
        }
        if (link == head) {
            check_length(w);
            return;
        }
        link -= w->s->at.layout.at[KT_M_SHEAF_LIST];
        if (!walk_sheaf(w, link)) {
            return;
        }
        link += w->s->at.layout.at[KT_M_SHEAF_LIST];
    }
}

static void walk_barn(Walk *w, unsigned number, uint64_t barn)
{
    static const struct {
        KtSlabListKind kind;
        KtMember list, count;
    } row[] = {
        { KT_SLAB_LIST_BARN_FULL, KT_M_BARN_FULL, KT_M_BARN_NR_FULL },
        { KT_SLAB_LIST_BARN_EMPTY, KT_M_BARN_EMPTY, KT_M_BARN_NR_EMPTY },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(row); i++) {
        if (!kt_slab_has(&w->s->at, row[i].list)) {
            continue;
        }
        begin_list(w, row[i].kind, number,
                   barn + w->s->at.layout.at[row[i].list]);
        if (!kt_slabs_member(w->s, barn, row[i].count, &w->list.counted)) {
            w->list.counted = KT_NO_COUNT;
        }
        walk_barn_list(w, w->list.at);
        end_list(w);
    }
}

/* ---- all ----------------------------------------------------------------- */

static void walk_cpu(Walk *w, const KtSlabCpu *cpu)
{
    uint64_t slab = w->c->cpu_slab + cpu->offset;

    if (w->c->cpu_slab) {
        walk_active(w, cpu->cpu, slab);
        walk_cpu_partial(w, cpu->cpu, slab);
    }
    /* Without capacity all CPUs have the same empty sheaf. */
    if (w->c->cpu_sheaves && w->c->sheaf_capacity) {
        walk_sheaves(w, cpu->cpu, w->c->cpu_sheaves + cpu->offset);
    }
}

static void walk_node(void *opaque, unsigned number, uint64_t node,
                      uint64_t barn)
{
    Walk *w = opaque;

    if (node) {
        walk_node_partial(w, number, node);
    }
    if (barn && w->c->sheaf_capacity) {
        walk_barn(w, number, barn);
    }
}

bool kt_slabs_walk(KtSlabs *s, const KtSlabCache *c, const KtSlabOps *ops,
                   void *opaque)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(
        gs_number_hash, g_int64_equal, NULL, g_free);
    g_autoptr(GHashTable) sheaves = g_hash_table_new_full(
        gs_number_hash, g_int64_equal, g_free, NULL);
    g_autofree uint8_t *copy = g_malloc(COPY_MAX);
    Walk w = { .s = s, .c = c, .ops = ops, .opaque = opaque, .seen = seen,
               .sheaves = sheaves, .copy = copy, .form = kt_slabs_form(s) };

    for (unsigned i = 0; i < s->cpus->len; i++) {
        walk_cpu(&w, &g_array_index(s->cpus, KtSlabCpu, i));
    }
    kt_slabs_foreach_node(s, c, walk_node, &w);
    return w.form != KT_FREE_UNKNOWN;
}
