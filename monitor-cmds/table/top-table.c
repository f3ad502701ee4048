/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tables of sums for ka top and ka diff, see top.h.
 *
 * Sums of modules are added up from those of stacks. Lifetimes are counted in
 * classes, four for each power of two, so a median is right within an eighth:
 *
 *   ... [64, 80) [80, 96) [96, 112) [112, 128) [128, 160) [160, 192) ...
 */
#include "monitor-cmds/table/top-table.h"

#include <string.h>

#define LIFE_CLASSES 192    /* for microseconds of 48 bits */

const McTopColumn mc_top_columns[MC_TOP__COUNT] = {
#define MC_TOP(key_, group_, unit_, help_) \
    [MC_TOP_##key_] = { .key = #key_, .group = MC_TOP_##group_, \
                        .help = help_ },
#include "monitor-cmds/table/top.def"
};

const char *mc_by_name(McBy by)
{
    static const char *const names[MC_BY__COUNT] = {
        [MC_BY_CALLER] = "caller", [MC_BY_STACK] = "stack",
        [MC_BY_CACHE] = "cache", [MC_BY_TASK] = "task",
        [MC_BY_MODULE] = "module", [MC_BY_SIZE] = "size",
    };

    return by < MC_BY__COUNT ? names[by] : "?";
}

KtBy mc_by_account(McBy by)
{
    return by == MC_BY_MODULE ? KT_BY_STACK : (KtBy)by;
}

/* ---- life ---------------------------------------------------------------- */

static void row_free(gpointer p)
{
    McTopRow *row = p;

    g_free(row->life);
    g_free(row);
}

McTopTable *mc_top_new(KtTracer *tracer, const GsKernel *kernel, McBy by)
{
    McTopTable *t = g_new0(McTopTable, 1);

    t->tracer = tracer;
    t->kernel = kernel;
    t->by = by;
    t->rows = g_hash_table_new_full(gs_number_hash, g_int64_equal, g_free,
                                    row_free);
    t->modules = g_hash_table_new_full(gs_number_hash, g_int64_equal, g_free,
                                       NULL);
    t->names = g_string_chunk_new(1024);
    return t;
}

void mc_top_free(McTopTable *t)
{
    g_hash_table_unref(t->rows);
    g_hash_table_unref(t->modules);
    g_string_chunk_free(t->names);
    g_free(t->all.life);
    g_free(t);
}

/* ---- keys ---------------------------------------------------------------- */

static void set_caller(KtTracer *t, KtStackId stack, KtAccountKey *key)
{
    unsigned n = 0;
    GsStop stop;
    const uint64_t *pc = stack.v ? kt_tracer_stack(t, stack, &n, &stop) :
                                   NULL;

    if (pc && n) {
        key->pc = pc[0];
        key->era = kt_tracer_stack_era(t, stack).first;
    }
}

uint64_t mc_top_caller_number(uint64_t pc, uint32_t era)
{
    return pc ^ (uint64_t)era << 40;
}

/* Return the name of the module that a frame is in, "" if it is in the kernel,
 * "?" if no symbol covers it. Equal names have the same pointer, valid as long
 * as the table. */
static const char *module_at(McTopTable *t, uint64_t pc, uint32_t era)
{
    uint64_t number = mc_top_caller_number(pc, era);
    const char *name = g_hash_table_lookup(t->modules, &number);
    GsSymbol sym;

    if (!name) {
        name = !gs_kernel_symbolize_at(t->kernel, pc - 1, era, &sym) ? "?" :
               sym.module ? g_string_chunk_insert_const(t->names, sym.module) :
                            "";
        g_hash_table_insert(t->modules, g_memdup2(&number, sizeof(number)),
                            (char *)name);
    }
    return name;
}

/* Return the name of the module that caused an allocation: that of the first
 * frame that is not in the kernel. "?": no symbol covers that frame. */
static const char *module_of(McTopTable *t, KtStackId stack)
{
    unsigned n = 0;
    GsStop stop;
    const uint64_t *pc;

    if (!stack.v || !t->kernel) {
        return "?";
    }
    pc = kt_tracer_stack(t->tracer, stack, &n, &stop);
    for (unsigned i = 0; pc && i < n; i++) {
        const char *name = module_at(
            t, pc[i], kt_tracer_stack_era(t->tracer, stack).all);

        if (*name) {
            return name;
        }
    }
    return pc && n ? "kernel" : "?";
}

