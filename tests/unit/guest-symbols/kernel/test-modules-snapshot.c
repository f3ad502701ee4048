/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of modules is the same after it was saved and loaded. */
#include "tests/lib/orc-writer.h"
#include "tests/lib/test-main.h"
#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/modules/modules-internal.h"

#define BASE 0xffffffffc0100000ull
#define SIZE 0x4000ull
#define ID_A 0xffffffffc0103000ull
#define ID_B 0xffffffffc0203000ull

static GsKernel *kernel_new(void)
{
    GsKernel *k = g_new0(GsKernel, 1);

    k->orc = gs_orc_set_new();
    k->modules = gs_modules_new();
    return k;
}

static void kernel_free(GsKernel *k)
{
    gs_modules_free(k->modules);
    gs_orc_set_free(k->orc);
    g_free(k);
}

static void add_a(GsKernel *k)
{
    static const GsModuleSymbol syms[] = {
        { .va = BASE + 0x200, .name = "second", .type = 't' },
        { .va = BASE + 0x100, .name = "first", .type = 'T' },
        { .va = BASE + 0x3000, .name = "data", .type = 'd' },
    };

    g_assert_true(gs_kernel_add_module_data(k, ID_A, "alpha", BASE, SIZE, syms,
                                            G_N_ELEMENTS(syms), 0, NULL, NULL,
                                            0, NULL));
}

static void assert_first(GsKernel *k)
{
    GsSymbol s;

    g_assert_true(gs_modules_symbolize(k->modules, BASE + 0x1ff, GS_ERA_NOW,
                                       &s));
    g_assert_cmpstr(s.name, ==, "first");
    g_assert_cmpuint(s.size, ==, 0x100);
}

static GByteArray *packed(GsKernel *k)
{
    GByteArray *bytes = g_byte_array_new();
    GsStreamOut *writer = gs_stream_out_new(gs_stream_to_array, bytes);
    GsOut *p = gs_stream_out(writer);

    gs_kernel_pack_modules(k, p);
    gs_stream_out_end(writer);
    return bytes;
}

/* One that is loaded, with rules; one that was, and lost its place in part. */
static GsKernel *two_modules(void)
{
    static const OrcRow rows[] = {
        { BASE + 0x100000, GS_ORC_CALL, R_SP, 16, R_PREV_SP, -16 },
        { BASE + 0x100040, GS_ORC_CALL, R_SP, 32, R_PREV_SP, -16 },
    };
    OrcArrays w = orc_writer_finish(GS_ORC_LAYOUT_6_4, BASE + 0x102000,
                                    rows, 2);
    GsKernel *k = kernel_new();

    add_a(k);
    gs_kernel_drop_module(k, ID_A);
    gs_kernel_add_module_data(k, ID_B, "beta", BASE + 0x100000, SIZE, NULL, 0,
                              w.ip_va, w.ip, w.orc, w.n, NULL);
    g_free(w.ip);
    g_free(w.orc);
    return k;
}

TEST(test_pack, "/modules-state/pack")
{
    GsKernel *k = two_modules(), *to = kernel_new();
    g_autoptr(GByteArray) bytes = packed(k), again = NULL;
    g_autoptr(GByteArray) same = packed(k);
    GsBytes in = { bytes->data, bytes->len };
    GsStreamIn *reader = gs_stream_in_new(gs_stream_from_bytes, &in, 1 << 20);
    GsBytes *u = gs_stream_in(reader);
    GsOrcReader *r;
    GsOrcRule rule;

    add_a(to);
    gs_kernel_unpack_modules(to, u, UINT64_MAX, true);
    g_assert_true(gs_stream_in_end(reader, NULL));
    again = packed(to);
    g_assert_cmpmem(again->data, again->len, same->data, same->len);
    g_assert_cmpuint(gs_modules_counts(to->modules).modules, ==, 1);
    assert_first(to);
    g_assert_false(gs_modules_is_text(to->modules, BASE + 0x100));
    r = gs_orc_reader_new(to->orc);
    g_assert_cmpint(gs_orc_reader_find(r, BASE + 0x100041, &rule), ==,
                    GS_ORC_FOUND);
    g_assert_cmpint(rule.sp_off, ==, 32);
    gs_orc_reader_free(r);
    gs_stream_in_free(reader);
    kernel_free(k);
    kernel_free(to);
}

/* Names of their time: a module that another one lies over keeps its names and
 * the number of its load, and so do later loads. */
