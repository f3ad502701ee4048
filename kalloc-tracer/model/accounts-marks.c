/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Marks: copies of all accounts at a time that the user named. See accounts.h.
 */
#include "kalloc-tracer/model/accounts.h"

#include <string.h>

/* Copy a table. Return false if there is no memory. */
static bool cells_copy(KtCells *to, const KtCells *from)
{
    size_t chunk = kt_pool_chunk_bytes(&from->pool);

    to->pool.shift = from->pool.shift;
    to->rest = from->rest;
    if (kt_cells_end(from) &&
        !kt_pool_reserve(&to->pool, kt_cells_end(from) - 1)) {
        return false;
    }
    for (uint32_t i = 0; i < from->pool.n_chunks; i++) {
        memcpy(to->pool.chunk[i], from->pool.chunk[i], chunk);
    }
    return true;
}

static uint64_t held_bytes(const KtTables *t)
{
    return (uint64_t)t->held->len * sizeof(KtHeld);
}

void kt_mark_free(gpointer p)
{
    KtMark *mark = p;

    kt_budget_release(mark->budget, KT_MEM_ACCOUNTS,
                      held_bytes(&mark->tables));
    kt_tables_clear(&mark->tables);
    g_free(mark->name);
    g_free(mark);
}

static guint find_mark(const KtAccounts *a, const char *name)
{
    guint i = 0;

    while (i < a->marks->len &&
           strcmp(((KtMark *)a->marks->pdata[i])->name, name)) {
        i++;
    }
    return i;
}

/* Copy the current accounts as a mark. Return NULL if there is no memory. */
static KtMark *new_mark(const KtAccounts *a, const char *name)
{
    KtMark *p;
    bool ok = true;

    if (!kt_budget_take(a->budget, KT_MEM_ACCOUNTS, held_bytes(&a->now))) {
        return NULL;
    }
    p = g_new0(KtMark, 1);
    p->name = g_strdup(name);
    p->budget = a->budget;
    kt_tables_init(&p->tables, a->budget);
    p->tables.held = g_array_copy(a->now.held);
    p->tables.all = a->now.all;
    p->tables.totals = a->now.totals;
    for (unsigned i = KT_BY_KEPT; i < KT_BY__COUNT && ok; i++) {
        ok = cells_copy(&p->tables.by[i], &a->now.by[i]);
    }
    if (!ok) {
        g_clear_pointer(&p, kt_mark_free);
    }
    return p;
}

bool kt_accounts_set_mark(KtAccounts *a, const char *name, GError **errp)
{
    bool is_new = find_mark(a, name) == a->marks->len;
    KtMark *p;

    if (is_new && a->marks->len >= KT_MARKS_MAX) {
        g_set_error(errp, GS_ERROR, GS_ERROR_UNSUPPORTED,
                    "there are %d marks, no more can be kept; drop one",
                    KT_MARKS_MAX);
        return false;
    }
    p = new_mark(a, name);
    if (!p) {
        g_set_error(errp, GS_ERROR, GS_ERROR_UNSUPPORTED,
                    "no memory for it within the bound (mem=); drop a mark");
        return false;
    }
    kt_accounts_drop_mark(a, name);
    g_ptr_array_add(a->marks, p);
    return true;
}

bool kt_accounts_drop_mark(KtAccounts *a, const char *name)
{
    guint i = find_mark(a, name);

    if (i == a->marks->len) {
        return false;
    }
    g_ptr_array_remove_index(a->marks, i);
    return true;
}

const KtTables *kt_accounts_tables(const KtAccounts *a, const char *mark)
{
    guint i = mark ? find_mark(a, mark) : 0;

    if (!mark) {
        return &a->now;
    }
    return i < a->marks->len ? &((KtMark *)a->marks->pdata[i])->tables : NULL;
}
