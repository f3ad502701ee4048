/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reader and the writer of bytes: what was written is read, and errors are
 * sticky. */
#include "guest-symbols/base/bytes.h"
#include "tests/lib/test-main.h"

TEST(test_round_trip, "/bytes/round-trip")
{
    static const uint64_t numbers[] = {
        0, 1, 0x7f, 0x80, 300, UINT32_MAX, 1ull << 63, UINT64_MAX
    };
    g_autoptr(GByteArray) array = g_byte_array_new();
    GsOut out = gs_out(array);
    char text[8];
    GsBytes b;

    for (unsigned i = 0; i < G_N_ELEMENTS(numbers); i++) {
        gs_out_varint(&out, numbers[i]);
        gs_out_step(&out, 1000, numbers[i]);
        gs_out_u64(&out, numbers[i]);
    }
    gs_out_u8(&out, 0xfe);
    gs_out_u32(&out, 0x12345678);
    gs_out_str(&out, "name");
    gs_out_text(&out, "text");
    g_assert_false(out.failed);
    b = gs_bytes(array->data, array->len);
    for (unsigned i = 0; i < G_N_ELEMENTS(numbers); i++) {
        g_assert_cmphex(gs_bytes_varint(&b, UINT64_MAX), ==, numbers[i]);
        g_assert_cmphex(gs_bytes_step(&b, 1000), ==, numbers[i]);
        g_assert_cmphex(gs_bytes_u64(&b), ==, numbers[i]);
    }
    g_assert_cmphex(gs_bytes_u8(&b), ==, 0xfe);
    g_assert_cmphex(gs_bytes_u32(&b), ==, 0x12345678);
    g_assert_cmpstr(gs_bytes_str(&b, 4, NULL), ==, "name");
    gs_bytes_text(&b, text, sizeof(text), "a text");
    g_assert_cmpstr(text, ==, "text");
    g_assert_true(gs_bytes_ok(&b));
    g_assert_cmpuint(gs_bytes_left(&b), ==, 0);
}

TEST(test_truncated, "/bytes/truncated")
{
    static const uint8_t bytes[] = { 1, 2, 3 };
    g_autoptr(GError) err = NULL;
    GsBytes b;

    gs_bytes_init(&b, bytes, sizeof(bytes), "thing");
    g_assert_cmphex(gs_bytes_u16(&b), ==, 0x0201);
    g_assert_cmphex(gs_bytes_u32(&b), ==, 0);
    g_assert_cmphex(gs_bytes_u8(&b), ==, 0);
    g_assert_null(gs_bytes_take(&b, 0));
    g_assert_null(gs_bytes_str(&b, 10, NULL));
    g_assert_false(gs_bytes_check(&b, &err));
    g_assert_error(err, GS_ERROR, GS_ERROR_FORMAT);
    g_assert_true(g_str_has_prefix(err->message, "thing: truncated at byte"));
}

/* What is read of varints that cannot be, and what the error says. */
TEST(test_bad_varints, "/bytes/bad-varints")
{
    static const uint8_t long_one[] = {
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02
    };
    GsBytes b = gs_bytes(long_one, sizeof(long_one));
    GsBytes small = gs_bytes("\x7f", 1), cut = gs_bytes("\x80", 1);

    g_assert_cmphex(gs_bytes_varint(&b, UINT64_MAX), ==, 0);
    g_assert_cmpstr(b.why, ==, "a number of more than 64 bits");
    g_assert_cmphex(gs_bytes_upto(&small, 0x7e, "it"), ==, 0);
    g_assert_cmpstr(small.why, ==, "it is 127, at most 126 is possible");
    g_assert_cmphex(gs_bytes_varint(&cut, UINT64_MAX), ==, 0);
    g_assert_true(cut.failed);
}

TEST(test_nothing, "/bytes/nothing")
{
    GsBytes b = gs_bytes(NULL, 0);

    g_assert_cmpuint(gs_bytes_left(&b), ==, 0);
    g_assert_nonnull(gs_bytes_take(&b, 0));
    g_assert_cmphex(gs_bytes_u8(&b), ==, 0);
    g_assert_false(gs_bytes_ok(&b));
}
