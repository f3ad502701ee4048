/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A log of the newest records, with numbers that go on: traced events, accesses
 * to a watched block. Its memory is that of KT_MEM_TRACE.
 *
 * Record number n is in slot n % size. Example: a ring of 4 after the records 1
 * to 6; 1 and 2 were overwritten:
 *
 *     slot      0    1    2    3
 *             +----+----+----+----+
 *             | 4  | 5  | 6  | 3  |     first = 3, last = 6
 *             +----+----+----+----+
 *
 * No lock: its owner's lock is held.
 */
#ifndef KT_RECORD_LOG_H
#define KT_RECORD_LOG_H

#include "kalloc-tracer/base/budget.h"

/**
 * struct KtRecordLog - the ring
 * @bytes: of a record
 * @charged: to @budget
 * @slot: (owned) @size records; NULL: no ring was allocated yet
 * @begin: number of the first record since kt_record_log_begin()
 * @first: number of the oldest record; @last + 1 if there is none
 * @last: number of the newest record
 */
typedef struct KtRecordLog {
    size_t bytes;
    KtBudget *budget;
    uint64_t charged;
    uint8_t *slot;
    uint64_t size;
    uint64_t begin, first, last;
} KtRecordLog;

/** kt_record_log_init() - Make a log without slots, of records of @bytes.
 *  @budget: (borrowed, nullable) */
void kt_record_log_init(KtRecordLog *l, size_t bytes, KtBudget *budget);
void kt_record_log_deinit(KtRecordLog *l);

/**
 * kt_record_log_begin() - Make the log empty, with @size slots, at least 1
 * @more: bytes that the owner needs besides
 * @what: the records, in an error message
 *
 * Numbers go on. Returns: false, with nothing changed, if there is no memory.
 */
bool kt_record_log_begin(KtRecordLog *l, uint64_t size, uint64_t more,
                         const char *what, GError **errp);

/** kt_record_log_count() - Return how many records there are. */
static inline uint64_t kt_record_log_count(const KtRecordLog *l)
{
    return l->last + 1 - l->first;
}

/** kt_record_log_add() - Add a record (copied) to a log with slots. Returns:
 *  true if an older one was overwritten. */
bool kt_record_log_add(KtRecordLog *l, const void *record);
/** kt_record_log_newest() - (borrowed, nullable) Return the newest record. */
void *kt_record_log_newest(const KtRecordLog *l);

/**
 * kt_record_log_read() - Copy up to @max records from the first after number
 * @after on, 0: from the oldest
 * @out: (out) emptied, then filled
 * @missing: (out) records after @after that were overwritten
 *
 * Returns: the number of the last record that was copied or is missing; @after
 * if there is none.
 */
uint64_t kt_record_log_read(const KtRecordLog *l, uint64_t after, uint64_t max,
                            GArray *out, uint64_t *missing);

#endif /* KT_RECORD_LOG_H */
