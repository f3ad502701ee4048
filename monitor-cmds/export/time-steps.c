/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Time steps: see timeline.h. */
#include "monitor-cmds/export/timeline.h"

#include <string.h>

/** struct Cell - what an account got in a step */
typedef struct Cell {
    unsigned step;
    int64_t value[MC_STEP__COUNT];
} Cell;

/** struct Series - an account. @last: its sums at the last pause; @cell: Cell,
 *  in the order of steps; @rank: its row in ka top, known at the end */
typedef struct Series {
    KtAccountKey key;
    int64_t last[MC_STEP__COUNT];
    GArray *cell;
    unsigned rank;
} Series;

/**
 * struct McTimeSteps - all accounts over time
 * @series: of each KtBy: number of an account -> Series
 * @module_rank: Series of a stack -> the row of its module
 * @step: the step of the events since the last pause
 * @cells: of all accounts
 */
struct McTimeSteps {
    GHashTable *series[KT_BY__COUNT];
    GHashTable *module_rank;
    uint64_t origin, width;
    unsigned step;
    uint64_t cells;
    bool begun;
};

const char *mc_step_value_name(McStepValue v)
{
    static const char *const names[MC_STEP__COUNT] = {
        [MC_STEP_ALLOCS] = "allocs", [MC_STEP_RESERVED] = "reserved",
        [MC_STEP_FREES] = "frees",
        [MC_STEP_FREED_RESERVED] = "freed_reserved",
    };

    return names[v];
}

/* ---- life ---------------------------------------------------------------- */

static void free_series(gpointer p)
{
    Series *s = p;

    g_array_unref(s->cell);
    g_free(s);
}

McTimeSteps *mc_time_steps_new(void)
{
    McTimeSteps *s = g_new0(McTimeSteps, 1);

    for (unsigned i = 0; i < KT_BY__COUNT; i++) {
        s->series[i] = g_hash_table_new_full(gs_number_hash, g_int64_equal,
                                             g_free, free_series);
    }
    s->module_rank = g_hash_table_new(NULL, NULL);
    s->width = 1;
    return s;
}

void mc_time_steps_free(McTimeSteps *s)
{
    if (!s) {
        return;
    }
    for (unsigned i = 0; i < KT_BY__COUNT; i++) {
        g_hash_table_unref(s->series[i]);
    }
    g_hash_table_unref(s->module_rank);
    g_free(s);
}

void mc_time_steps_restart(McTimeSteps *s)
{
    for (unsigned i = 0; i < KT_BY__COUNT; i++) {
        g_hash_table_remove_all(s->series[i]);
    }
    s->origin = 0;
    s->width = 1;
    s->step = 0;
    s->cells = 0;
    s->begun = false;
}

/* ---- reading sums -------------------------------------------------------- */

static uint64_t number_of(const KtAccountKey *key)
{
    switch (key->by) {
    case KT_BY_CALLER:
        return mc_top_caller_number(key->pc, key->era);
    case KT_BY_STACK:
        return key->stack.v;
    case KT_BY_CACHE:
        return key->cache.v ? (uint64_t)key->cache.v << 8 :
               key->layer | (uint64_t)key->backing << 7;
    case KT_BY_TASK:
        return key->task.v;
    default:
        return key->hi;
    }
}

static Series *series_of(McTimeSteps *s, const KtAccountKey *key)
{
    uint64_t number = number_of(key);
    Series *found = g_hash_table_lookup(s->series[key->by], &number);

    if (!found) {
        found = g_new0(Series, 1);
        found->key = *key;
        found->cell = g_array_new(FALSE, FALSE, sizeof(Cell));
        g_hash_table_insert(s->series[key->by],
                            g_memdup2(&number, sizeof(number)), found);
    }
    return found;
}

/* Keep what an account got since the last pause. */
static bool add_cell(const KtAccountKey *key, const KtAccount *a, void *opaque)
{
    McTimeSteps *s = opaque;
    Series *series = series_of(s, key);
    const int64_t now[MC_STEP__COUNT] = {
        [MC_STEP_ALLOCS] = a->allocs, [MC_STEP_RESERVED] = a->reserved,
        [MC_STEP_FREES] = a->frees,
        [MC_STEP_FREED_RESERVED] = a->freed_reserved,
    };
    Cell c = { .step = s->step };

    if (!memcmp(now, series->last, sizeof(now))) {
        return true;
    }
    for (unsigned i = 0; i < MC_STEP__COUNT; i++) {
        c.value[i] = now[i] - series->last[i];
    }
    memcpy(series->last, now, sizeof(now));
    g_array_append_val(series->cell, c);
    s->cells++;
    return true;
}

static void read_sums(McTimeSteps *s, KtTracer *t)
{
    kt_query_begin(t);
    for (unsigned by = 0; by < KT_BY__COUNT; by++) {
        kt_query_accounts(t, NULL, by, add_cell, s);
    }
    kt_query_end(t);
}

/* ---- steps --------------------------------------------------------------- */

/* Return the number of a step after two of them became one. */
static unsigned joined(unsigned step)
{
    return step ? 1 + (step - 1) / 2 : 0;
}

