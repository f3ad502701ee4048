/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The order of an examination, its counts and errors, and what its parts share:
 * sets of records, reporting of violations, progress. See exam.h. Blocks are
 * in check-block.c, the map's nodes in check-map.c, lists and free records in
 * check-index.c, past lives in check-history.c.
 */
#include "kalloc-tracer/check/exam.h"

#include <inttypes.h>
#include <stdarg.h>

/* One call of kt_check_part() examines so many leaves, or rows of history. */
#define PART_LEAVES 64
#define PART_ROWS   2048

static const struct {
    const char *name;
    const char *text;
} rules[KT_CHECK__COUNT] = {
#define KT_CHECK(id, name, text) [KT_CHECK_##id] = { name, text },
#include "kalloc-tracer/api/checks.def"
};

const char *kt_check_name(KtCheckRule rule)
{
    return (unsigned)rule < KT_CHECK__COUNT ? rules[rule].name : "?";
}

const char *kt_check_text(KtCheckRule rule)
{
    return (unsigned)rule < KT_CHECK__COUNT ? rules[rule].text : "?";
}

/* Progress is reported once every so many parts. */
#define STEP_PARTS  65536

/* ---- sets --------------------------------------------------------------- */

void kt_index_set_init(KtIndexSet *s, uint64_t size)
{
    *s = (KtIndexSet) { g_malloc0(size / 8 + 1), size, 0 };
}

void kt_index_set_deinit(KtIndexSet *s)
{
    g_free(s->bits);
    *s = (KtIndexSet) { 0 };
}

bool kt_index_set_has(const KtIndexSet *s, uint64_t i)
{
    return i < s->size && (s->bits[i / 8] >> i % 8 & 1);
}

bool kt_index_set_add(KtIndexSet *s, uint64_t i)
{
    if (i >= s->size || kt_index_set_has(s, i)) {
        return false;
    }
    s->bits[i / 8] |= 1 << i % 8;
    s->n++;
    return true;
}

/* ---- violations and progress -------------------------------------------- */

void kt_exam_found(KtExam *x, KtCheckRule rule, const char *fmt, ...)
{
    va_list ap;

    x->report.violations++;
    if (x->found[rule]++ == 0 && x->fns && x->fns->violation) {
        g_autofree char *where = NULL;

        va_start(ap, fmt);
        where = g_strdup_vprintf(fmt, ap);
        va_end(ap);
        x->fns->violation(rule, where, x->fns->opaque);
    }
}

void kt_exam_step(KtExam *x, uint64_t n)
{
    uint64_t before = x->done;

    x->done += n;
    if (x->whole && x->fns && x->fns->progress &&
        before / STEP_PARTS != x->done / STEP_PARTS) {
        x->fns->progress(MIN(x->done, x->total), x->total, x->fns->opaque);
    }
}

bool kt_exam_ids(const KtExam *x, uint32_t stack, uint32_t task,
                 uint32_t cache)
{
    return stack <= kt_depot_count(x->stacks) &&
           task <= kt_tasks_caches_n_tasks(x->names) &&
           cache <= kt_tasks_caches_n_caches(x->names);
}

/* ---- errors ------------------------------------------------------------- */

static bool is_good_access(const KtExam *x, const KtErrorAccess *a)
{
    const KtNeighbour *n = &a->neighbour;

    return a->count && a->last_us <= x->last_us &&
           (!a->has_neighbour ||
            kt_exam_ids(x, n->stack.v, n->task.v, n->cache.v));
}

static void check_errors(KtExam *x)
{
    const GArray *list = x->m->errors.list;

    for (unsigned i = 0; i < list->len; i++) {
        const KtError *e = &g_array_index(list, KtError, i);
        const KtBlock *b = &e->block;

        if (e->id != i + 1 || e->kind >= KT_ERR__COUNT ||
            e->us > x->last_us ||
            !kt_exam_ids(x, e->stack.v, e->task.v, e->cache.v) ||
            (kt_error_is_access(e->kind) && !is_good_access(x, &e->access)) ||
            (e->has_block &&
             !kt_exam_ids(x, b->alloc_stack.v, b->alloc_task.v,
                          b->cache.v))) {
            kt_exam_found(x, KT_CHECK_ERROR_ROW, "%serror %u at %" PRIx64,
                          x->boot, i + 1, e->va);
        }
    }
    x->report.errors += list->len;
}

/* ---- all of it ---------------------------------------------------------- */

