/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Examine one block of the map: its record, its end, its names. See exam.h. */
#include "kalloc-tracer/check/exam.h"

#include <inttypes.h>

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
                      x->boot, (uint64_t)r->va, (unsigned)r->layer);
    }
    if (!kt_exam_ids(x, r->stack, r->task, r->cache) ||
        r->gfp >= x->m->blocks.n_gfps) {
        kt_exam_found(x, KT_CHECK_BLOCK_NAMES, "%s%" PRIx64 ", stack %u, task "
                      "%u, cache %u, gfp %u", x->boot, (uint64_t)r->va,
                      (unsigned)r->stack, (unsigned)r->task,
                      (unsigned)r->cache, (unsigned)r->gfp);
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

/* Returns: true if the record of the block's end can be used further. */
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
    once = kt_index_set_add(&x->ends, r->end);
    x->in_free += r->freed && e->stack;
    if (e->rcu) {
        once = kt_index_set_add(&x->rcus, e->rcu) && once;
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
    if (x->whole && !kt_index_set_add(&x->recs, e.val)) {
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
