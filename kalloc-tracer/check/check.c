/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checker: see check.h. Here are the blocks, the counts, and the order of an
 * examination; the map's nodes are in check-map.c, lists and free records in
 * check-index.c, past lives in history.c.
 */
#include "kalloc-tracer/check/check.h"

#include <inttypes.h>
#include <stdarg.h>

/* Of a partial examination: leaves, and rows of history, at a time. */
#define PART_LEAVES 64
#define PART_ROWS   2048
/* How often progress is told. */
#define STEP_PARTS  65536

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

/* ---- sets --------------------------------------------------------------- */

void kt_seen_init(KtSeen *s, uint64_t size)
{
    *s = (KtSeen) { g_malloc0(size / 8 + 1), size, 0 };
}

void kt_seen_deinit(KtSeen *s)
{
    g_free(s->bits);
    *s = (KtSeen) { 0 };
}

bool kt_seen_has(const KtSeen *s, uint64_t i)
{
    return i < s->size && (s->bits[i / 8] >> i % 8 & 1);
}

bool kt_seen_add(KtSeen *s, uint64_t i)
{
    if (i >= s->size || kt_seen_has(s, i)) {
        return false;
    }
    s->bits[i / 8] |= 1 << i % 8;
    s->n++;
    return true;
}

/* ---- telling ------------------------------------------------------------ */

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

/* ---- blocks ------------------------------------------------------------- */

bool kt_exam_ids(const KtExam *x, uint32_t stack, uint32_t task,
                 uint32_t cache)
{
    return stack <= kt_depot_count(x->stacks) &&
           task <= kt_tasks_caches_n_tasks(x->names) &&
           cache <= kt_tasks_caches_n_caches(x->names);
}

static void check_order(KtExam *x, KtLeafWalk *w, uint32_t index)
{
    const KtRec *r = kt_rec(&x->m->blocks, index);

    if (w->has_last && r->va <= w->last) {
        kt_exam_found(x, KT_CHECK_BLOCK_OVERLAP, "%s%" PRIx64 "-%" PRIx64
                      " and the one from %" PRIx64 " on", x->boot,
                      w->last_start, w->last, r->va);
    }
    w->has_last = true;
    w->last_start = r->va;
    w->last = kt_blocks_last(&x->m->blocks, index);
}

static void check_names(KtExam *x, KtMapId map, const KtRec *r)
{
    bool pages = r->layer == KT_LAYER_PAGES;

    if (r->layer == KT_LAYER_NONE || r->layer >= KT_LAYER__COUNT ||
        pages != (map == KT_MAP_PAGES)) {
        kt_exam_found(x, KT_CHECK_BLOCK_LAYER, "%s%" PRIx64 ", layer %u",
                      x->boot, (uint64_t)r->va, r->layer);
    }
    if (!kt_exam_ids(x, r->stack, r->task, r->cache) ||
        r->gfp >= x->m->blocks.n_gfps) {
        kt_exam_found(x, KT_CHECK_BLOCK_NAMES, "%s%" PRIx64 ", stack %u, task "
                      "%u, cache %u, gfp %u", x->boot, (uint64_t)r->va,
                      r->stack, r->task, (unsigned)r->cache, r->gfp);
    }
    if (r->alloc_us > x->last_us) {
        kt_exam_found(x, KT_CHECK_BLOCK_TIME, "%s%" PRIx64 ", allocated at %"
                      PRIu64 "us, newest is %" PRIu64 "us", x->boot,
                      (uint64_t)r->va, (uint64_t)r->alloc_us, x->last_us);
    }
}

static bool end_fits(KtExam *x, const KtRec *r, uint32_t index)
{
    const KtBlocks *b = &x->m->blocks;
    const KtEnd *e;

    if (r->end >= b->end.used) {
        return false;
    }
    e = kt_end(b, r->end);
    if (e->block != index || e->rcu >= b->rcu.used ||
        (!r->freed && e->stack) || e->free_us > x->last_us ||
        !kt_exam_ids(x, e->stack, e->task, 0)) {
        return false;
    }
    return !e->rcu || (r->queued && kt_rcu(b, e->rcu)->block == index &&
                       kt_exam_ids(x, kt_rcu(b, e->rcu)->stack, 0, 0));
}

/* Returns: may the block's end be looked at? */
static bool check_end(KtExam *x, const KtRec *r, uint32_t index)
{
    const KtEnd *e;
    bool once = true;

    if (!r->end) {
        return true;
    }
    if (!end_fits(x, r, index)) {
        kt_exam_found(x, KT_CHECK_BLOCK_END, "%s%" PRIx64 ", record %u of "
                      "its end", x->boot, (uint64_t)r->va, r->end);
        return false;
    }
    if (!x->whole) {
        return true;
    }
    e = kt_end(&x->m->blocks, r->end);
    once = kt_seen_add(&x->ends, r->end);
    x->in_free += r->freed && e->stack;
    if (e->rcu) {
        once = kt_seen_add(&x->rcus, e->rcu) && once;
        x->in_rcu += kt_rcu(&x->m->blocks, e->rcu)->stack != 0;
    }
    if (!once) {
        kt_exam_found(x, KT_CHECK_BLOCK_END, "%s%" PRIx64 " has the end of "
                      "another block, record %u", x->boot, (uint64_t)r->va,
                      r->end);
    }
    return once;
}