static void same_count(KtExam *x, const char *what, uint64_t n,
                       uint64_t counted)
{
    if (n != counted) {
        kt_exam_found(x, KT_CHECK_COUNT_BLOCKS, "%s%s: %" PRIu64 ", counted "
                      "are %" PRIu64, x->boot, what, n, counted);
    }
}

static void check_counts(KtExam *x)
{
    const KtModel *m = x->m;

    same_count(x, "live blocks", x->live, m->live_blocks);
    same_count(x, "freed blocks", x->freed, m->freed_blocks);
    same_count(x, "live bytes", x->live_bytes, m->live_bytes);
    if (x->huge != g_hash_table_size(m->blocks.huge)) {
        kt_exam_found(x, KT_CHECK_BLOCK_SIZE, "%s%" PRIu64 " blocks of 4 GiB "
                      "and more, %u sizes are kept", x->boot, x->huge,
                      g_hash_table_size(m->blocks.huge));
    }
}

static void check_map(KtExam *x, KtMapId id)
{
    KtLeafWalk w = { .map = id };
    uint64_t before = x->report.blocks;

    kt_index_set_init(&x->nodes, x->m->map[id].nodes.used);
    while (kt_exam_leaf(x, &w)) {
        continue;
    }
    kt_exam_map_end(x, id, x->report.blocks - before);
    kt_index_set_deinit(&x->nodes);
}

static void check_pools(KtExam *x)
{
    const KtBlocks *b = &x->m->blocks;

    kt_exam_free_list(x, &b->rec, &x->recs, KT_CHECK_BLOCK_ORPHAN, "blocks");
    kt_exam_free_list(x, &b->end, &x->ends, KT_CHECK_END_ORPHAN, "ends");
    kt_exam_free_list(x, &b->rcu, &x->rcus, KT_CHECK_END_ORPHAN,
                      "ends by kfree_rcu()");
}

/* Accounts are compared with a recount of the blocks. If blocks are damaged,
 * the recount means nothing: skip it. */
static void check_accounts(KtExam *x)
{
    g_autofree char *where = NULL;

    if (!x->report.violations && !x->m->accounts.off) {
        where = kt_accounts_differ(&x->m->accounts, &x->recount);
    }
    if (where) {
        kt_exam_found(x, KT_CHECK_ACCOUNTS, "%s%s", x->boot, where);
    }
}

static uint64_t count_parts(const KtModel *m)
{
    uint64_t n = (uint64_t)m->blocks.by_alloc.n + m->blocks.by_free.n +
                 m->blocks.by_rcu.n + 2 * kt_history_rows(m->history);

    for (unsigned i = 0; i < KT_MAP__COUNT; i++) {
        n += m->map[i].n;
    }
    return n;
}

void kt_check_whole(KtExam *x)
{
    const KtBlocks *b = &x->m->blocks;

    x->whole = true;
    x->total = count_parts(x->m);
    kt_index_set_init(&x->recs, b->rec.used);
    kt_index_set_init(&x->ends, b->end.used);
    kt_index_set_init(&x->rcus, b->rcu.used);
    kt_accounts_init_recount(&x->recount, &x->m->accounts);
    for (unsigned i = 0; i < KT_MAP__COUNT; i++) {
        check_map(x, i);
    }
    check_pools(x);
    check_counts(x);
    check_accounts(x);
    kt_exam_lists(x);
    kt_exam_history(x);
    check_errors(x);
    kt_index_set_deinit(&x->recs);
    kt_index_set_deinit(&x->ends);
    kt_index_set_deinit(&x->rcus);
    kt_accounts_deinit(&x->recount);
}

/* ---- a part of it ------------------------------------------------------- */

/* Begin with the leaf before @at: its last block may overlap the next leaf. */
static bool part_of_map(KtExam *x, KtCheckAt *at)
{
    KtLeafWalk w = { .map = at->map, .key = at->key ? at->key - 1 : 0 };

    for (unsigned i = 0; i < PART_LEAVES; i++) {
        if (!kt_exam_leaf(x, &w)) {
            return false;
        }
    }
    at->key = w.key;
    return true;
}

bool kt_check_part(KtExam *x, KtCheckAt *at)
{
    if (at->map < KT_MAP__COUNT) {
        if (!part_of_map(x, at)) {
            at->map++;
            at->key = 0;
        }
        return true;
    }
    if (kt_exam_history_rows(x, &at->row, PART_ROWS)) {
        return true;
    }
    *at = (KtCheckAt) { 0 };
    return false;
}
