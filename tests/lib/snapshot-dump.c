/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/lib/snapshot-dump.h"

#include <string.h>

#include "kalloc-tracer/api/kt-aliases.h"

typedef struct Dump {
    KtTracer *t;
    GString *s;
} Dump;

static void dump_stack(Dump *d, KtStackId id)
{
    unsigned n;
    GsStop stop;
    const uint64_t *pc = kt_tracer_stack(d->t, id, &n, &stop);
    GsStackEra era = kt_tracer_stack_era(d->t, id);

    g_string_append_printf(d->s, " stack %u era %u %u", stop, era.all,
                           era.first);
    for (unsigned i = 0; i < n; i++) {
        g_string_append_printf(d->s, ",%lx", (gulong)pc[i]);
    }
}

static void dump_task(Dump *d, KtTaskId id)
{
    char comm[17] = "";
    uint32_t pid = 0;

    kt_tracer_task(d->t, id, &pid, comm);
    g_string_append_printf(d->s, " task %u %s", pid, comm);
}

static void dump_cache(Dump *d, KtCacheId id)
{
    KtCacheInfo c = { 0 };

    kt_tracer_cache(d->t, id, &c);
    g_string_append_printf(d->s, " cache %lx %s %u %u %d", (gulong)c.va,
                           c.name ? c.name : "", c.object_size, c.size,
                           c.destroyed);
}

static bool dump_block(const KtBlock *b, void *opaque)
{
    Dump *d = opaque;

    g_string_append_printf(d->s, "%c%s %lx %lx %lx %lu-%lu rcu %d %lu gfp %x "
                           "hooks %d %d cpus %d %d layer %u",
                           b->removed ? 'R' : "AF"[b->state],
                           b->past ? " past" : "", (gulong)b->va,
                           (gulong)b->requested, (gulong)b->actual,
                           (gulong)b->alloc_us, (gulong)b->free_us,
                           b->rcu_queued, (gulong)b->rcu_us, b->gfp, b->hook.v,
                           b->free_hook.v, b->alloc_cpu, b->free_cpu,
                           b->layer);
    dump_stack(d, b->alloc_stack);
    dump_stack(d, b->free_stack);
    dump_stack(d, b->rcu_stack);
    dump_task(d, b->alloc_task);
    dump_task(d, b->free_task);
    dump_cache(d, b->cache);
    g_string_append_c(d->s, '\n');
    return true;
}

static void dump_access(Dump *d, const KtErrorAccess *a)
{
    const KtNeighbour *n = &a->neighbour;

    g_string_append_printf(d->s, "access %lx %lx %lu %lu %x near %d %u %lx %lx "
                           "%lu", (gulong)a->pc, (gulong)a->offset,
                           (gulong)a->count, (gulong)a->last_us, a->flags,
                           a->has_neighbour, a->distance, (gulong)n->va,
                           (gulong)n->requested, (gulong)n->us);
    dump_stack(d, n->stack);
    dump_task(d, n->task);
    dump_cache(d, n->cache);
}

static bool dump_error(const KtError *e, void *opaque)
{
    Dump *d = opaque;

    g_string_append_printf(d->s, "error %lu %u %lx cpu %d hook %d %lu %lx",
                           (gulong)e->id, e->kind, (gulong)e->va, e->cpu,
                           e->hook.v, (gulong)e->us, (gulong)e->size);
    dump_stack(d, e->stack);
    dump_task(d, e->task);
    dump_cache(d, e->cache);
    dump_access(d, &e->access);
    return e->has_block ? dump_block(&e->block, d)
                        : g_string_append_c(d->s, '\n') != NULL;
}

/* Counters from KT_CNT_COST_NS on are about this process, so they differ. */
static void dump_counters(Dump *d)
{
    for (unsigned i = 0; i < KT_CNT_COST_NS; i++) {
        g_string_append_printf(d->s, "%s %lu\n", kt_counter_name(i),
                               (gulong)kt_tracer_counter(d->t, i));
    }
}