TEST(test_past, "/modules-state/past")
{
    const uint64_t pc = BASE + 0x110;
    GsKernel *k = kernel_new(), *to = kernel_new();
    g_autoptr(GByteArray) bytes = NULL;
    uint32_t was, is;
    GsStreamIn *reader;
    GsSymbol s;
    GsBytes in;

    add_a(k);
    was = gs_kernel_era(k, &pc, 1).all;
    gs_kernel_drop_module(k, ID_A);
    gs_kernel_add_module_data(k, ID_B, "beta", BASE, SIZE, NULL, 0, 0, NULL,
                              NULL, 0, NULL);
    is = gs_kernel_era(k, &pc, 1).all;
    bytes = packed(k);
    in = (GsBytes) { bytes->data, bytes->len };
    reader = gs_stream_in_new(gs_stream_from_bytes, &in, 1 << 20);
    gs_kernel_unpack_modules(to, gs_stream_in(reader), UINT64_MAX, true);
    g_assert_true(gs_stream_in_end(reader, NULL));
    g_assert_true(gs_modules_symbolize(to->modules, pc, was, &s));
    g_assert_cmpstr(s.module, ==, "alpha");
    g_assert_false(gs_modules_symbolize(to->modules, pc, is, &s));
    g_assert_cmpuint(gs_kernel_load_at(to, pc, was), ==, was);
    g_assert_cmpuint(gs_kernel_load_at(to, pc, is), ==, is);
    g_assert_cmpuint(gs_kernel_era(to, &pc, 1).all, ==, is);
    add_a(to);
    g_assert_cmpuint(gs_kernel_era(to, &pc, 1).all, ==, is + 1);
    gs_stream_in_free(reader);
    kernel_free(k);
    kernel_free(to);
}

/* Bits of it changed where the checksum does not see it. */
TEST(test_nonsense, "/modules-state/nonsense")
{
    g_autoptr(GRand) r = g_rand_new_with_seed(1);
    GsKernel *to = kernel_new();

    for (unsigned i = 0; i < 2000; i++) {
        g_autoptr(GByteArray) bytes = g_byte_array_new();
        GsStreamOut *writer = gs_stream_out_new(gs_stream_to_array, bytes);
        GsOut *p = gs_stream_out(writer);
        GsStreamIn *reader;
        GsBytes *u;
        GsBytes in;

        gs_out_varint(p, 1 + g_rand_int_range(r, 0, 2));
        for (unsigned j = g_rand_int_range(r, 0, 60); j > 0; j--) {
            gs_out_varint(p, g_rand_int_range(r, 0, 4));
        }
        gs_stream_out_end(writer);
        in = (GsBytes) { bytes->data, bytes->len };
        reader = gs_stream_in_new(gs_stream_from_bytes, &in, 1 << 20);
        u = gs_stream_in(reader);
        gs_kernel_unpack_modules(to, u, UINT64_MAX, true);
        if (!gs_stream_in_end(reader, NULL)) {
            gs_kernel_unpack_modules(to, u, UINT64_MAX, true);
            g_assert_cmpuint(gs_modules_counts(to->modules).modules, ==, 0);
        }
        gs_stream_in_free(reader);
    }
    kernel_free(to);
}

/* Of a module, what comes before its symbols. */
static void pack_head(GsOut *p, const char *name, bool area)
{
    gs_out_varint(p, ID_A);
    gs_out_text(p, name);
    gs_out_varint(p, 1);          /* live */
    gs_out_varint(p, 7);          /* its load */
    gs_out_varint(p, 0);
    gs_out_varint(p, area);
    if (area) {
        gs_out_varint(p, BASE);
        gs_out_varint(p, SIZE);
    }
    gs_out_varint(p, 0);          /* text */
}

/* A stream of one module with one symbol. */
static bool is_taken(const char *name, char type, const char *symbol,
                     bool area)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    GsStreamOut *writer = gs_stream_out_new(gs_stream_to_array, bytes);
    GsOut *p = gs_stream_out(writer);
    GsKernel *to = kernel_new();
    GsStreamIn *reader;
    GsBytes *u;
    GsBytes in;
    bool ok;

    gs_out_varint(p, 1);
    pack_head(p, name, area);
    gs_out_varint(p, area);
    if (area) {
        gs_out_step(p, BASE, BASE + 16);
        gs_out_bytes(p, &type, 1);
        gs_out_text(p, symbol);
    }
    gs_out_varint(p, 0);          /* rules */
    gs_stream_out_end(writer);
    in = (GsBytes) { bytes->data, bytes->len };
    reader = gs_stream_in_new(gs_stream_from_bytes, &in, 1 << 20);
    u = gs_stream_in(reader);
    gs_kernel_unpack_modules(to, u, UINT64_MAX, true);
    ok = gs_stream_in_end(reader, NULL);
    g_assert_cmpuint(gs_modules_counts(to->modules).modules, ==, ok);
    gs_stream_in_free(reader);
    kernel_free(to);
    return ok;
}

/* Names that a terminal would obey, and that a journal refuses to read. */
TEST(test_names_are_printable, "/modules-state/names-are-printable")
{
    g_assert_true(is_taken("alpha", 't', "first", true));
    g_assert_false(is_taken("al\x1bpha", 't', "first", true));
    g_assert_false(is_taken("alpha", 't', "fi\nrst", true));
    g_assert_false(is_taken("alpha", '\x07', "first", true));
    g_assert_false(is_taken("alpha", 't', "first", false));
}

/* A stream of two modules: one has a symbol, the other as many as all of
 * them may have, or one less; they do not follow. */
