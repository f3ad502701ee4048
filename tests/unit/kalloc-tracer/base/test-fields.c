/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tables of fields: what is written is read again, for each form and size of a
 * member, and a number beyond its bound is refused.
 */
#include "kalloc-tracer/base/fields.h"

#include "tests/lib/test-main.h"

typedef struct Row {
    uint64_t big, far, time;
    uint32_t id;
    uint16_t two;
    uint8_t one, fixed;
} Row;

static const uint64_t limits[] = { 7, 9 };

static const KtField fields[] = {
    KT_NUMBER(Row, big), KT_STEP(Row, far, big), KT_DELTA(Row, time),
    KT_ID(Row, id, 1, "an id"), KT_NUMBER(Row, two),
    KT_UPTO(Row, one, 5, "a small number"), KT_FIXED(Row, fixed, 4),
    { 0 }
};

static bool is_read(const Row *row, const Row *before, Row *out)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    GsBytes in;

    kt_fields_pack(fields, row, before, &GS_OUT(bytes));
    in = gs_bytes(bytes->data, bytes->len);
    kt_fields_unpack(fields, out, before, limits, &in);
    return !in.failed && !gs_bytes_left(&in);
}

TEST(test_round_trip, "/fields/round-trip")
{
    const Row before = { .time = 1000 };
    const Row row = { UINT64_MAX, 3, 998, 9, UINT16_MAX, 5, 255 };
    Row out = { 0 };

    g_assert_true(is_read(&row, &before, &out));
    g_assert_cmpmem(&out, sizeof(out), &row, sizeof(row));
    g_assert_true(is_read(&row, NULL, &out));
    g_assert_cmpuint(out.time, ==, 998);
}

TEST(test_bounds, "/fields/bounds")
{
    Row out = { .one = 1 };

    g_assert_false(is_read(&(Row) { .id = 10 }, NULL, &out));
    g_assert_false(is_read(&(Row) { .one = 6 }, NULL, &out));
    g_assert_cmpuint(out.one, ==, 0);
}

/* A number is not cut to the bytes of its member. */
TEST(test_members, "/fields/members")
{
    static const uint8_t two[] = { 0x80, 0x80, 4 }, fixed[] = { 0, 1, 0, 0 };
    static const KtField only_two[] = { KT_NUMBER(Row, two), { 0 } };
    static const KtField only_fixed[] = { KT_FIXED(Row, fixed, 4), { 0 } };
    GsBytes in = gs_bytes(two, sizeof(two));
    Row out;

    kt_fields_unpack(only_two, &out, NULL, NULL, &in);
    g_assert_true(in.failed);
    in = gs_bytes(fixed, sizeof(fixed));
    kt_fields_unpack(only_fixed, &out, NULL, NULL, &in);
    g_assert_true(in.failed);
}