static void recount(KtExam *x, const KtRec *r, uint32_t index)
{
    KtWho who = kt_model_who(r);

    if (x->whole && !x->m->accounts.off &&
        kt_exam_ids(x, r->stack, r->task, r->cache)) {
        kt_accounts_alloc(&x->recount, &who, kt_model_amount(x->m, index));
    }
}

static void count_block(KtExam *x, const KtRec *r, uint32_t index)
{
    x->report.blocks++;
    x->huge += r->huge;
    x->in_alloc += r->stack != 0;
    if (r->freed) {
        x->freed++;
    } else {
        x->live++;
        x->live_bytes += kt_blocks_len(&x->m->blocks, index);
        recount(x, r, index);
    }
}

void kt_exam_entry(KtExam *x, KtLeafWalk *w, KtMapEntry e)
{
    const KtBlocks *b = &x->m->blocks;
    const KtRec *r;

    if (!e.val || e.val >= b->rec.used) {
        kt_exam_found(x, KT_CHECK_BLOCK_RECORD, "%s%" PRIx64 ", record %u of "
                      "%" PRIu64, x->boot, e.key, e.val, b->rec.used - 1);
        return;
    }
    r = kt_rec(b, e.val);
    if (r->va != e.key) {
        kt_exam_found(x, KT_CHECK_BLOCK_VA, "%s%" PRIx64 ", record %u is of %"
                      PRIx64, x->boot, e.key, e.val, (uint64_t)r->va);
        return;
    }
    if (x->whole && !kt_seen_add(&x->recs, e.val)) {
        kt_exam_found(x, KT_CHECK_BLOCK_TWICE, "%s%" PRIx64 ", record %u",
                      x->boot, e.key, e.val);
        return;
    }
    if (r->huge && !g_hash_table_contains(b->huge,
                                          GUINT_TO_POINTER(e.val))) {
        kt_exam_found(x, KT_CHECK_BLOCK_SIZE, "%s%" PRIx64, x->boot, e.key);
        return;
    }
    check_order(x, w, e.val);
    check_names(x, w->map, r);
    if (check_end(x, r, e.val)) {
        kt_exam_links(x, e.val);
    }
    count_block(x, r, e.val);
}

/* ---- errors ------------------------------------------------------------- */

static void check_errors(KtExam *x)
{
    const GArray *list = x->m->errors.list;

    for (unsigned i = 0; i < list->len; i++) {
        const KtError *e = &g_array_index(list, KtError, i);
        const KtBlock *b = &e->block;

        if (e->id != i + 1 || e->kind >= KT_ERR__COUNT ||
            e->us > x->last_us ||
            !kt_exam_ids(x, e->stack.v, e->task.v, e->cache.v) ||
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

    kt_seen_init(&x->nodes, x->m->map[id].nodes.used);
    while (kt_exam_leaf(x, &w)) {
        continue;
    }
    kt_exam_map_end(x, id, x->report.blocks - before);
    kt_seen_deinit(&x->nodes);
}

static void check_pools(KtExam *x)
{
    const KtBlocks *b = &x->m->blocks;

    kt_exam_free_list(x, &b->rec, &x->recs, KT_CHECK_BLOCK_ORPHAN, "blocks");
    kt_exam_free_list(x, &b->end, &x->ends, KT_CHECK_END_ORPHAN, "ends");
    kt_exam_free_list(x, &b->rcu, &x->rcus, KT_CHECK_END_ORPHAN,
                      "ends by kfree_rcu()");
}

/* Where blocks are damaged, they are no measure of anything. */
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

void kt_exam_whole(KtExam *x)
{
    const KtBlocks *b = &x->m->blocks;

    x->whole = true;
    x->total = count_parts(x->m);
    kt_seen_init(&x->recs, b->rec.used);
    kt_seen_init(&x->ends, b->end.used);
    kt_seen_init(&x->rcus, b->rcu.used);
    kt_accounts_init(&x->recount, NULL, x->m->accounts.stacks);
    for (unsigned i = 0; i < KT_MAP__COUNT; i++) {
        check_map(x, i);
    }
    check_pools(x);
    check_counts(x);
    check_accounts(x);
    kt_exam_lists(x);
    kt_history_check(x->m->history, x);
    check_errors(x);
    kt_seen_deinit(&x->recs);
    kt_seen_deinit(&x->ends);
    kt_seen_deinit(&x->rcus);
    kt_accounts_deinit(&x->recount);
}

/* ---- a part of it ------------------------------------------------------- */

/* From the leaf before the place on: its last block may reach too far. */
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

bool kt_exam_part(KtExam *x, KtCheckAt *at)
{
    if (at->map < KT_MAP__COUNT) {
        if (!part_of_map(x, at)) {
            at->map++;
            at->key = 0;
        }
        return true;
    }
    if (kt_history_check_rows(x->m->history, x, &at->row, PART_ROWS)) {
        return true;
    }
    *at = (KtCheckAt) { 0 };
    return false;
}
