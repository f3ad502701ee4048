/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Kallsyms tables are decoded: every order of the parts with every encoding of
 * addresses, long names, and damaged tables.
 */
#include "tests/lib/elf-writer.h"
#include "tests/lib/kallsyms-writer.h"
#include "tests/lib/test-main.h"
#include "guest-symbols/symbols/symtab.h"

#define TEXT_LEN    0x400000

static const char *const order_names[KS_ORDER__COUNT] = {
    [KS_4_6] = "4.6", [KS_4_20] = "4.20", [KS_6_2] = "6.2", [KS_6_4] = "6.4",
    [KS_7_0] = "7.0",
};

static const char *const address_names[KS_ADDRESSES__COUNT] = {
    [KS_BASE_RELATIVE] = "base-relative", [KS_PERCPU] = "percpu-absolute",
    [KS_ABSOLUTE] = "absolute", [KS_PLACE] = "place-relative",
};

static GStringChunk *strings;

static const char *intern(const char *s)
{
    return g_string_chunk_insert_const(strings, s);
}

/* _stext, n functions 0x40 bytes apart, _etext; percpu ones if wanted. */
static GArray *make_symbols(unsigned n, bool percpu)
{
    GArray *syms = g_array_new(FALSE, FALSE, sizeof(KsSymbol));
    KsSymbol sym;

    for (unsigned i = 0; percpu && i < 40; i++) {
        sym = (KsSymbol) { i * 0x40, 'A', "percpu_variable" };
        g_array_append_val(syms, sym);
    }
    sym = (KsSymbol) { KS_TEXT, 'T', "_stext" };
    g_array_append_val(syms, sym);
    for (unsigned i = 0; i < n; i++) {
        g_autofree char *name = g_strdup_printf("func_%u", i);

        sym = (KsSymbol) {
            KS_TEXT + 0x40 * i, i % 3 ? 'T' : 't', intern(name),
        };
        g_array_append_val(syms, sym);
    }
    sym = (KsSymbol) { KS_TEXT + 0x40 * n, 'T', "_etext" };
    g_array_append_val(syms, sym);
    return syms;
}

static GsSymtab *decode(KsWriter *w, GError **errp)
{
    g_autoptr(GBytes) elf = ks_kernel(w, TEXT_LEN);
    g_autoptr(GsImage) img = gs_image_new(elf, errp);

    g_assert_nonnull(img);
    return gs_kallsyms_decode(img, errp);
}

static void check_same(const GsSymtab *tab, const GArray *syms)
{
    g_assert_cmpuint(gs_symtab_n(tab), ==, syms->len);
    g_assert_cmpuint(gs_symtab_n_unsorted(tab), ==, 0);
    for (unsigned i = 0; i < syms->len; i++) {
        const KsSymbol *want = &g_array_index(syms, KsSymbol, i);
        GsSymbol got;

        if (!strcmp(want->name, "percpu_variable")) {
            continue;
        }
        g_assert_true(gs_symtab_lookup(tab, want->name, &got));
        g_assert_cmphex(got.va, ==, want->va);
        g_assert_cmpint(got.type, ==, want->type);
        g_assert_cmpstr(got.name, ==, want->name);
    }
}

/* Counts of symbols around the borders of a marker. */
static const unsigned sizes[] = { 1, 200, 254, 255, 256, 510, 3000 };

static void test_layout(const void *opaque)
{
    unsigned row = GPOINTER_TO_UINT(opaque);

    for (unsigned i = 0; i < G_N_ELEMENTS(sizes); i++) {
        bool percpu = row % KS_ADDRESSES__COUNT == KS_PERCPU && sizes[i] > 100;
        g_autoptr(GArray) syms = make_symbols(sizes[i], percpu);
        KsWriter w = {
            .order = row / KS_ADDRESSES__COUNT,
            .addresses = row % KS_ADDRESSES__COUNT,
            .syms = (KsSymbol *)syms->data, .n = syms->len,
        };
        g_autoptr(GError) err = NULL;
        g_autoptr(GsSymtab) tab = decode(&w, &err);

        g_assert_no_error(err);
        check_same(tab, syms);
        g_byte_array_unref(w.out);
    }
}

TEST(test_long_name, "/kallsyms/long-name-two-byte-length")
{
    g_autoptr(GArray) syms = make_symbols(300, false);
    g_autofree char *name = g_strnfill(400, 'x');
    g_autofree char *name2 = g_strnfill(128, 'y');

    g_array_index(syms, KsSymbol, 100).name = name;
    g_array_index(syms, KsSymbol, 256).name = name2;
    for (KsOrder order = KS_4_20; order < KS_ORDER__COUNT; order++) {
        KsWriter w = {
            .order = order, .addresses = KS_BASE_RELATIVE,
            .syms = (KsSymbol *)syms->data, .n = syms->len,
        };
        g_autoptr(GError) err = NULL;
        g_autoptr(GsSymtab) tab = decode(&w, &err);

        g_assert_no_error(err);
        check_same(tab, syms);
        g_byte_array_unref(w.out);
    }
}

