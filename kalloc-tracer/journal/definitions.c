/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Definitions of a journal: see journal-format.h.
 */
#include "kalloc-tracer/journal/journal-format.h"

#include "kalloc-tracer/base/stack-tag.h"

static unsigned shared_tail(const KtLastStack *l, const uint64_t *pc,
                            unsigned n)
{
    unsigned same = 0;

    while (same < n && same < l->n &&
           pc[n - 1 - same] == l->frame[l->n - 1 - same]) {
        same++;
    }
    return same;
}

/* The ids that are defined already, as a bitmap. */
typedef struct Seen {
    uint64_t *bits;
    uint32_t n;             /* words */
} Seen;

struct KtDefinitions {
    const KtDepot *stacks;
    const KtTasksCaches *names;
    Seen stack, task, cache;
    GHashTable *number;     /* of a program counter */
    KtLastStack last;
    bool told;              /* that all begins anew */
};

KtDefinitions *kt_definitions_new(const KtDepot *stacks,
                                  const KtTasksCaches *names)
{
    KtDefinitions *d = g_new0(KtDefinitions, 1);

    d->stacks = stacks;
    d->names = names;
    d->number = g_hash_table_new_full(gs_number_hash, g_int64_equal, g_free,
                                      NULL);
    return d;
}

void kt_definitions_reset(KtDefinitions *d)
{
    g_clear_pointer(&d->stack.bits, g_free);
    g_clear_pointer(&d->task.bits, g_free);
    g_clear_pointer(&d->cache.bits, g_free);
    d->stack.n = d->task.n = d->cache.n = 0;
    g_hash_table_remove_all(d->number);
    d->last = (KtLastStack) { 0 };
    d->told = false;
}

void kt_definitions_free(KtDefinitions *d)
{
    if (d) {
        kt_definitions_reset(d);
        g_hash_table_unref(d->number);
        g_free(d);
    }
}

/* Return true the first time for each @id. */
static bool first_sight(Seen *s, uint32_t id)
{
    uint32_t word = id / 64;
    uint64_t bit = (uint64_t)1 << id % 64;

    if (word >= s->n) {
        uint32_t n = MAX(64, s->n);

        while (n <= word) {
            n *= 2;
        }
        s->bits = g_renew(uint64_t, s->bits, n);
        memset(s->bits + s->n, 0, (n - s->n) * sizeof(*s->bits));
        s->n = n;
    }
    if (s->bits[word] & bit) {
        return false;
    }
    s->bits[word] |= bit;
    return true;
}

static void begin(KtDefinitions *d, KtDefinitionTag tag, GsOut *out)
{
    if (!d->told) {
        gs_out_u8(out, KT_DEF_ANEW);
        d->told = true;
    }
    gs_out_u8(out, tag);
}

static void put_pc(KtDefinitions *d, uint64_t pc, GsOut *out)
{
    guint number = GPOINTER_TO_UINT(g_hash_table_lookup(d->number, &pc));

    gs_out_varint(out, number);
    if (number) {
        return;
    }
    gs_out_varint(out, gs_zigzag(pc - d->last.pc));
    d->last.pc = pc;
    number = g_hash_table_size(d->number) + 1;
    if (number <= KT_NAMED_PCS) {
        g_hash_table_insert(d->number, g_memdup2(&pc, sizeof(pc)),
                            GUINT_TO_POINTER(number));
    }
}

static void put_stack(KtDefinitions *d, uint32_t id, GsOut *out)
{
    unsigned n, same;
    uint64_t tag;
    const uint64_t *pc = kt_depot_get(d->stacks, id, &n, &tag);

    if (!pc || n > KT_MAX_FRAMES) {
        return;
    }
    begin(d, KT_DEF_STACK, out);
    same = shared_tail(&d->last, pc, n);
    gs_out_varint(out, gs_zigzag((uint64_t)id - d->last.id));
    gs_out_u8(out, n);
    gs_out_u8(out, kt_stack_tag_stop(tag));
    gs_out_u8(out, same);
    for (unsigned i = 0; i < n - same; i++) {
        put_pc(d, pc[i], out);
    }
    kt_last_stack_set(&d->last, id, pc, n);
}

static void put_task(KtDefinitions *d, KtTaskId id, GsOut *out)
{
    char comm[KT_COMM_LEN + 1];
    uint32_t pid;

    if (kt_tasks_caches_task(d->names, id, &pid, comm)) {
        begin(d, KT_DEF_TASK, out);
        gs_out_varint(out, id.v);
        gs_out_varint(out, pid);
        gs_out_str(out, comm);
    }
}

static void put_cache(KtDefinitions *d, KtCacheId id, GsOut *out)
{
    KtCacheInfo info;

    if (kt_tasks_caches_cache(d->names, id, &info)) {
        begin(d, KT_DEF_CACHE, out);
        gs_out_varint(out, id.v);
        gs_out_u64(out, info.va);
        gs_out_varint(out, info.object_size);
        gs_out_varint(out, info.size);
        gs_out_str(out, info.name);
    }
}

void kt_definitions_add(KtDefinitions *d, const KtEvent *ev, GsOut *out)
{
    if (ev->stack.v && first_sight(&d->stack, ev->stack.v)) {
        put_stack(d, ev->stack.v, out);
    }
    if (ev->task.v && first_sight(&d->task, ev->task.v)) {
        put_task(d, ev->task, out);
    }
    if (ev->cache.v && first_sight(&d->cache, ev->cache.v)) {
        put_cache(d, ev->cache, out);
    }
}
