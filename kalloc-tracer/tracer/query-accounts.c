/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queries of accounts, and marks: kt-accounts.h.
 *
 * Queries run between kt_query_begin() and kt_query_end(), as those of query.c
 * do. Marks are set and dropped under the tracer's lock, and are written to the
 * journal between the same two events: so replay gets the same marks.
 */
#include "kalloc-tracer/tracer/tracer.h"

#include <stdlib.h>
#include <string.h>

/* ---- accounts ------------------------------------------------------------ */

static KtAccountKey key_of(const KtAccounts *a, KtBy by, uint32_t id)
{
    KtAccountKey key = { .by = by };

    switch (by) {
    case KT_BY_CALLER:
        if (id < a->list->len) {
            key.pc = g_array_index(a->list, KtCaller, id).pc;
            key.era = g_array_index(a->list, KtCaller, id).era;
        }
        break;
    case KT_BY_STACK:
        key.stack.v = id;
        key.backing = kt_accounts_is_backing(a, id);
        break;
    case KT_BY_CACHE:
        key.cache.v = id < KT_LAYER__COUNT ? 0 : id - KT_LAYER__COUNT;
        key.layer = id < KT_LAYER__COUNT ? id : KT_LAYER_NONE;
        break;
    case KT_BY_TASK:
        key.task.v = id;
        break;
    default:
        kt_size_class_range(id, &key.lo, &key.hi);
        break;
    }
    return key;
}

/* Id 0 has the blocks without a stack, task or cache. What had no room for an
 * account of its own is added to it. */
static KtAccount account_of(const KtCells *c, uint32_t id)
{
    KtAccount a = *kt_cells_get(c, id);

    if (!id) {
        kt_account_add(&a, &c->rest);
    }
    a.caller = 0;
    return a;
}

/* Listings by cache have a row for all backing blocks; those by task and by
 * size have none. */
static void add_backing(const KtCells *c, KtBy by, KtAccountFn fn,
                        void *opaque)
{
    const KtAccountKey key = {
        .by = by, .layer = KT_LAYER_PAGES, .backing = true,
    };

    if (by == KT_BY_CACHE && !kt_account_is_empty(&c->backing)) {
        fn(&key, &c->backing, opaque);
    }
}

bool kt_query_accounts(KtTracer *t, const char *mark, KtBy by,
                       KtAccountFn fn, void *opaque)
{
    const KtAccounts *a = &t->model->accounts;
    const KtTables *tables = kt_accounts_tables(a, mark);
    const KtCells *c = tables ? &tables->by[by] : NULL;
    KtCells callers = { 0 };
    bool more = c != NULL;

    if (tables && by == KT_BY_CALLER) {
        kt_tables_callers(tables, &callers);
        c = &callers;
    }
    for (uint32_t id = 0; more && id < MAX(kt_cells_end(c), 1); id++) {
        KtAccount account = account_of(c, id);
        KtAccountKey key;

        if (kt_account_is_empty(&account)) {
            continue;
        }
        key = key_of(a, by, id);
        more = fn(&key, &account, opaque);
    }
    if (more) {
        add_backing(c, by, fn, opaque);
    }
    kt_cells_clear(&callers);
    return tables != NULL;
}

bool kt_query_totals(KtTracer *t, const char *mark, KtTotals *out)
{
    const KtTables *tables = kt_accounts_tables(&t->model->accounts, mark);

    if (!tables) {
        return false;
    }
    *out = kt_tables_totals(tables);
    if (!mark) {
        out->us = t->last_us;
    }
    return true;
}

bool kt_query_is_backing(KtTracer *t, const KtBlock *b)
{
    return b->layer == KT_LAYER_PAGES &&
           kt_accounts_is_backing(&t->model->accounts, b->alloc_stack.v);
}

void kt_size_class_of(uint64_t asked, uint64_t *lo, uint64_t *hi)
{
    kt_size_class_range(kt_size_class(asked), lo, hi);
}

/* ---- stray frees --------------------------------------------------------- */

static gint by_stack(gconstpointer a, gconstpointer b)
{
    const KtStray *x = a, *y = b;

    return x->stack.v < y->stack.v ? -1 : x->stack.v > y->stack.v;
}

void kt_query_stray(KtTracer *t, KtStrayFn fn, void *opaque)
{
    g_autoptr(GArray) list = g_array_new(FALSE, FALSE, sizeof(KtStray));
    GHashTableIter it;
    gpointer value;

    g_hash_table_iter_init(&it, t->model->accounts.stray);
    while (g_hash_table_iter_next(&it, NULL, &value)) {
        g_array_append_vals(list, value, 1);
    }
    g_array_sort(list, by_stack);
    for (unsigned i = 0; i < list->len; i++) {
        if (!fn(&g_array_index(list, KtStray, i), opaque)) {
            return;
        }
    }
}

bool kt_query_past(KtTracer *t, uint64_t *at, unsigned n, KtBlockFn fn,
                   void *opaque)
{
    return kt_history_some(t->model->history, at, n, fn, opaque);
}

