/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ORC tables of each layout are decoded and searched, and modules add tables
 * and remove them.
 */
#include "tests/lib/orc-writer.h"
#include "tests/lib/test-main.h"

G_DEFINE_AUTOPTR_CLEANUP_FUNC(GsOrcReader, gs_orc_reader_free)

#define TEXT 0xffffffff81000000ull
#define IP_VA 0xffffffff82000000ull
#define MOD 0xffffffffc0100000ull

/* One of each kind; the calls outnumber the rest as they do in a kernel. */
static const OrcRow all_rows[] = {
    { TEXT + 0x00, GS_ORC_CALL, R_SP, 8 },
    { TEXT + 0x01, GS_ORC_CALL, R_SP, 16, R_PREV_SP, -16 },
    { TEXT + 0x02, GS_ORC_CALL, R_SP, 24 },
    { TEXT + 0x03, GS_ORC_CALL, R_SP, 32 },
    { TEXT + 0x04, GS_ORC_CALL, R_SP, 40 },
    { TEXT + 0x05, GS_ORC_CALL, R_SP, 48 },
    { TEXT + 0x10, GS_ORC_CALL, R_BP, 16, R_PREV_SP, -16 },
    { TEXT + 0x20, GS_ORC_CALL, R_AT_BP, -8, R_BP, 0 },
    { TEXT + 0x30, GS_ORC_CALL, R_AT_SP, 16 },
    { TEXT + 0x40, GS_ORC_REGS, R_SP, 8 },
    { TEXT + 0x50, GS_ORC_REGS_PARTIAL, R_SP, 0 },
    { TEXT + 0x58, GS_ORC_REGS, R_AT_SP, 8 },
    { TEXT + 0x60, GS_ORC_CALL, R_R10, 0 },
    { TEXT + 0x70, GS_ORC_CALL, R_R13, 0 },
    { TEXT + 0x80, GS_ORC_CALL, R_DI, 0 },
    { TEXT + 0x90, GS_ORC_CALL, R_DX, 0 },
    { TEXT + 0xa0, GS_ORC_END },
    { TEXT + 0xb0, GS_ORC_UNDEFINED },
};

/* What they must become, whatever the layout. */
static const GsOrcRule all_rules[] = {
    { 8, 0, GS_ORC_SP, GS_ORC_BP_KEEP, GS_ORC_CALL, 0 },
    { 16, -16, GS_ORC_SP, GS_ORC_BP_AT_CFA, GS_ORC_CALL, 0 },
    { 24, 0, GS_ORC_SP, GS_ORC_BP_KEEP, GS_ORC_CALL, 0 },
    { 32, 0, GS_ORC_SP, GS_ORC_BP_KEEP, GS_ORC_CALL, 0 },
    { 40, 0, GS_ORC_SP, GS_ORC_BP_KEEP, GS_ORC_CALL, 0 },
    { 48, 0, GS_ORC_SP, GS_ORC_BP_KEEP, GS_ORC_CALL, 0 },
    { 16, -16, GS_ORC_SP_BP, GS_ORC_BP_AT_CFA, GS_ORC_CALL, 0 },
    { -8, 0, GS_ORC_SP_AT_BP_OFF, GS_ORC_BP_AT_BP, GS_ORC_CALL, 0 },
    { 16, 0, GS_ORC_SP_AT_SP, GS_ORC_BP_KEEP, GS_ORC_CALL, 0 },
    { 8, 0, GS_ORC_SP, GS_ORC_BP_KEEP, GS_ORC_REGS, 1 },
    { 0, 0, GS_ORC_SP, GS_ORC_BP_KEEP, GS_ORC_REGS_PARTIAL, 1 },
    { 8, 0, GS_ORC_SP_AT_SP_OFF, GS_ORC_BP_KEEP, GS_ORC_REGS, 1 },
    { 56, 0, GS_ORC_SP_REG, GS_ORC_BP_KEEP, GS_ORC_CALL, 0 },
    { 16, 0, GS_ORC_SP_REG, GS_ORC_BP_KEEP, GS_ORC_CALL, 0 },
    { 112, 0, GS_ORC_SP_REG, GS_ORC_BP_KEEP, GS_ORC_CALL, 0 },
    { 96, 0, GS_ORC_SP_REG, GS_ORC_BP_KEEP, GS_ORC_CALL, 0 },
    { .type = GS_ORC_END },
    { .type = GS_ORC_UNDEFINED },
};
G_STATIC_ASSERT(G_N_ELEMENTS(all_rows) == G_N_ELEMENTS(all_rules));

