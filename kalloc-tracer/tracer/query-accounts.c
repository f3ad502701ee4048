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

bool kt_query_accounts(KtTracer *t, const char *mark, KtBy by,
                       KtAccountFn fn, void *opaque)
{
    const KtAccounts *a = &t->model->accounts;
    const KtTables *tables = kt_accounts_tables(a, mark);
    const KtCells *c = tables ? &tables->by[by] : NULL;
    KtCells callers = { 0 };

    if (tables && by == KT_BY_CALLER) {
        kt_tables_callers(tables, &callers);
        c = &callers;
    }
    for (uint32_t id = 0; c && id < MAX(kt_cells_end(c), 1); id++) {
        KtAccount account = account_of(c, id);
        KtAccountKey key;

        if (kt_account_is_empty(&account)) {
            continue;
        }
        key = key_of(a, by, id);
        if (!fn(&key, &account, opaque)) {
            break;
        }
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
