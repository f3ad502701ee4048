/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ORC tables are found in an image without labels, and nothing else is taken
 * for one.
 */
#include "tests/lib/orc-writer.h"
#include "tests/lib/test-main.h"

#define BASE    0xffffffff81000000ull
#define LEN     (1u << 20)
#define TABLE   0x90014
#define N       2000

static uint8_t image[LEN];

static GsSection section(void)
{
    return (GsSection) {
        .name = "", .va = BASE, .data = image, .len = LEN, .exec = true,
    };
}

/* Write @n entries, the addresses from BASE + @from on. */
static void put_table(size_t at, uint64_t from, size_t n)
{
    g_autofree OrcRow *rows = g_new0(OrcRow, n);
    g_auto(OrcArrays) a = { 0 };

    for (size_t i = 0; i < n; i++) {
        rows[i] = (OrcRow) {
            BASE + from + i * 0x40, GS_ORC_CALL, i % 8 ? R_SP : R_BP, 16,
        };
    }
    a = orc_writer_finish(GS_ORC_LAYOUT_6_3, BASE + at, rows, n);
    memcpy(image + at, a.ip, 4 * n);
    memcpy(image + at + 4 * n, a.orc, 6 * n);
}

/* As the offsets of kallsyms: they ascend, too. */
static void put_offsets(size_t at, size_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t off = i * 0x40;

        memcpy(image + at + 4 * i, &off, 4);
    }
}

TEST(found, "/orc-find/found")
{
    const GsSection s = section();
    GsOrcRaw raw;

    memset(image, 0, LEN);
    put_offsets(0x60000, 4000);
    put_table(TABLE, 0, N);
    memset(image + TABLE - 20, 0xa5, 20);
    g_assert_true(gs_orc_find(&s, &raw));
    g_assert_cmphex(raw.ip_va, ==, BASE + TABLE);
    g_assert_cmpuint(raw.ip_len, ==, 4 * N);
    g_assert_cmpuint(raw.orc_len, ==, 6 * N);
    g_assert_true(raw.orc == image + TABLE + 4 * N);
    g_assert_true(raw.header == image + TABLE - 20);
    g_assert_cmpint(gs_orc_layout_probe(&raw), ==, GS_ORC_LAYOUT_4_14);
}

TEST(not_found, "/orc-find/not-found")
{
    const GsSection s = section();
    GsOrcRaw raw;

    memset(image, 0, LEN);
    g_assert_false(gs_orc_find(&s, &raw));
    put_offsets(0x60000, 4000);
    g_assert_false(gs_orc_find(&s, &raw));
    put_table(TABLE, 0x20000, N);       /* not from the start of the image */
    g_assert_false(gs_orc_find(&s, &raw));
    put_table(TABLE, 0, 500);           /* too few */
    g_assert_false(gs_orc_find(&s, &raw));
    put_table(LEN - 4 * N, 0x100, 1);
    put_table(TABLE, 0, N);
    memset(image + TABLE + 4 * N, 0, 6 * N);    /* no frames */
    g_assert_false(gs_orc_find(&s, &raw));
}

/* A table that the image cuts is refused. */
TEST(at_the_end, "/orc-find/at-the-end")
{
    GsSection s = section();
    GsOrcRaw raw;

    memset(image, 0, LEN);
    put_table(TABLE, 0, N);
    s.len = TABLE + 4 * N + 6 * N;
    g_assert_true(gs_orc_find(&s, &raw));
    s.len--;
    g_assert_false(gs_orc_find(&s, &raw));
    s.len = TABLE + 4 * N - 1;
    g_assert_false(gs_orc_find(&s, &raw));
    s.len = 3;
    g_assert_false(gs_orc_find(&s, &raw));
    s.data = NULL;
    g_assert_false(gs_orc_find(&s, &raw));
}