static KtCacheId same_cache(KtTracer *t, KtTracer *from, KtCacheId id)
{
    KtCacheInfo want, info;

    if (!kt_tracer_cache(from, id, &want)) {
        return (KtCacheId) { 0 };
    }
    for (unsigned i = 1; kt_tracer_cache(t, (KtCacheId) { i }, &info) &&
                         i < UINT16_MAX; i++) {
        if (info.va == want.va && !g_strcmp0(info.name, want.name)) {
            return (KtCacheId) { i };
        }
    }
    return (KtCacheId) { 0 };
}

/* Translate a key of another tracer to the ids of this one. */
static KtAccountKey translate(KtTracer *t, KtTracer *from,
                              const KtAccountKey *key)
{
    KtAccountKey k = *key;
    unsigned n = 0;
    GsStop stop;
    const uint64_t *pc;
    uint32_t pid;
    char comm[17];

    if (t == from) {
        return k;
    }
    if (k.stack.v) {
        pc = kt_tracer_stack(from, k.stack, &n, &stop);
        k.stack = kt_tracer_intern_stack_of(
            t, pc, n, stop, kt_tracer_stack_era(from, k.stack));
    }
    if (k.task.v) {
        k.task.v = 0;
        if (kt_tracer_task(from, key->task, &pid, comm)) {
            k.task = kt_tracer_intern_task(t, pid, comm);
        }
    }
    k.cache = k.cache.v ? same_cache(t, from, k.cache) : k.cache;
    return k;
}

static uint64_t number_of(const McTopTable *t, const KtAccountKey *key,
                          const char *module)
{
    switch (t->by) {
    case MC_BY_CALLER:
        return mc_top_caller_number(key->pc, key->era);
    case MC_BY_STACK:
        return key->stack.v;
    case MC_BY_CACHE:
        return key->cache.v ? (uint64_t)key->cache.v << 8 :
               key->layer | (uint64_t)key->backing << 7;
    case MC_BY_TASK:
        return key->task.v;
    case MC_BY_SIZE:
        return key->hi;
    default:
        return (uintptr_t)module;
    }
}

static McTopRow *row_at(McTopTable *t, const KtAccountKey *key, bool make)
{
    const char *module = t->by == MC_BY_MODULE ? module_of(t, key->stack) :
                                                NULL;
    uint64_t number = number_of(t, key, module);
    McTopRow *row = g_hash_table_lookup(t->rows, &number);
    uint64_t *copy;

    if (row || !make) {
        return row;
    }
    row = g_new0(McTopRow, 1);
    row->key = *key;
    row->module = module;
    row->peak_known = row->cross_known = true;
    copy = g_new(uint64_t, 1);
    *copy = number;
    g_hash_table_insert(t->rows, copy, row);
    return row;
}

const McTopRow *mc_top_row(McTopTable *t, const KtAccountKey *key)
{
    return row_at(t, key, true);
}

static KtAccountKey key_of_block(const McTopTable *t, const KtBlock *b)
{
    KtAccountKey key = {
        .by = mc_by_account(t->by),
        .backing = kt_query_is_backing(t->tracer, b),
    };

    switch (t->by) {
    case MC_BY_STACK:
    case MC_BY_MODULE:
        key.stack = b->alloc_stack;
        break;
    case MC_BY_CACHE:
        key.cache = b->cache;
        key.layer = b->layer;
        break;
    case MC_BY_TASK:
        key.task = b->alloc_task;
        break;
    case MC_BY_SIZE:
        kt_size_class_of(b->requested, &key.lo, &key.hi);
        break;
    default:
        set_caller(t->tracer, b->alloc_stack, &key);
        break;
    }
    return key;
}

/* ---- amounts ------------------------------------------------------------- */

static void add_amounts(KtAccount *to, const KtAccount *a, uint64_t sign)
{
    to->allocs += sign * a->allocs;
    to->asked += sign * a->asked;
    to->reserved += sign * a->reserved;
    to->frees += sign * a->frees;
    to->freed_asked += sign * a->freed_asked;
    to->freed_reserved += sign * a->freed_reserved;
    to->cross += sign * a->cross;
}

/* Add an account to its row, or subtract it. If a row is the sum of several
 * accounts, its peak is unknown, because their peaks are of different times.
 * Rows of modules are without pages in which blocks of other layers lie. */
