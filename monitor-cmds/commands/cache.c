/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka cache: the caches of the slab allocator, with the kernel's numbers beside
 * the map's; of one cache its lists of free objects.
 *
 * Called through mc_run(). The VM is paused meanwhile. The lists are read
 * first; then blocks are copied in batches under the tracer's lock, and printed
 * without it.
 */
#include "monitor-cmds/commands/commands.h"

#include <string.h>

#define OPTION(id) (1ull << MC_OPT_##id)
/* Options without a name. */
#define OPTIONS_OF_ALL \
    (OPTION(SYMBOLS) | OPTION(JSON) | OPTION(LIMIT) | OPTION(VERBOSE) | \
     OPTION(SORT) | OPTION(HELP))
/* Problems that are printed. */
#define PROBLEMS_MAX 1000u

/** struct List - a list that was walked; its objects are from @begin on */
typedef struct List {
    KtSlabList list;
    unsigned begin, end;
} List;

/** struct Problem - a problem, with copies of what it refers to */
typedef struct Problem {
    KtSlabProblem problem;
    KtSlabList list;
    KtSlab slab;
} Problem;

/**
 * struct Show - state of the command
 * @sort: (nullable) the column of --sort
 * @live: id of a cache -> live blocks (owned uint64_t)
 * @caches: KtSlabCache, those to print
 * @c: (borrowed) the cache that is walked
 * @walked: all its lists could be walked, those of unknown CPUs aside
 * @sum, @lists, @objects, @problems: of it: List, McSlotAt, Problem
 */
typedef struct Show {
    McOut *out;
    const McArgs *args;
    KtSlabs *s;
    const McColumn *sort;
    GHashTable *live;
    GArray *caches;
    const KtSlabCache *c;
    bool walked;
    KtSlabSum sum;
    GArray *lists, *objects, *problems;
} Show;

static void show_init(Show *s, McOut *out, const McArgs *args)
{
    *s = (Show) {
        .out = out, .args = args,
        .live = g_hash_table_new_full(g_direct_hash, g_direct_equal, NULL,
                                      g_free),
        .caches = g_array_new(FALSE, FALSE, sizeof(KtSlabCache)),
        .lists = g_array_new(FALSE, FALSE, sizeof(List)),
        .objects = mc_slots_new(),
        .problems = g_array_new(FALSE, FALSE, sizeof(Problem)),
    };
}

static void show_deinit(Show *s)
{
    g_clear_pointer(&s->s, kt_slabs_free);
    g_clear_pointer(&s->live, g_hash_table_unref);
    g_clear_pointer(&s->caches, g_array_unref);
    g_clear_pointer(&s->lists, g_array_unref);
    g_clear_pointer(&s->objects, g_array_unref);
    g_clear_pointer(&s->problems, g_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Show, show_deinit)

/* ---- the map ------------------------------------------------------------- */

static bool add_live(const KtAccountKey *key, const KtAccount *a, void *opaque)
{
    uint64_t n = a->allocs - a->frees;

    if (key->cache.v) {
        g_hash_table_insert(opaque, GUINT_TO_POINTER(key->cache.v),
                            g_memdup2(&n, sizeof(n)));
    }
    return true;
}

static void find_live(Show *s)
{
    KtTracer *t = s->out->ctx->tracer;

    kt_query_begin(t);
    kt_query_accounts(t, NULL, KT_BY_CACHE, add_live, s->live);
    kt_query_end(t);
}

static uint64_t live_of(const Show *s, KtCacheId id)
{
    const uint64_t *n = g_hash_table_lookup(s->live, GUINT_TO_POINTER(id.v));

    return n ? *n : 0;
}

/* ---- names --------------------------------------------------------------- */

static bool append_alias(const KtCacheAlias *alias, void *opaque)
{
    g_ptr_array_add(opaque, g_strdup(alias->name));
    return true;
}

/* Return (owned) the other names of a cache, with a NULL at the end. */
static GPtrArray *aliases_of(const Show *s, uint64_t va)
{
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);

    kt_cache_aliases(s->out->ctx->tracer, va, append_alias, names);
    g_ptr_array_add(names, NULL);
    return names;
}

static bool has_alias(const Show *s, uint64_t va, const char *name)
{
    g_autoptr(GPtrArray) names = aliases_of(s, va);

    return g_strv_contains((const char *const *)names->pdata, name);
}

MC_OBJECTS(mc_cache_objects, &mc_cache_object, &mc_named_cache_object,
           &mc_free_list_object, &mc_list_problem_object,
           &mc_slab_letters_object, &mc_slot_object, &mc_unseen_object);

