/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A log of records: readers get each entry once and in order, the
 * number of missing entries is exact, and numbers go on when it begins anew.
 */
#include "kalloc-tracer/base/record-log.h"

#include "tests/lib/test-main.h"

static KtRecordLog new_log(void)
{
    KtRecordLog l;

    kt_record_log_init(&l, sizeof(uint64_t), NULL);
    g_assert_null(kt_record_log_newest(&l));
    return l;
}

static bool begin(KtRecordLog *l, uint64_t size)
{
    return kt_record_log_begin(l, size, 0, "records", NULL);
}

static void add(KtRecordLog *r, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t number = r->last + 1;
        bool full = r->last + 1 - r->first == r->size;

        g_assert_true(kt_record_log_add(r, &number) == full);
    }
}

/* Read from @after, and check numbers. Return the next place. */
static uint64_t read_ring(const KtRecordLog *r, uint64_t after, unsigned max,
                          unsigned want, uint64_t want_missing)
{
    g_autoptr(GArray) out = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    uint64_t missing;
    uint64_t next = kt_record_log_read(r, after, max, out, &missing);

    g_assert_cmpuint(out->len, ==, want);
    g_assert_cmpuint(missing, ==, want_missing);
    for (unsigned i = 0; i < want; i++) {
        g_assert_cmpuint(g_array_index(out, uint64_t, i), ==,
                         next + 1 - want + i);
    }
    return next;
}

TEST(test_order, "/record-log/order")
{
    KtRecordLog r = new_log();

    g_assert_true(begin(&r, 4));
    g_assert_cmpuint(read_ring(&r, 0, 10, 0, 0), ==, 0);
    add(&r, 3);
    g_assert_cmpuint(read_ring(&r, 0, 2, 2, 0), ==, 2);
    g_assert_cmpuint(read_ring(&r, 2, 2, 1, 0), ==, 3);
    g_assert_cmpuint(read_ring(&r, 3, 2, 0, 0), ==, 3);
    add(&r, 3);
    g_assert_cmpuint(read_ring(&r, 3, 9, 3, 0), ==, 6);
    g_assert_cmpuint(read_ring(&r, 0, 9, 4, 2), ==, 6);
    g_assert_cmpuint(read_ring(&r, 1, 1, 1, 1), ==, 3);
    g_assert_cmpuint(read_ring(&r, 99, 9, 0, 0), ==, 99);
    kt_record_log_deinit(&r);
}

TEST(test_next_trace, "/record-log/next-trace")
{
    KtRecordLog r = new_log();

    g_assert_true(begin(&r, 4));
    add(&r, 10);
    g_assert_true(begin(&r, 2));
    g_assert_cmpuint(read_ring(&r, 0, 9, 0, 0), ==, 10);
    g_assert_cmpuint(read_ring(&r, 8, 9, 0, 2), ==, 10);
    add(&r, 3);
    g_assert_cmpuint(read_ring(&r, 0, 9, 2, 1), ==, 13);
    g_assert_cmpuint(read_ring(&r, 8, 9, 2, 3), ==, 13);
    kt_record_log_deinit(&r);
}

/* All sizes and all places, against a list that keeps everything. */
TEST(test_naive, "/record-log/naive")
{
    for (uint64_t size = 1; size < 8; size++) {
        KtRecordLog r = new_log();

        g_assert_true(begin(&r, size));
        for (uint64_t n = 1; n < 20; n++) {
            add(&r, 1);
            for (uint64_t after = 0; after <= n; after++) {
                uint64_t oldest = n > size ? n - size + 1 : 1;
                uint64_t missing = after + 1 < oldest ? oldest - 1 - after : 0;

                read_ring(&r, after, 99, n - after - missing, missing);
            }
        }
        kt_record_log_deinit(&r);
    }
}

TEST(test_no_memory, "/record-log/no-memory")
{
    KtRecordLog r = new_log();

    g_assert_true(begin(&r, 2));
    add(&r, 3);
    g_assert_false(begin(&r, UINT64_MAX));
    g_assert_cmpuint(read_ring(&r, 1, 9, 2, 0), ==, 3);
    kt_record_log_deinit(&r);
}