static void assert_rule(const GsOrcRule *got, const GsOrcRule *want)
{
    g_assert_nonnull(got);
    g_assert_cmpint(got->type, ==, want->type);
    g_assert_cmpint(got->sp, ==, want->sp);
    g_assert_cmpint(got->sp_off, ==, want->sp_off);
    g_assert_cmpint(got->bp, ==, want->bp);
    g_assert_cmpint(got->bp_off, ==, want->bp_off);
    g_assert_cmpint(got->exact, ==, want->exact);
}

static GsOrcTable *table_of(GsOrcLayout layout, const OrcRow *rows, size_t n)
{
    g_auto(OrcArrays) a = orc_writer_finish(layout, IP_VA, rows, n);
    GsOrcRaw raw = orc_writer_raw(&a);

    return gs_orc_table_new(&raw, layout, NULL);
}

TEST(test_layouts, "/orc/layouts")
{
    for (GsOrcLayout l = GS_ORC_LAYOUT_4_14; l < GS_ORC_LAYOUT__COUNT; l++) {
        g_auto(OrcArrays) a = orc_writer_finish(l, IP_VA, all_rows,
                                                G_N_ELEMENTS(all_rows));
        GsOrcRaw raw = orc_writer_raw(&a);
        g_autoptr(GsOrcTable) t = NULL;

        g_assert_cmpint(gs_orc_layout_probe(&raw), ==, l);
        t = gs_orc_table_new(&raw, GS_ORC_LAYOUT_PROBE, NULL);
        g_assert_nonnull(t);
        g_assert_cmpuint(gs_orc_table_n(t), ==, G_N_ELEMENTS(all_rows));
        for (size_t i = 0; i < G_N_ELEMENTS(all_rows); i++) {
            GsOrcRule want = all_rules[i];

            /* The first layout has one word for both. */
            if (l == GS_ORC_LAYOUT_4_14 && want.type == GS_ORC_UNDEFINED) {
                want.type = GS_ORC_END;
            }
            assert_rule(gs_orc_table_find(t, all_rows[i].va), &want);
        }
    }
}

TEST(test_layout_by_hash, "/orc/layout-by-hash")
{
    static const uint8_t hash_6_4[20] = {
        0xfe, 0x5d, 0x32, 0xbf, 0x58, 0x1b, 0xd6, 0x3b, 0x2c, 0xa9,
        0xa5, 0xc6, 0x5b, 0xa5, 0xa6, 0x25, 0xea, 0xb3, 0xfe, 0x24,
    };
    static const uint8_t zeros[20];
    g_auto(OrcArrays) a = orc_writer_finish(GS_ORC_LAYOUT_4_18, IP_VA,
                                            all_rows, G_N_ELEMENTS(all_rows));
    GsOrcRaw raw = orc_writer_raw(&a);

    raw.header = hash_6_4;
    raw.header_len = sizeof(hash_6_4);
    g_assert_cmpint(gs_orc_layout_probe(&raw), ==, GS_ORC_LAYOUT_6_4);
    raw.header_len = 19;
    g_assert_cmpint(gs_orc_layout_probe(&raw), ==, GS_ORC_LAYOUT_4_18);
    raw.header = zeros;
    raw.header_len = sizeof(zeros);
    g_assert_cmpint(gs_orc_layout_probe(&raw), ==, GS_ORC_LAYOUT_4_18);
}

TEST(test_unknown_register, "/orc/unknown-register")
{
    OrcRow row = { TEXT, GS_ORC_CALL, R_SP, 8 };
    g_auto(OrcArrays) a = orc_writer_finish(GS_ORC_LAYOUT_6_4, IP_VA, &row, 1);
    GsOrcRaw raw = orc_writer_raw(&a);
    g_autoptr(GsOrcTable) t = NULL;
    GsOrcRule want = { .type = GS_ORC_UNDEFINED };

    a.orc[4] = 0x0e;
    t = gs_orc_table_new(&raw, GS_ORC_LAYOUT_6_4, NULL);
    assert_rule(gs_orc_table_find(t, TEXT), &want);
}