/* ---- which caches -------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    const KtSlabCache *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    return order ? order : (x->va > y->va) - (x->va < y->va);
}

static bool is_named(const Show *s, uint64_t va, const char *own)
{
    const char *name = s->args->name;

    return !name || !strcmp(own, name) || has_alias(s, va, name);
}

/* Add the caches with this name, or all of them. */
static void choose_named(Show *s)
{
    g_autoptr(GArray) va = kt_slabs_caches(s->s);
    KtSlabCache c;

    for (unsigned i = 0; i < va->len; i++) {
        if (kt_slabs_cache(s->s, g_array_index(va, uint64_t, i), &c) &&
            is_named(s, c.va, c.name)) {
            g_array_append_val(s->caches, c);
        }
    }
    g_array_sort(s->caches, by_name);
}

/* Add the cache at an address, or that of the slab with the address. */
static void choose_at(Show *s, uint64_t va)
{
    KtSlabCache c;
    KtSlab slab;

    if (kt_slabs_cache(s->s, va, &c) ||
        (kt_slabs_slab_of(s->s, va, &slab) && slab.is_slab &&
         kt_slabs_cache(s->s, slab.cache, &c))) {
        g_array_append_val(s->caches, c);
    }
}

static bool choose(Show *s, GError **errp)
{
    const char *name = s->args->name;
    g_autofree char *quoted = NULL;
    uint64_t va;

    choose_named(s);
    if (name && !s->caches->len &&
        mc_parse_address(s->out->ctx, name, &va, NULL)) {
        choose_at(s, va);
    }
    if (!s->caches->len) {
        quoted = name ? mc_quote(name) : NULL;
        mc_fail_unknown(errp, "%s%s", name ? quoted : "no cache was found",
                        name ? ": no cache of that name, and no address of "
                               "one; ka cache lists them" : "");
    }
    return s->caches->len;
}

/* ---- walking ------------------------------------------------------------- */

static bool wants_list(const Show *s, const KtSlabList *l)
{
    bool of_cpu = !strcmp(kt_slab_list_owner(l->kind), "cpu");
    McOptionId option = of_cpu ? MC_OPT_CPU : MC_OPT_NODE;
    McOptionId other = of_cpu ? MC_OPT_NODE : MC_OPT_CPU;

    if (mc_given(s->args, option)) {
        return (of_cpu && s->args->all_cpus) ||
               l->number == (of_cpu ? s->args->cpu : s->args->node);
    }
    return !mc_given(s->args, other);
}

static void on_object(void *opaque, const KtSlabList *l, const KtFreeObject *f)
{
    Show *s = opaque;
    McSlotAt slot = { .va = f->va, .number = f->slot };

    kt_slab_sum_object(&s->sum, l);
    if (s->out->verbose && s->args->name && wants_list(s, l)) {
        g_autofree char *list = mc_slab_list_text(l->kind, l->number);

        slot.list = g_strdup_printf("%s:%" PRIu64, list, f->position);
        g_array_append_val(s->objects, slot);
    }
}

static void on_slab(void *opaque, const KtSlabList *l, const KtSlab *slab)
{
    Show *s = opaque;

    kt_slab_sum_slab(&s->sum, l, slab);
}

static void on_list(void *opaque, const KtSlabList *l)
{
    Show *s = opaque;
    List list = { .list = *l, .end = s->objects->len };

    list.begin = s->lists->len ?
                     g_array_index(s->lists, List, s->lists->len - 1).end :
                     0;
    if (wants_list(s, l) && (l->parts || l->objects)) {
        g_array_append_val(s->lists, list);
    }
}

static void on_problem(void *opaque, const KtSlabProblem *p)
{
    Show *s = opaque;
    Problem copy = { .problem = *p, .list = *p->list };

    if (p->slab) {
        copy.slab = *p->slab;
    }
    if (wants_list(s, p->list) && s->problems->len < PROBLEMS_MAX) {
        g_array_append_val(s->problems, copy);
    }
}

static void walk(Show *s, const KtSlabCache *c)
{
    static const KtSlabOps ops = {
        .object = on_object, .slab = on_slab, .list = on_list,
        .problem = on_problem,
    };

    s->c = c;
    s->sum = (KtSlabSum) { .listed = 0 };
    g_array_set_size(s->lists, 0);
    g_array_set_size(s->objects, 0);
    g_array_set_size(s->problems, 0);
    kt_slabs_numbers(s->s, c, &s->sum.kernel);
    s->walked = kt_slabs_walk(s->s, c, &ops, s);
}