void mc_top_add(McTopTable *t, KtTracer *from, const KtAccountKey *key,
                const KtAccount *a, bool subtract)
{
    KtAccountKey ours = translate(t->tracer, from, key);
    McTopRow *row;

    if (t->by == MC_BY_MODULE && key->backing) {
        return;
    }
    row = row_at(t, &ours, true);
    row->peak_known = !t->diff && !row->a.allocs && row->peak_known;
    row->a.peak = a->peak;
    add_amounts(&row->a, a, subtract ? UINT64_MAX : 1);
}

static unsigned life_class(uint64_t us)
{
    unsigned bits;

    if (us < 4) {
        return us;
    }
    bits = 63 - __builtin_clzll(us);
    return MIN((bits - 1) * 4 + (us >> (bits - 2) & 3), LIFE_CLASSES - 1);
}

/* Return the middle of a class. */
static uint64_t life_of(unsigned class)
{
    unsigned bits = class / 4 + 1;
    uint64_t from;

    if (class < 4) {
        return class;
    }
    from = ((uint64_t)4 + class % 4) << (bits - 2);
    return from + ((uint64_t)1 << (bits - 2)) / 2;
}

static void count_life(McTopRow *row, const KtBlock *b)
{
    if (b->state == KT_BLOCK_ALLOCATED && !b->past) {
        row->since = row->any_live ? MIN(row->since, b->alloc_us) :
                                     b->alloc_us;
        row->any_live = true;
    } else if (b->state == KT_BLOCK_FREED && b->free_us >= b->alloc_us) {
        if (!row->life) {
            row->life = g_new0(uint32_t, LIFE_CLASSES);
        }
        row->life[life_class(b->free_us - b->alloc_us)]++;
        row->ends++;
    }
}

static void count_amounts(McTopRow *row, const KtBlock *b)
{
    bool live = b->state == KT_BLOCK_ALLOCATED && !b->past;

    row->peak_known = row->cross_known = false;
    row->a.allocs++;
    row->a.asked += b->requested;
    row->a.reserved += kt_block_len(b);
    if (!live) {
        row->a.frees++;
        row->a.freed_asked += b->requested;
        row->a.freed_reserved += kt_block_len(b);
    }
}

void mc_top_count(McTopTable *t, const KtBlock *b, bool amounts)
{
    KtAccountKey key = key_of_block(t, b);
    bool in_sums = !key.backing || t->one_layer;
    McTopRow *row = NULL;

    if (in_sums || t->by == MC_BY_STACK || t->by == MC_BY_CACHE) {
        row = row_at(t, &key, amounts);
    }
    if (row && amounts) {
        count_amounts(row, b);
    }
    if (row) {
        count_life(row, b);
    }
    if (row && in_sums) {
        count_life(&t->all, b);
    }
    if (in_sums && amounts) {
        count_amounts(&t->all, b);
    }
}

static bool put(int64_t *out, uint64_t v)
{
    *out = v;
    return true;
}

static bool median(const McTopRow *row, int64_t *out)
{
    uint64_t n = 0;

    for (unsigned i = 0; row->life && i < LIFE_CLASSES; i++) {
        n += row->life[i];
        if (n * 2 >= row->ends && n) {
            return put(out, life_of(i));
        }
    }
    return false;
}

bool mc_top_value(const McTopTable *t, const McTopRow *row, McTopId id,
                  int64_t *out)
{
    const KtAccount *a = &row->a;
    uint64_t live = a->reserved - a->freed_reserved;
    uint64_t live_asked = a->asked - a->freed_asked;

    switch (id) {
    case MC_TOP_live:
        return put(out, live);
    case MC_TOP_blocks:
        return put(out, a->allocs - a->frees);
    case MC_TOP_slack:
        return put(out, live - live_asked);
    case MC_TOP_peak:
        return row->peak_known && put(out, a->peak);
    case MC_TOP_allocs:
        return put(out, a->allocs);
    case MC_TOP_asked:
        return put(out, a->asked);
    case MC_TOP_frees:
        return put(out, a->frees);
    case MC_TOP_freed:
        return put(out, a->freed_asked);
    case MC_TOP_cross:
        return row->cross_known && put(out, a->cross);
    case MC_TOP_life:
        return median(row, out);
    case MC_TOP_oldest:
        /* blocks can be newer, because the VM runs during the count */
        return row->any_live &&
               put(out, t->all.now - MIN(row->since, t->all.now));
    case MC_TOP_live_asked:
        return put(out, live_asked);
    case MC_TOP_reserved:
        return put(out, a->reserved);
    case MC_TOP_freed_reserved:
        return put(out, a->freed_reserved);
    case MC_TOP__COUNT:
        break;
    }
    return false;
}