TEST(test_find_edges, "/orc/find-edges")
{
    static const OrcRow rows[] = {
        { TEXT + 0x10, GS_ORC_CALL, R_SP, 8 },
        { TEXT + 0x20, GS_ORC_CALL, R_SP, 16 },
        { TEXT + 0x9000, GS_ORC_CALL, R_SP, 24 },
    };
    g_autoptr(GsOrcTable) t = table_of(GS_ORC_LAYOUT_6_4, rows, 3);

    g_assert_null(gs_orc_table_find(t, 0));
    g_assert_null(gs_orc_table_find(t, TEXT + 0x0f));
    g_assert_null(gs_orc_table_find(t, UINT64_MAX >> 1));
    g_assert_cmpint(gs_orc_table_find(t, TEXT + 0x10)->sp_off, ==, 8);
    g_assert_cmpint(gs_orc_table_find(t, TEXT + 0x1f)->sp_off, ==, 8);
    g_assert_cmpint(gs_orc_table_find(t, TEXT + 0x20)->sp_off, ==, 16);
    g_assert_cmpint(gs_orc_table_find(t, TEXT + 0x8fff)->sp_off, ==, 16);
    g_assert_cmpint(gs_orc_table_find(t, TEXT + 0x9000)->sp_off, ==, 24);
    g_assert_cmpint(gs_orc_table_find(t, TEXT + 0x90000)->sp_off, ==, 24);
}

TEST(test_sorts, "/orc/sorts")
{
    static const OrcRow rows[] = {
        { TEXT + 0x30, GS_ORC_CALL, R_SP, 32 },
        { TEXT + 0x10, GS_ORC_CALL, R_SP, 8 },
        { TEXT + 0x20, GS_ORC_CALL, R_SP, 16 },
    };
    g_autoptr(GsOrcTable) t = table_of(GS_ORC_LAYOUT_4_18, rows, 3);

    g_assert_cmpint(gs_orc_table_find(t, TEXT + 0x10)->sp_off, ==, 8);
    g_assert_cmpint(gs_orc_table_find(t, TEXT + 0x2f)->sp_off, ==, 16);
    g_assert_cmpint(gs_orc_table_find(t, TEXT + 0x30)->sp_off, ==, 32);
}

/* A gap's entry at the address of a real one, on either side of it. */
TEST(test_weak_gives_way, "/orc/weak-gives-way")
{
    static const OrcRow rows[] = {
        { TEXT + 0x10, GS_ORC_UNDEFINED },
        { TEXT + 0x10, GS_ORC_CALL, R_SP, 8 },
        { TEXT + 0x20, GS_ORC_CALL, R_SP, 16 },
        { TEXT + 0x20, GS_ORC_UNDEFINED },
    };
    const OrcRow unsorted[] = { rows[2], rows[3], rows[0], rows[1] };
    const OrcRow *const both[] = { rows, unsorted };

    for (unsigned i = 0; i < G_N_ELEMENTS(both); i++) {
        g_autoptr(GsOrcTable) t = table_of(GS_ORC_LAYOUT_6_4, both[i], 4);

        g_assert_cmpuint(gs_orc_table_n(t), ==, 2);
        g_assert_cmpint(gs_orc_table_find(t, TEXT + 0x10)->sp_off, ==, 8);
        g_assert_cmpint(gs_orc_table_find(t, TEXT + 0x20)->sp_off, ==, 16);
    }
}

/* Of several entries for one address the last one holds, sorted or not. */
TEST(test_last_of_equals, "/orc/last-of-equals")
{
    const OrcRow sorted[] = {
        { TEXT, GS_ORC_CALL, R_SP, 8 }, { TEXT, GS_ORC_CALL, R_SP, 16 },
        { TEXT, GS_ORC_UNDEFINED }, { TEXT + 0x10, GS_ORC_CALL, R_SP, 24 },
    };
    const OrcRow unsorted[] = { sorted[3], sorted[0], sorted[1], sorted[2] };
    const OrcRow *const both[] = { sorted, unsorted };

    for (unsigned i = 0; i < G_N_ELEMENTS(both); i++) {
        g_autoptr(GsOrcTable) t = table_of(GS_ORC_LAYOUT_6_4, both[i], 4);

        g_assert_cmpuint(gs_orc_table_n(t), ==, 2);
        g_assert_cmpint(gs_orc_table_find(t, TEXT)->sp_off, ==, 16);
        g_assert_cmpint(gs_orc_table_find(t, TEXT + 0x10)->sp_off, ==, 24);
    }
}

