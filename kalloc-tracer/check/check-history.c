/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Examine past lives: each row, and the index that finds rows by address. See
 * exam.h and history-rows.h.
 */
#include "kalloc-tracer/check/exam.h"

#include <inttypes.h>

#include "kalloc-tracer/model/history-rows.h"

/* ---- rows --------------------------------------------------------------- */

static void bad_row(KtExam *x, uint64_t number, const char *what)
{
    kt_exam_found(x, KT_CHECK_HISTORY_ROW, "%srow %" PRIu64 ": %s", x->boot,
                  number, what);
}

/* Returns: true if the row can be read. It is unpacked here without its sizes
 * of 4 GiB and more, which are in a table and may be missing. */
static bool check_row(const KtHistory *h, KtExam *x, uint64_t number)
{
    Row r;

    unpack(row_at(h, number), &r);
    if ((r.flags & ROW_HUGE) &&
        !g_hash_table_contains(h->huge,
                               GSIZE_TO_POINTER(slot_of(h, number)))) {
        bad_row(x, number, "its sizes are not kept");
        return false;
    }
    if (!(r.flags & ROW_LAYER) || (r.flags & ROW_LAYER) >= KT_LAYER__COUNT) {
        bad_row(x, number, "of no layer");
    } else if (!kt_exam_ids(x, r.alloc_stack, r.alloc_task, r.cache) ||
               !kt_exam_ids(x, r.free_stack, 0, 0) ||
               !(r.flags & ROW_QUEUED ? kt_exam_ids(x, r.other, 0, 0) :
                                        kt_exam_ids(x, 0, r.other, 0))) {
        bad_row(x, number, "names a stack, task or cache that is not known");
    } else if (r.alloc_us > x->last_us || r.free_us > x->last_us) {
        bad_row(x, number, "newer than the newest event");
    }
    return true;
}

bool kt_exam_history_rows(KtExam *x, uint64_t *at, unsigned n)
{
    const KtHistory *h = x->m->history;
    uint64_t number = MAX(*at, h->oldest);

    if (!h->rows || !h->head) {
        return false;
    }
    while (n-- && number < h->next) {
        check_row(h, x, number++);
    }
    *at = number;
    return number < h->next;
}

/* ---- index -------------------------------------------------------------- */

/* Mark the rows of a bucket in @seen, newest first. If a link leads to a row of
 * another bucket, the row that was meant has been overwritten by a newer one,
 * and so have all rows before it: the walk ends. */
static void walk_bucket(const KtHistory *h, KtExam *x, uint32_t *head,
                        KtIndexSet *seen)
{
    uint64_t number = resolve(h, *head, h->next);
    uint64_t first = h->oldest;

    while (number) {
        unsigned level;
        Row r;

        read_row(h, number, &r);
        level = level_of(MAX(r.requested, r.actual));
        if (head_of(h, level, granule(level, r.va)) != head) {
            return;
        }
        kt_index_set_add(seen, number - first);
        number = resolve(h, r.link, number);
    }
}

static void check_levels(const KtHistory *h, KtExam *x)
{
    uint64_t at_level[ROWS__COUNT][LEVELS] = { 0 };
    Row r;

    for (uint64_t i = h->oldest; i < h->next; i++) {
        read_row(h, i, &r);
        at_level[kind_of(&r)][level_of(MAX(r.requested, r.actual))]++;
    }
    for (unsigned i = 0; i < ROWS__COUNT * LEVELS; i++) {
        uint64_t is = at_level[i / LEVELS][i % LEVELS];
        uint64_t counted = h->at_level[i / LEVELS][i % LEVELS];

        if (is != counted) {
            kt_exam_found(x, KT_CHECK_HISTORY_INDEX, "%s%" PRIu64 " rows of "
                          "%s at level %u, counted are %" PRIu64, x->boot, is,
                          i / LEVELS == ROWS_PAGES ? "pages" : "objects",
                          (unsigned)(i % LEVELS), counted);
        }
    }
}

static void check_buckets(const KtHistory *h, KtExam *x)
{
    KtIndexSet seen;

    kt_index_set_init(&seen, kt_history_rows(h));
    for (uint64_t i = 0; i <= h->mask; i++) {
        walk_bucket(h, x, &h->head[i], &seen);
    }
    for (uint64_t i = 0; i < seen.size && seen.n != seen.size; i++) {
        if (!kt_index_set_has(&seen, i)) {
            kt_exam_found(x, KT_CHECK_HISTORY_INDEX, "%srow %" PRIu64 " is "
                          "not found by its address, %" PRIu64 " are not",
                          x->boot, h->oldest + i, seen.size - seen.n);
            break;
        }
    }
    kt_index_set_deinit(&seen);
}

void kt_exam_history(KtExam *x)
{
    const KtHistory *h = x->m->history;
    bool readable = true;

    if (!h->rows || !h->head) {
        return;
    }
    for (uint64_t i = h->oldest; i < h->next; i++) {
        readable &= check_row(h, x, i);
        kt_exam_step(x, 1);
    }
    if (readable) {
        check_levels(h, x);
        check_buckets(h, x);
    }
    x->report.history += kt_history_rows(h);
}