TEST(test_percpu_stays, "/kallsyms/percpu-stays-an-offset")
{
    g_autoptr(GArray) syms = make_symbols(500, true);
    KsWriter w = {
        .order = KS_6_4, .addresses = KS_PERCPU,
        .syms = (KsSymbol *)syms->data, .n = syms->len,
    };
    g_autoptr(GsSymtab) tab = decode(&w, NULL);
    GsSymbol sym;

    g_assert_true(gs_symtab_lookup(tab, "percpu_variable", &sym));
    g_assert_cmphex(sym.va, ==, 0);
    g_assert_false(gs_symbol_slides(sym.va));
    g_assert_false(gs_symtab_symbolize(tab, 0x10, &sym));
    g_byte_array_unref(w.out);
}

static void expect_error(KsWriter *w, GsErrorCode code)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(GsSymtab) tab = decode(w, &err);

    g_assert_error(err, GS_ERROR, (int)code);
    g_assert_null(tab);
    g_assert_null(strchr(err->message, '\n'));
    g_byte_array_unref(w->out);
}

TEST(test_no_table, "/kallsyms/no-table")
{
    ElfWriter elf;
    g_autoptr(GBytes) bytes = NULL;
    g_autoptr(GsImage) img = NULL;
    g_autoptr(GError) err = NULL;

    elf_writer_start(&elf);
    elf_writer_add(&elf, ".rodata", KS_RODATA, 0, KS_BANNER,
                   sizeof(KS_BANNER));
    bytes = elf_writer_finish(&elf);
    img = gs_image_new(bytes, NULL);
    g_assert_null(gs_kallsyms_decode(img, &err));
    g_assert_error(err, GS_ERROR, GS_ERROR_NO_SYMBOLS);
}

TEST(test_no_stext, "/kallsyms/no-stext")
{
    g_autoptr(GArray) syms = make_symbols(300, false);
    KsWriter w = {
        .order = KS_6_4, .addresses = KS_BASE_RELATIVE,
        .syms = (KsSymbol *)syms->data + 1, .n = syms->len - 1,
    };

    expect_error(&w, GS_ERROR_FORMAT);
}

TEST(test_unsorted, "/kallsyms/unsorted")
{
    g_autoptr(GArray) syms = make_symbols(300, false);
    KsSymbol *s = (KsSymbol *)syms->data;
    KsWriter w = {
        .order = KS_6_4, .addresses = KS_ABSOLUTE, .syms = s, .n = syms->len,
    };

    for (unsigned i = 1; i < 290; i += 2) {
        uint64_t va = s[i].va;

        s[i].va = s[i + 1].va + 1;
        s[i + 1].va = va;
    }
    expect_error(&w, GS_ERROR_FORMAT);
}

TEST(test_outside_code, "/kallsyms/outside-code")
{
    g_autoptr(GArray) syms = make_symbols(300, false);
    KsWriter w = {
        .order = KS_6_4, .addresses = KS_ABSOLUTE,
        .syms = (KsSymbol *)syms->data, .n = syms->len,
    };

    for (unsigned i = 0; i < syms->len; i++) {
        g_array_index(syms, KsSymbol, i).va += 0x10000000;
    }
    expect_error(&w, GS_ERROR_FORMAT);
}

/* Any one byte of markers, tokens or index wrong: refused or unchanged. */
TEST(test_damage, "/kallsyms/damaged-markers")
{
    g_autoptr(GArray) syms = make_symbols(600, false);
    KsWriter w = {
        .order = KS_6_4, .addresses = KS_BASE_RELATIVE,
        .syms = (KsSymbol *)syms->data, .n = syms->len,
    };
    g_autoptr(GBytes) elf = ks_kernel(&w, TEXT_LEN);
    size_t len, at;
    const uint8_t *data = g_bytes_get_data(elf, &len);
    const uint8_t *table = memmem(data, len, w.out->data, w.out->len);

    g_assert_nonnull(table);
    for (at = w.markers; at < w.tokens; at++) {
        g_autofree uint8_t *copy = g_memdup2(data, len);
        g_autoptr(GBytes) bad = g_bytes_new_static(copy, len);
        g_autoptr(GsImage) img = NULL;
        g_autoptr(GsSymtab) tab = NULL;

        copy[table - data + at] ^= 0x41;
        img = gs_image_new(bad, NULL);
        tab = gs_kallsyms_decode(img, NULL);
        if (tab) {
            check_same(tab, syms);
        }
    }
    g_byte_array_unref(w.out);
}

/* ---- what only looks like tables ---- */

/* Tokens without any text but for the digits, and their index. */
static void put_bare_tokens(GByteArray *out)
{
    size_t start = out->len;
    uint16_t index[256];

    for (unsigned i = 0; i < 256; i++) {
        index[i] = out->len - start;
        if (g_ascii_isdigit(i)) {
            ks_put(out, i, 1);
        }
        ks_put(out, 0, 1);
    }
    while (out->len & 7) {
        ks_put(out, 0, 1);
    }
    g_byte_array_append(out, (const uint8_t *)index, sizeof(index));
}