TEST(test_search_agrees_with_scan, "/orc/search-agrees-with-scan")
{
    enum { N = 5000 };
    g_autofree OrcRow *rows = g_new0(OrcRow, N);
    g_autoptr(GsOrcTable) t = NULL;
    uint64_t va = TEXT;

    for (size_t i = 0; i < N; i++) {
        va += 1 + g_test_rand_int_range(0, i % 97 ? 60 : 9000);
        rows[i] = (OrcRow) { va, GS_ORC_CALL, R_SP, 8 + 8 * (i % 4000) };
    }
    t = table_of(GS_ORC_LAYOUT_6_4, rows, N);
    for (size_t i = 0; i + 1 < N; i++) {
        uint64_t mid = rows[i].va + (rows[i + 1].va - rows[i].va) / 2;

        g_assert_cmpint(gs_orc_table_find(t, rows[i].va)->sp_off, ==,
                        rows[i].sp_off);
        g_assert_cmpint(gs_orc_table_find(t, mid)->sp_off, ==,
                        rows[i].sp_off);
    }
}

static void assert_rejected(const GsOrcRaw *raw)
{
    g_autoptr(GError) err = NULL;

    g_assert_null(gs_orc_table_new(raw, GS_ORC_LAYOUT_PROBE, &err));
    g_assert_error(err, GS_ERROR, GS_ERROR_FORMAT);
}

TEST(test_rejects, "/orc/rejects")
{
    static const OrcRow rows[] = {
        { TEXT, GS_ORC_CALL, R_SP, 8 }, { TEXT + 1, GS_ORC_CALL, R_SP, 8 },
    };
    g_auto(OrcArrays) a = orc_writer_finish(GS_ORC_LAYOUT_6_4, IP_VA, rows, 2);
    GsOrcRaw raw = orc_writer_raw(&a);
    GsOrcRaw bad = raw;

    bad.ip_len = bad.orc_len = 0;
    assert_rejected(&bad);
    bad = raw;
    bad.ip_len--;
    assert_rejected(&bad);
    bad = raw;
    bad.orc_len -= 6;
    assert_rejected(&bad);
    a.ip[0] = INT32_MIN;
    a.ip[1] = INT32_MAX;
    raw.ip_va = 0x7ffffff0;             /* wraps below 0 */
    assert_rejected(&raw);
}

/* ---- the set ---------------------------------------------------------- */

static GsOrcSet *set_of(const OrcRow *rows, size_t n)
{
    g_auto(OrcArrays) a = orc_writer_finish(GS_ORC_LAYOUT_6_4, IP_VA, rows, n);
    GsOrcRaw raw = orc_writer_raw(&a);
    GsRange image = { TEXT, TEXT + 0x100000 };
    GsRange text = { TEXT, TEXT + 0x10000 };
    GsOrcSet *set = gs_orc_set_new();

    g_assert_true(gs_orc_set_load(set, image, &text, 1, &raw, NULL));
    return set;
}

static int find_off(GsOrcReader *r, uint64_t pc)
{
    GsOrcRule rule = { 0 };

    switch (gs_orc_reader_find(r, pc, &rule)) {
    case GS_ORC_FOUND:
        return rule.sp_off;
    case GS_ORC_NO_TABLE:
        return 0;
    default:
        return -1;
    }
}

static const OrcRow one_row[] = { { TEXT, GS_ORC_CALL, R_SP, 8 } };

TEST(test_set_places, "/orc/set/places")
{
    g_autoptr(GsOrcSet) set = set_of(one_row, 1);
    g_autoptr(GsOrcReader) r = gs_orc_reader_new(set);

    g_assert_cmpint(find_off(r, TEXT + 4), ==, 8);
    g_assert_cmpint(find_off(r, TEXT + 0x10000), ==, -1);   /* image's data */
    g_assert_cmpint(find_off(r, MOD), ==, 0);       /* generated, perhaps */
    g_assert_cmpint(find_off(r, 0x401000), ==, -1);
    g_assert_cmpint(find_off(r, 0xffff888000000000ull), ==, -1);
    g_assert_cmpint(find_off(r, UINT64_MAX), ==, -1);
}

TEST(test_set_slide, "/orc/set/slide")
{
    const uint64_t slide = 0x1c600000;
    g_autoptr(GsOrcSet) set = set_of(one_row, 1);
    g_autoptr(GsOrcReader) r = gs_orc_reader_new(set);
    GsRange mod = { MOD, MOD + 0x1000 };
    uint64_t generation;

    gs_orc_set_add_module(set, 1, &mod, 1, NULL);
    generation = atomic_load(gs_orc_set_generation(set));
    gs_orc_set_set_slide(set, slide);
    g_assert_cmpuint(atomic_load(gs_orc_set_generation(set)), >, generation);
    g_assert_cmpint(find_off(r, TEXT + slide + 4), ==, 8);
    g_assert_cmpint(find_off(r, TEXT + 4), ==, -1);
}