/* ---- printing a cache ---------------------------------------------------- */

/* Print a row with the other names of the cache. The list of all caches is
 * kept short. */
static void print_row(const Show *s, const McObject *object, McCacheRow *row)
{
    g_autoptr(GPtrArray) names = aliases_of(s, row->va);
    g_autofree char *joined = g_strjoinv(",", (char **)names->pdata);

    if (*joined) {
        row->aliases = (const char *const *)names->pdata;
        row->names = s->args->name || s->out->verbose ? joined : NULL;
    }
    mc_print(s->out, object, row);
}

/* Print at most @limit rows, in the order of --sort. */
static void print_rows(const Show *s, const McObject *object, GArray *rows,
                       uint64_t limit)
{
    if (s->sort) {
        mc_sort_rows(s->out, s->sort, rows);
    }
    for (unsigned i = 0; mc_goes_on(s->out, i, rows->len, limit); i++) {
        print_row(s, object, &g_array_index(rows, McCacheRow, i));
    }
}

/* Return the row of the cache that was walked. */
static McCacheRow row_of(const Show *s)
{
    const KtSlabCache *c = s->c;
    const KtSlabSum *sum = &s->sum;
    uint64_t all = sum->kernel.objects;
    bool complete = s->walked && kt_slabs_knows_cpus(s->s);
    KtCacheId id;
    uint64_t live = kt_slabs_map_id(s->s, c, &id) ? live_of(s, id) : 0;

    return (McCacheRow) {
        .va = c->va, .name = c->name, .object_size = c->object_size,
        .size = c->size, .slabs = sum->kernel.slabs, .live = live,
        .free = complete ? sum->free : KT_NO_COUNT,
        .transit = all - live - sum->free,
        .transit_known = complete && all != KT_NO_COUNT, .rcu = sum->rcu,
        .active_objs = all != KT_NO_COUNT ? all - sum->partial_free :
                                            KT_NO_COUNT,
        .num_objs = all, .c = c, .merged = c->users > 1 ? c->users : 0,
    };
}

/* ---- printing lists ------------------------------------------------------ */

static void print_list(const Show *s, const KtSlabList *l)
{
    g_autofree char *list = mc_slab_list_text(l->kind, l->number);
    const char *owner = kt_slab_list_owner(l->kind);
    const char *units = kt_slab_list_parts(l->kind);
    bool sheaf = !strcmp(units, "sheaves") && !strcmp(owner, "cpu");

    mc_print(s->out, &mc_free_list_object, &(McFreeListRow) {
        .owner = owner, .name = kt_slab_list_name(l->kind),
        .number = l->number, .list = list, .l = l, .units = units,
        .capacity = sheaf ? s->c->sheaf_capacity : 0, .parts = l->parts,
        .free = l->objects, .next = l->first });
}

/* Print the objects of a list; the limit is for each list. */
static void print_objects(const Show *s, const List *l)
{
    uint64_t n = MIN(l->end - l->begin, s->args->limit);
    unsigned end = l->begin + n;

    for (unsigned i = l->begin, batch; i < end && !s->out->closed; i = batch) {
        batch = MIN(i + MC_BATCH_ROWS, end);
        mc_slots_find_blocks(s->out->ctx->tracer, s->objects, i, batch);
        for (unsigned j = i; j < batch && !s->out->closed; j++) {
            mc_slot_print(s->out, &g_array_index(s->objects, McSlotAt, j), 0,
                          false);
        }
    }
    if (end < l->end) {
        mc_more(s->out, l->end - end);
    }
}

/* Print how many slabs are on no list. */
static void print_full(const Show *s)
{
    const KtSlabSum *sum = &s->sum;

    if (sum->kernel.slabs != KT_NO_COUNT && kt_slabs_knows_cpus(s->s) &&
        sum->kernel.slabs > sum->listed && !mc_given(s->args, MC_OPT_CPU) &&
        !mc_given(s->args, MC_OPT_NODE)) {
        mc_print(s->out, &mc_free_list_object, &(McFreeListRow) {
            .list = "full", .parts = sum->kernel.slabs - sum->listed });
    }
}

static void print_problems(const Show *s)
{
    for (unsigned i = 0; i < s->problems->len && !s->out->closed; i++) {
        Problem *p = &g_array_index(s->problems, Problem, i);

        p->problem.list = &p->list;
        p->problem.slab = p->problem.slab ? &p->slab : NULL;
        mc_slab_print_problem(s->out, &p->problem);
    }
}