static void dump_stats(Dump *d)
{
    KtStats s;

    kt_query_stats(d->t, &s);
    g_string_append_printf(d->s, "%lu %lu %lu %lu %lu %lu %lu %lu\n",
                           (gulong)s.live_blocks, (gulong)s.live_bytes,
                           (gulong)s.freed_blocks, (gulong)s.history_rows,
                           (gulong)s.errors, (gulong)s.events,
                           (gulong)s.previous_live_blocks, (gulong)s.last_us);
    g_string_append_printf(d->s, "on %d complete %d gap %d unseen %d "
                           "blind %d\n",
                           kt_tracer_enabled(d->t), d->t->model->complete,
                           d->t->model->gap, d->t->model->unseen,
                           d->t->model->blind);
}

static bool dump_account(const KtAccountKey *key, const KtAccount *a,
                         void *opaque)
{
    GPtrArray *lines = opaque;
    Dump d = { lines->pdata[0], g_string_new(NULL) };

    g_string_append_printf(d.s, "account %u pc %lx era %u layer %u%s "
                           "size %lu-%lu %lu "
                           "%lu %lu %lu %lu %lu peak %lu cross %lu", key->by,
                           (gulong)key->pc, key->era, key->layer,
                           key->backing ? " backing" : "",
                           (gulong)key->lo, (gulong)key->hi, (gulong)a->allocs,
                           (gulong)a->asked, (gulong)a->reserved,
                           (gulong)a->frees, (gulong)a->freed_asked,
                           (gulong)a->freed_reserved, (gulong)a->peak,
                           (gulong)a->cross);
    dump_stack(&d, key->stack);
    dump_task(&d, key->task);
    dump_cache(&d, key->cache);
    g_ptr_array_add(lines, g_string_free(d.s, FALSE));
    return true;
}

static gint compare_lines(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void dump_totals(Dump *d)
{
    KtTotals t;

    kt_query_totals(d->t, NULL, &t);
    g_string_append_printf(d->s, "totals %lu %lu peak %lu: %lu %lu %lu %lu %lu "
                           "%lu %lu %lu, backing %lu %lu %lu\n",
                           (gulong)t.sum.allocs,
                           (gulong)t.sum.freed_reserved, (gulong)t.sum.peak,
                           (gulong)t.resizes, (gulong)t.grown,
                           (gulong)t.shrunk, (gulong)t.lost,
                           (gulong)t.lost_asked, (gulong)t.lost_reserved,
                           (gulong)t.splits, (gulong)t.stray,
                           (gulong)t.backing_blocks, (gulong)t.backing,
                           (gulong)t.backing_unknown);
}

/* Sort the accounts by their text: ids are different after a load. */
static void dump_accounts(Dump *d)
{
    for (unsigned by = 0; by < KT_BY__COUNT; by++) {
        g_autoptr(GPtrArray) lines = g_ptr_array_new();

        g_ptr_array_add(lines, d->t);
        kt_query_accounts(d->t, NULL, by, dump_account, lines);
        g_ptr_array_remove_index(lines, 0);
        g_ptr_array_sort(lines, compare_lines);
        for (unsigned i = 0; i < lines->len; i++) {
            g_string_append_printf(d->s, "%s\n", (char *)lines->pdata[i]);
            g_free(lines->pdata[i]);
        }
    }
    dump_totals(d);
}

static void dump_alias(const KtCacheAlias *alias, void *opaque)
{
    Dump *d = opaque;

    g_string_append_printf(d->s, "alias %s of %lx %lu", alias->name,
                           (gulong)alias->cache_va, (gulong)alias->us);
    dump_stack(d, alias->stack);
    dump_task(d, alias->task);
    g_string_append_c(d->s, '\n');
}

/* Blocks appear several times: by address, with their history, by stack. */
char *snapshot_dump(KtTracer *t)
{
    Dump d = { t, g_string_new(NULL) };

    kt_query_begin(t);
    kt_query_range(t, 0, UINT64_MAX, dump_block, &d);
    for (unsigned i = 0; i < ADDRESSES; i++) {
        kt_query_history(t, VA + i * 64, dump_block, &d);
    }
    kt_query_alloc_pc(t, 0, UINT64_MAX, dump_block, &d);
    kt_query_free_pc(t, 0, UINT64_MAX, dump_block, &d);
    kt_query_errors(t, 0, UINT64_MAX, dump_error, &d);
    dump_counters(&d);
    dump_stats(&d);
    dump_accounts(&d);
    kt_query_end(t);
    kt_cache_aliases_all(t, dump_alias, &d);
    return g_string_free(d.s, FALSE);
}