static GsOrcTable *module_table(uint64_t base, int16_t off)
{
    OrcRow row = { base, GS_ORC_CALL, R_SP, off };
    g_auto(OrcArrays) a = orc_writer_finish(GS_ORC_LAYOUT_6_4, base, &row, 1);
    GsOrcRaw raw = orc_writer_raw(&a);

    return gs_orc_table_new(&raw, GS_ORC_LAYOUT_6_4, NULL);
}

static void add_module(GsOrcSet *set, uint64_t key, uint64_t base,
                       uint64_t size, int16_t off)
{
    g_autoptr(GsOrcTable) t = module_table(base, off);
    GsRange text = { base, base + size };

    gs_orc_set_add_module(set, key, &text, 1, t);
}

TEST(test_set_modules, "/orc/set/modules")
{
    g_autoptr(GsOrcSet) set = set_of(one_row, 1);
    g_autoptr(GsOrcReader) r = gs_orc_reader_new(set);

    add_module(set, 1, MOD + 0x2000, 0x1000, 16);
    add_module(set, 2, MOD, 0x1000, 24);
    g_assert_cmpint(find_off(r, MOD + 0xfff), ==, 24);
    g_assert_cmpint(find_off(r, MOD + 0x1000), ==, 0);
    g_assert_cmpint(find_off(r, MOD + 0x2000), ==, 16);
    gs_orc_set_drop_module(set, 2);
    g_assert_cmpint(find_off(r, MOD), ==, 0);
    g_assert_cmpint(find_off(r, MOD + 0x2000), ==, 16);
    add_module(set, 3, MOD + 0x1800, 0x1000, 32);   /* over what 1 had */
    g_assert_cmpint(find_off(r, MOD + 0x2000), ==, 32);
    g_assert_cmpint(find_off(r, MOD + 0x2900), ==, 0);
    add_module(set, 3, MOD + 0x8000, 0x1000, 40);   /* moved */
    g_assert_cmpint(find_off(r, MOD + 0x2000), ==, 0);
    g_assert_cmpint(find_off(r, MOD + 0x8000), ==, 40);
}

TEST(test_set_keeps_nothing, "/orc/set/keeps-nothing")
{
    g_autoptr(GsOrcSet) set = set_of(one_row, 1);
    g_autoptr(GsOrcReader) idle = gs_orc_reader_new(set);

    g_assert_cmpint(find_off(idle, MOD), ==, 0);
    for (int i = 0; i < 100; i++) {
        add_module(set, 1, MOD + i * 0x1000, 0x1000, 16);
        gs_orc_set_drop_module(set, 1);
    }
    g_assert_cmpuint(gs_orc_set_n_retired(set), ==, 0);
}

typedef struct Racer {
    GsOrcSet *set;
    gint stop;
    gint bad;
} Racer;

static gpointer racer_main(gpointer opaque)
{
    Racer *racer = opaque;
    GsOrcReader *r = gs_orc_reader_new(racer->set);

    while (!g_atomic_int_get(&racer->stop)) {
        int off = find_off(r, MOD + 0x10);

        if (off != 0 && off != 16 && off != 24) {
            g_atomic_int_set(&racer->bad, 1);
        }
    }
    gs_orc_reader_free(r);
    return NULL;
}

TEST(test_set_race, "/orc/set/race")
{
    g_autoptr(GsOrcSet) set = set_of(one_row, 1);
    Racer racer = { set };
    GThread *threads[3];

    for (size_t i = 0; i < G_N_ELEMENTS(threads); i++) {
        threads[i] = g_thread_new("racer", racer_main, &racer);
    }
    for (int i = 0; i < 3000; i++) {
        add_module(set, 1, MOD, 0x1000, i % 2 ? 16 : 24);
        if (i % 3) {
            gs_orc_set_drop_module(set, 1);
        }
    }
    g_assert_cmpuint(gs_orc_set_n_retired(set), <=, 3);
    g_atomic_int_set(&racer.stop, 1);
    for (size_t i = 0; i < G_N_ELEMENTS(threads); i++) {
        g_thread_join(threads[i]);
    }
    g_assert_false(racer.bad);
}