static void print_lists(const Show *s)
{
    s->out->margin = MC_MARGIN;
    for (unsigned i = 0; i < s->lists->len && !s->out->closed; i++) {
        const List *l = &g_array_index(s->lists, List, i);

        print_list(s, &l->list);
        print_objects(s, l);
    }
    print_full(s);
    print_problems(s);
    if (!s->walked) {
        mc_remark(s->out, "free pointers are stored in a way that "
                  "is not known: only sheaves are walked");
    }
    if (!kt_slabs_knows_cpus(s->s)) {
        mc_remark(s->out, "lists of CPUs: it is not known where "
                  "the memory of the CPUs is");
    }
}

/* ---- slabs as letters ---------------------------------------------------- */

static void print_letters(const Show *s)
{
    g_autoptr(KtSlabListing) l = kt_slab_listing_new(s->s, s->c);
    g_autoptr(GPtrArray) slabs = NULL;

    kt_slab_listing_add_map(l);
    slabs = kt_slab_listing_slabs(l);
    for (unsigned i = 0;
         mc_goes_on(s->out, i, slabs->len, s->args->limit); i++) {
        mc_slab_print_letters(s->out, s->s, s->c, slabs->pdata[i],
                              KT_NO_SLOT);
    }
}

/* ---- without types ------------------------------------------------------- */

/* Print the caches that events named, and their live blocks. */
static void print_named(const Show *s, const char *why)
{
    KtTracer *t = s->out->ctx->tracer;
    g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(McCacheRow));
    KtCacheInfo info;

    for (unsigned i = 1; i <= UINT16_MAX &&
                         kt_tracer_cache(t, (KtCacheId) { i }, &info); i++) {
        if (!info.destroyed && is_named(s, info.va, info.name)) {
            const McCacheRow row = {
                .va = info.va, .name = info.name,
                .object_size = info.object_size, .size = info.size,
                .live = live_of(s, (KtCacheId) { i }),
            };

            g_array_append_val(rows, row);
        }
    }
    print_rows(s, &mc_named_cache_object, rows, UINT64_MAX);
    mc_remark(s->out, why);
}

/* ---- the command --------------------------------------------------------- */

static void print_one(Show *s, const KtSlabCache *c)
{
    McCacheRow row;

    walk(s, c);
    row = row_of(s);
    print_row(s, &mc_cache_object, &row);
    if (s->args->form == MC_FORM_LINE) {
        print_letters(s);
    } else {
        print_lists(s);
    }
}

/* Print all caches. If they are not sorted, those beyond the limit need not be
 * walked. */
static void print_all(Show *s)
{
    g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(McCacheRow));
    uint64_t n = s->sort ? s->caches->len :
                           MIN(s->caches->len, s->args->limit);

    for (unsigned i = 0; i < n && !s->out->closed; i++) {
        McCacheRow row;

        walk(s, &g_array_index(s->caches, KtSlabCache, i));
        row = row_of(s);
        g_array_append_val(rows, row);
    }
    print_rows(s, &mc_cache_object, rows, s->args->limit);
    if (n < s->caches->len) {
        mc_more(s->out, s->caches->len - n);
    }
}

static void print_caches(Show *s)
{
    if (!s->args->name) {
        print_all(s);
        return;
    }
    for (unsigned i = 0; i < s->caches->len && !s->out->closed; i++) {
        print_one(s, &g_array_index(s->caches, KtSlabCache, i));
    }
}

/* Find the column of --sort. */
static bool set_sort(Show *s, GError **errp)
{
    const McArgs *args = s->args;

    if (args->sort_word && args->name) {
        return mc_fail_syntax(errp, "--sort: one cache has no order; omit it");
    }
    s->sort = args->sort_word ?
              mc_find_sort_column(&mc_cache_object, args->sort_word, errp) :
              NULL;
    return s->sort || !args->sort_word;
}

bool mc_cmd_cache(McOut *out, const McArgs *args, GError **errp)
{
    g_autoptr(GError) why = NULL;
    g_auto(Show) s;

    show_init(&s, out, args);
    if (!args->name && !mc_has_only(args, OPTIONS_OF_ALL,
                                    "\"cache\" without a name lists caches",
                                    errp)) {
        return false;
    }
    if (!set_sort(&s, errp)) {
        return false;
    }
    find_live(&s);
    s.s = mc_slabs_open(out, &why);
    if (!s.s) {
        print_named(&s, why->message);
        return true;
    }
    if (!choose(&s, errp)) {
        return false;
    }
    print_caches(&s);
    mc_slab_note_running(out);
    return true;
}
