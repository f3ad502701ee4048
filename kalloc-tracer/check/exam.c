/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What all parts of an examination share: sets of records, reporting of
 * violations, progress. See exam.h.
 */
#include "kalloc-tracer/check/exam.h"

#include <stdarg.h>

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