bool mc_top_is_sum(McTopId id)
{
    return id != MC_TOP_peak && id != MC_TOP_life && id != MC_TOP_oldest;
}

bool mc_top_shows(const McTopTable *t, McTopId id, bool verbose)
{
    switch (mc_top_columns[id].group) {
    case MC_TOP_TOP:
        return !t->diff;
    case MC_TOP_V:
        return verbose;
    default:
        return true;
    }
}

/* ---- order --------------------------------------------------------------- */

typedef struct Order {
    const McTopTable *t;
    McTopId sort;
} Order;

int mc_top_compare_stacks(KtTracer *t, KtStackId a, KtStackId b)
{
    unsigned n = 0, m = 0;
    GsStop stop;
    const uint64_t *x = kt_tracer_stack(t, a, &n, &stop);
    const uint64_t *y = kt_tracer_stack(t, b, &m, &stop);

    for (unsigned i = 0; x && y && i < MIN(n, m); i++) {
        if (x[i] != y[i]) {
            return x[i] < y[i] ? -1 : 1;
        }
    }
    return n < m ? -1 : n > m;
}

static int compare_tasks(KtTracer *t, KtTaskId a, KtTaskId b)
{
    uint32_t x = 0, y = 0;
    char one[17] = "", other[17] = "";

    kt_tracer_task(t, a, &x, one);
    kt_tracer_task(t, b, &y, other);
    return x != y ? (x < y ? -1 : 1) : strcmp(one, other);
}

static int compare_caches(KtTracer *t, const KtAccountKey *a,
                          const KtAccountKey *b)
{
    KtCacheInfo x = { 0 }, y = { 0 };
    int names;

    kt_tracer_cache(t, a->cache, &x);
    kt_tracer_cache(t, b->cache, &y);
    names = g_strcmp0(x.name, y.name);
    if (names) {
        return names;
    }
    if (x.va != y.va) {
        return x.va < y.va ? -1 : 1;
    }
    if (a->layer != b->layer) {
        return a->layer < b->layer ? -1 : 1;
    }
    return a->backing - b->backing;
}

/* Compare keys by what is printed. Ids differ between a tracer and the reader
 * of its journal. */
static int compare_keys(const McTopTable *t, const McTopRow *a,
                        const McTopRow *b)
{
    switch (t->by) {
    case MC_BY_STACK:
        return mc_top_compare_stacks(t->tracer, a->key.stack, b->key.stack);
    case MC_BY_TASK:
        return compare_tasks(t->tracer, a->key.task, b->key.task);
    case MC_BY_CACHE:
        return compare_caches(t->tracer, &a->key, &b->key);
    case MC_BY_MODULE:
        return strcmp(a->module, b->module);
    case MC_BY_SIZE:
        return a->key.hi < b->key.hi ? -1 : a->key.hi > b->key.hi;
    default:
        if (a->key.pc != b->key.pc) {
            return a->key.pc < b->key.pc ? -1 : 1;
        }
        return a->key.era < b->key.era ? -1 : a->key.era > b->key.era;
    }
}

static gint compare_rows(gconstpointer x, gconstpointer y, gpointer opaque)
{
    const McTopRow *a = *(McTopRow *const *)x;
    const McTopRow *b = *(McTopRow *const *)y;
    const Order *o = opaque;
    int64_t p = 0, q = 0;
    bool has = mc_top_value(o->t, a, o->sort, &p);
    bool other = mc_top_value(o->t, b, o->sort, &q);

    if (has != other) {
        return has ? -1 : 1;
    }
    return p != q ? (p > q ? -1 : 1) : compare_keys(o->t, a, b);
}

static bool is_same(const KtAccount *a)
{
    return !a->allocs && !a->asked && !a->reserved && !a->frees &&
           !a->freed_asked && !a->freed_reserved && !a->cross;
}

GPtrArray *mc_top_sorted(const McTopTable *t, McTopId sort)
{
    GPtrArray *list = g_ptr_array_new();
    Order o = { t, sort };
    GHashTableIter it;
    gpointer row;

    g_hash_table_iter_init(&it, t->rows);
    while (g_hash_table_iter_next(&it, NULL, &row)) {
        if (!t->diff || !is_same(&((McTopRow *)row)->a)) {
            g_ptr_array_add(list, row);
        }
    }
    g_ptr_array_sort_with_data(list, compare_rows, &o);
    return list;
}