static void expect_given_up(const GByteArray *rodata)
{
    ElfWriter elf;
    g_autoptr(GBytes) bytes = NULL;
    g_autoptr(GsImage) img = NULL;
    g_autoptr(GError) err = NULL;

    elf_writer_start(&elf);
    elf_writer_add(&elf, ".rodata", KS_RODATA, 0, rodata->data, rodata->len);
    bytes = elf_writer_finish(&elf);
    img = gs_image_new(bytes, NULL);
    g_assert_null(gs_kallsyms_decode(img, &err));
    g_assert_error(err, GS_ERROR, GS_ERROR_FORMAT);
    g_assert_true(g_str_has_suffix(err->message, "given up"));
}

/* Each table of tokens has before it what may be markers, wherever these
 * should end: a budget for each, and this takes many minutes. */
TEST(test_many_tokens, "/kallsyms/many-tokens")
{
    g_autoptr(GByteArray) out = g_byte_array_new();

    for (uint32_t marker = 4096; out->len < 13u << 20; marker += 512) {
        ks_put(out, marker, 4);
    }
    for (unsigned i = 0; i < 2000; i++) {
        put_bare_tokens(out);
    }
    expect_given_up(out);
}

/* Each name may be the first, has the count of them before it, and all that
 * follow agree with the markers, but for the last: to count only the first
 * names that are tried takes minutes. */
TEST(test_many_first_names, "/kallsyms/many-first-names")
{
    enum { MARKERS = 16384, NAME = 8, FAR = 131584 };
    const uint32_t n = MARKERS * 256 - 249;     /* a name's length: 7 codes */
    const size_t len = (MARKERS - 1) * 256 * NAME + 2 * FAR;
    g_autoptr(GByteArray) out = g_byte_array_new();

    for (size_t at = 0; at < len; at += NAME) {
        ks_put(out, at + 2048 < len ? 0x0101010100000000 | n : 0, NAME);
    }
    for (uint32_t i = 0; i < MARKERS; i++) {
        ks_put(out, i * 256 * NAME, 4);
    }
    put_bare_tokens(out);
    expect_given_up(out);
}

/*
 * An arm64 Image as the build leaves it: the base is 0, and a relocation for
 * it stands elsewhere, among others.
 */
TEST(test_relocated_base, "/kallsyms/relocated-base")
{
    const uint64_t linked_at = KS_TEXT - 0x10000, r_relative = 1027;
    g_autoptr(GArray) syms = make_symbols(300, false);
    g_autoptr(GByteArray) raw = g_byte_array_new();
    KsWriter w = {
        .order = KS_6_2, .addresses = KS_BASE_RELATIVE, .va = 0x20000,
        .syms = (KsSymbol *)syms->data, .n = syms->len,
    };
    g_autoptr(GBytes) bytes = NULL;
    g_autoptr(GsImage) img = NULL;
    g_autoptr(GsSymtab) tab = NULL;
    g_autoptr(GError) err = NULL;
    uint64_t base = KS_TEXT, place;
    uint8_t *at;

    ks_write(&w);
    g_byte_array_set_size(raw, w.va);
    memset(raw->data, 0, raw->len);
    memcpy(raw->data + 0x38, "ARM\x64", 4);
    g_byte_array_append(raw, w.out->data, w.out->len);
    at = memmem(raw->data, raw->len, &base, 8);
    g_assert_nonnull(at);
    memset(at, 0, 8);
    place = linked_at + (at - raw->data);
    for (uint64_t i = 0; i < 3; i++) {
        ks_put(raw, place + (i - 1) * 0x1008, 8);
        ks_put(raw, r_relative, 8);
        ks_put(raw, KS_TEXT + (i - 1) * 0x40, 8);
    }
    bytes = g_bytes_new(raw->data, raw->len);
    img = gs_image_new(bytes, NULL);
    tab = gs_kallsyms_decode(img, &err);
    g_assert_no_error(err);
    check_same(tab, syms);
    g_assert_cmphex(gs_image_nth_section(img, 0)->va, ==, linked_at);
    g_byte_array_unref(w.out);
}

int main(int argc, char **argv)
{
    int status;

    strings = g_string_chunk_new(4096);
    for (unsigned i = 0; i < KS_ORDER__COUNT * KS_ADDRESSES__COUNT; i++) {
        g_autofree char *path = g_strdup_printf("/kallsyms/layout/%s/%s",
            order_names[i / KS_ADDRESSES__COUNT],
            address_names[i % KS_ADDRESSES__COUNT]);

        test_add(path, NULL, test_layout, GUINT_TO_POINTER(i));
    }
    status = test_run(argc, argv);
    g_string_chunk_free(strings);
    return status;
}