/* ---- marks --------------------------------------------------------------- */

void kt_query_marks(KtTracer *t, KtMarkFn fn, void *opaque)
{
    const GPtrArray *marks = t->model->accounts.marks;

    for (unsigned i = 0; i < marks->len; i++) {
        const KtMark *p = marks->pdata[i];
        const KtMarkInfo info = {
            p->name,
            kt_tables_totals(&p->tables),
        };

        if (!fn(&info, opaque)) {
            return;
        }
    }
}

static void write_mark_locked(KtTracer *t, bool set, const char *name)
{
    GByteArray *data;

    if (t->journal) {
        data = g_byte_array_new();
        gs_out_u8(&GS_OUT(data), set);
        gs_out_str(&GS_OUT(data), name);
        kt_journal_add_frame(t->journal, KT_FRAME_MARK, data);
    }
}

bool kt_tracer_set_mark(KtTracer *t, const char *name, GError **errp)
{
    KtAccounts *a;
    bool ok;

    kt_tracer_lock_drained(t);
    a = &t->model->accounts;
    a->now.totals.us = t->last_us;
    ok = kt_accounts_set_mark(a, name, errp);
    if (ok) {
        write_mark_locked(t, true, name);
    }
    pthread_mutex_unlock(&t->lock);
    return ok;
}

bool kt_tracer_drop_mark(KtTracer *t, const char *name)
{
    bool ok;

    kt_tracer_lock_drained(t);
    ok = kt_accounts_drop_mark(&t->model->accounts, name);
    if (ok) {
        write_mark_locked(t, false, name);
    }
    pthread_mutex_unlock(&t->lock);
    return ok;
}

/* ---- modules ------------------------------------------------------------- */
/*
 * Queries of what unloaded modules did not free: kt-modules.h. They run between
 * kt_query_begin() and kt_query_end().
 *
 * A report lists the blocks that were not freed when the module was unloaded.
 * Blocks that were freed since are skipped here: each one is searched in the
 * map again.
 */

void kt_query_modules(KtTracer *t, KtModuleFn fn, void *opaque)
{
    const GPtrArray *reports = kt_modules_reports(kt_tracer_modules(t));

    for (guint i = 0; i < reports->len; i++) {
        const KtReport *r = reports->pdata[i];

        if (!fn(&r->head, opaque)) {
            return;
        }
    }
}

static const KtReport *find_report(KtTracer *t, uint64_t id)
{
    const GPtrArray *reports = kt_modules_reports(kt_tracer_modules(t));

    for (guint i = 0; i < reports->len; i++) {
        const KtReport *r = reports->pdata[i];

        if (r->head.id == id) {
            return r;
        }
    }
    return NULL;
}

/** struct Same - search for a block of a report; @b: (out) the block */
typedef struct Same {
    const KtUnfreed *leak;
    KtBlock *b;
    bool found;
} Same;

static bool is_same(const KtBlock *b, void *opaque)
{
    Same *s = opaque;

    s->found = b->va == s->leak->va && b->state == KT_BLOCK_ALLOCATED &&
               !b->rcu_queued && b->alloc_us == s->leak->us &&
               b->alloc_stack.v == s->leak->stack.v;
    if (s->found) {
        *s->b = *b;
    }
    return !s->found;
}

/* Find the same block, not another one at the same address: a freed block of a
 * layer above can still be known in a page that is live. */
static bool is_still_there(KtTracer *t, const KtUnfreed *leak, KtBlock *b)
{
    Same s = { .leak = leak, .b = b };

    kt_query_range(t, leak->va, leak->va, is_same, &s);
    return s.found;
}

void kt_query_module_leaks(KtTracer *t, uint64_t id, KtBlockFn fn,
                           void *opaque)
{
    const KtReport *r = find_report(t, id);

    for (guint i = 0; r && i < r->leaks->len; i++) {
        KtBlock b;

        if (is_still_there(t, &g_array_index(r->leaks, KtUnfreed, i), &b) &&
            !fn(&b, opaque)) {
            return;
        }
    }
}

static bool has_id(const KtReport *r, uint64_t id)
{
    for (guint i = 0; i < r->errors->len; i++) {
        if (g_array_index(r->errors, uint64_t, i) == id) {
            return true;
        }
    }
    return false;
}

void kt_query_module_frees(KtTracer *t, uint64_t id, KtErrorFn fn,
                           void *opaque)
{
    const GArray *errors = t->model->errors.list;
    const KtReport *r = find_report(t, id);

    for (guint i = 0; r && r->errors->len && i < errors->len; i++) {
        const KtError *e = &g_array_index(errors, KtError, i);

        if (has_id(r, e->id) && !fn(e, opaque)) {
            return;
        }
    }
}

bool kt_query_module_loaded(KtTracer *t, const char *name)
{
    return kt_modules_is_loaded(kt_tracer_modules(t), name);
}
