/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A ring of records: see record-log.h. */
#include "kalloc-tracer/base/record-log.h"

#include <string.h>

void kt_record_log_init(KtRecordLog *l, size_t bytes, KtBudget *budget)
{
    *l = (KtRecordLog) {
        .bytes = bytes, .budget = budget, .begin = 1, .first = 1,
    };
}

void kt_record_log_deinit(KtRecordLog *l)
{
    kt_budget_release(l->budget, KT_MEM_TRACE, l->charged);
    g_free(l->slot);
}

static void *slot_of(const KtRecordLog *l, uint64_t number)
{
    return l->slot + number % l->size * l->bytes;
}

static bool set_slots(KtRecordLog *l, uint64_t size)
{
    uint8_t *slot = size == l->size ? l->slot :
                    g_try_malloc_n(size, l->bytes);

    if (slot && slot != l->slot) {
        g_free(l->slot);
        l->slot = slot;
    }
    return slot;
}

bool kt_record_log_begin(KtRecordLog *l, uint64_t size, uint64_t more,
                         const char *what, GError **errp)
{
    uint64_t bytes = size * l->bytes + more;

    kt_budget_release(l->budget, KT_MEM_TRACE, l->charged);
    if (kt_budget_take(l->budget, KT_MEM_TRACE, bytes)) {
        if (set_slots(l, size)) {
            l->charged = bytes;
            l->size = size;
            l->begin = l->first = l->last + 1;
            return true;
        }
        kt_budget_release(l->budget, KT_MEM_TRACE, bytes);
    }
    kt_budget_charge(l->budget, KT_MEM_TRACE, l->charged);
    g_set_error(errp, GS_ERROR, GS_ERROR_UNSUPPORTED,
                "there is no memory for a ring of %" G_GUINT64_FORMAT
                " %s of %zu bytes; use a smaller --ring, or a larger mem=",
                size, what, l->bytes);
    return false;
}

bool kt_record_log_add(KtRecordLog *l, const void *record)
{
    bool full = kt_record_log_count(l) == l->size;

    l->last++;
    memcpy(slot_of(l, l->last), record, l->bytes);
    l->first += full;
    return full;
}

void *kt_record_log_newest(const KtRecordLog *l)
{
    return kt_record_log_count(l) ? slot_of(l, l->last) : NULL;
}

uint64_t kt_record_log_read(const KtRecordLog *l, uint64_t after, uint64_t max,
                            GArray *out, uint64_t *missing)
{
    uint64_t from = after ? after : l->begin - 1;
    uint64_t at = MAX(from, l->first - 1);
    uint64_t n = l->last > at ? MIN(l->last - at, max) : 0;

    g_array_set_size(out, 0);
    *missing = at - from;
    for (uint64_t i = 1; i <= n; i++) {
        g_array_append_vals(out, slot_of(l, at + i), 1);
    }
    return at + n;
}