static char *why_not(uint64_t n)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    GsStreamOut *writer = gs_stream_out_new(gs_stream_to_array, bytes);
    GsOut *p = gs_stream_out(writer);
    g_autoptr(GError) err = NULL;
    GsKernel *to = kernel_new();
    GsStreamIn *reader;
    GsBytes *u;
    GsBytes in;

    gs_out_varint(p, 2);
    pack_head(p, "alpha", true);
    gs_out_varint(p, 1);
    gs_out_step(p, BASE, BASE);
    gs_out_bytes(p, "t", 1);
    gs_out_text(p, "first");
    gs_out_varint(p, 0);          /* rules */
    pack_head(p, "beta", true);
    gs_out_varint(p, n);
    gs_stream_out_end(writer);
    in = (GsBytes) { bytes->data, bytes->len };
    reader = gs_stream_in_new(gs_stream_from_bytes, &in, 1 << 20);
    u = gs_stream_in(reader);
    gs_kernel_unpack_modules(to, u, UINT64_MAX, true);
    g_assert_false(gs_stream_in_end(reader, &err));
    gs_stream_in_free(reader);
    kernel_free(to);
    return g_strdup(err->message);
}

TEST(test_symbols_of_all_are_bounded,
     "/modules-state/symbols-of-all-are-bounded")
{
    g_autofree char *cut = why_not(MAX_ROWS - 1);
    g_autofree char *many = why_not(MAX_ROWS);

    g_assert_cmpstr(cut, ==, "it ends too early");
    g_assert_cmpstr(many, ==, "a module's symbols is 8388608, at most 8388607 "
                    "is possible");
}

/* Room that modules have in all. */
#define ROOM (200u << 10)

/* A thousand symbols of one name; false when it is refused. */
static bool add_thousand(GsKernel *k, unsigned nth)
{
    uint64_t base = BASE + nth * SIZE;
    g_autofree GsModuleSymbol *s = g_new(GsModuleSymbol, 1000);

    for (int i = 0; i < 1000; i++) {
        s[i] = (GsModuleSymbol) { .va = base + i, .name = "f", .type = 't' };
    }
    gs_modules_set_room(k->modules, ROOM - gs_modules_bytes(k->modules));
    return gs_kernel_add_module_data(k, base, "mod", base, SIZE, s, 1000, 0,
                                     NULL, NULL, 0, NULL);
}

/* Returns: how many were refused of a stream that is sound. */
static unsigned refused_of(GsKernel *to, const GByteArray *bytes,
                           uint64_t room)
{
    GsBytes in = { bytes->data, bytes->len };
    g_autoptr(GsStreamIn) reader =
        gs_stream_in_new(gs_stream_from_bytes, &in, 1 << 20);
    GsBytes *u = gs_stream_in(reader);
    unsigned refused = gs_kernel_unpack_modules(to, u, room, true);

    g_assert_true(gs_stream_in_end(reader, NULL));
    return refused;
}

/* All that one process had room for another has that has as much, whatever it
 * knew before; with less some are not known, and the state is taken. */
TEST(test_bounded_room, "/modules-state/bounded-room")
{
    GsKernel *k = kernel_new(), *to = kernel_new();
    g_autoptr(GByteArray) bytes = NULL;
    unsigned n = 0, refused;
    uint64_t left;

    while (add_thousand(k, n)) {
        n++;
    }
    g_assert_cmpuint(gs_modules_bytes(k->modules), >, ROOM / 2);
    bytes = packed(k);
    gs_modules_set_room(to->modules, 0);
    g_assert_cmpuint(refused_of(to, bytes, ROOM), ==, 0);
    g_assert_cmpuint(gs_modules_counts(to->modules).modules, ==, n);
    left = ROOM - gs_modules_bytes(to->modules);
    g_assert_cmpuint(refused_of(to, bytes, left), ==, 0);
    g_assert_cmpuint(gs_modules_counts(to->modules).modules, ==, n);
    gs_kernel_set_slide(to, 0);
    refused = refused_of(to, bytes, ROOM / 2);
    g_assert_cmpuint(refused, >, 0);
    g_assert_cmpuint(gs_modules_counts(to->modules).modules, ==, n - refused);
    g_assert_cmpuint(gs_modules_bytes(to->modules), <=, ROOM / 2 + 1024);
    kernel_free(k);
    kernel_free(to);
}

TEST(test_bad_parts, "/modules-state/bad-parts")
{
    GsKernel *k = kernel_new();
    g_autoptr(GError) err = NULL;

    g_assert_false(gs_kernel_add_module_data(k, ID_A, "a", BASE, 0, NULL, 0,
                                             0, NULL, NULL, 0, &err));
    g_assert_error(err, GS_ERROR, GS_ERROR_GUEST);
    g_clear_error(&err);
    g_assert_false(gs_kernel_add_module_data(k, ID_A, "a", UINT64_MAX, 2,
                                             NULL, 0, 0, NULL, NULL, 0,
                                             &err));
    g_assert_error(err, GS_ERROR, GS_ERROR_GUEST);
    g_assert_cmpuint(gs_kernel_n_modules(k), ==, 0);
    kernel_free(k);
}