static void join_series(McTimeSteps *s, GArray *cell)
{
    unsigned n = 0;

    for (unsigned i = 0; i < cell->len; i++) {
        Cell c = g_array_index(cell, Cell, i);
        Cell *last = n ? &g_array_index(cell, Cell, n - 1) : NULL;

        c.step = joined(c.step);
        if (!last || last->step != c.step) {
            g_array_index(cell, Cell, n++) = c;
            continue;
        }
        for (unsigned v = 0; v < MC_STEP__COUNT; v++) {
            last->value[v] += c.value[v];
        }
    }
    s->cells -= cell->len - n;
    g_array_set_size(cell, n);
}

void mc_time_steps_join(McTimeSteps *s)
{
    for (unsigned by = 0; by < KT_BY__COUNT; by++) {
        GHashTableIter it;
        gpointer series;

        g_hash_table_iter_init(&it, s->series[by]);
        while (g_hash_table_iter_next(&it, NULL, &series)) {
            join_series(s, ((Series *)series)->cell);
        }
    }
    s->width *= 2;
    s->step = joined(s->step);
}

uint64_t mc_time_steps_pause(McTimeSteps *s, KtTracer *t, uint64_t us)
{
    read_sums(s, t);
    if (!s->begun) {
        s->begun = true;
        s->origin = us;
    }
    while ((us - s->origin) / s->width >= MC_TIME_STEPS ||
           (s->cells > MC_TIME_CELLS && s->step > 1)) {
        mc_time_steps_join(s);
    }
    s->step = 1 + (us - s->origin) / s->width;
    return s->origin + s->step * s->width;
}

McStepSpan mc_time_steps_span(const McTimeSteps *s)
{
    return (McStepSpan) { s->origin, s->width, s->step };
}

/* ---- rows ---------------------------------------------------------------- */

static bool add_to_table(const KtAccountKey *key, const KtAccount *a,
                         void *opaque)
{
    McTopTable *table = opaque;

    mc_top_add(table, table->tracer, key, a, false);
    return true;
}

/* (owned) The places of rows in the order of ka top, from 1 on. */
static GHashTable *ranks_of(const McTopTable *table)
{
    g_autoptr(GPtrArray) rows = mc_top_sorted(table, MC_TOP_live);
    GHashTable *ranks = g_hash_table_new(NULL, NULL);

    for (unsigned i = 0; i < rows->len; i++) {
        g_hash_table_insert(ranks, rows->pdata[i], GUINT_TO_POINTER(i + 1));
    }
    return ranks;
}

/* Find the places of all accounts in the order of ka top. */
static void rank(McTimeSteps *s, KtTracer *t, const GsKernel *kernel, McBy by)
{
    KtBy from = mc_by_account(by);
    g_autoptr(McTopTable) table = mc_top_new(t, kernel, by);
    g_autoptr(GHashTable) ranks = NULL;
    GHashTableIter it;
    gpointer p;

    kt_query_begin(t);
    kt_query_accounts(t, NULL, from, add_to_table, table);
    kt_query_end(t);
    ranks = ranks_of(table);
    g_hash_table_iter_init(&it, s->series[from]);
    while (g_hash_table_iter_next(&it, NULL, &p)) {
        Series *series = p;
        gpointer place = g_hash_table_lookup(ranks,
                                             mc_top_row(table, &series->key));

        if (by != MC_BY_MODULE) {
            series->rank = GPOINTER_TO_UINT(place);
        } else if (!series->key.backing) {
            g_hash_table_insert(s->module_rank, series, place);
        }
    }
}

void mc_time_steps_end(McTimeSteps *s, KtTracer *t, const GsKernel *kernel)
{
    read_sums(s, t);
    for (McBy by = 0; by < MC_BY__COUNT; by++) {
        if (by != MC_BY_MODULE || kernel) {
            rank(s, t, kernel, by);
        }
    }
}

static gint compare_cells(gconstpointer a, gconstpointer b)
{
    const McStepCell *x = a, *y = b;

    return x->row != y->row ? (x->row < y->row ? -1 : 1) :
           (x->step > y->step) - (x->step < y->step);
}

/* Add up the cells of the same row and step, which are neighbours. */
static void merge_cells(GArray *list)
{
    McStepCell *c = (McStepCell *)list->data;
    unsigned n = 0;

    for (unsigned i = 0; i < list->len; i++) {
        if (!n || compare_cells(&c[n - 1], &c[i])) {
            c[n++] = c[i];
            continue;
        }
        for (unsigned v = 0; v < MC_STEP__COUNT; v++) {
            c[n - 1].value[v] += c[i].value[v];
        }
    }
    g_array_set_size(list, n);
}

GArray *mc_time_steps_cells(const McTimeSteps *s, McBy by)
{
    KtBy from = mc_by_account(by);
    GArray *list = g_array_new(FALSE, FALSE, sizeof(McStepCell));
    GHashTableIter it;
    gpointer p;

    g_hash_table_iter_init(&it, s->series[from]);
    while (g_hash_table_iter_next(&it, NULL, &p)) {
        const Series *series = p;
        unsigned place = by != MC_BY_MODULE ? series->rank :
            GPOINTER_TO_UINT(g_hash_table_lookup(s->module_rank, series));

        for (unsigned i = 0; place && i < series->cell->len; i++) {
            const Cell *c = &g_array_index(series->cell, Cell, i);
            McStepCell new = { .row = place - 1, .step = c->step };

            memcpy(new.value, c->value, sizeof(new.value));
            g_array_append_val(list, new);
        }
    }
    g_array_sort(list, compare_cells);
    merge_cells(list);
    return list;
}
