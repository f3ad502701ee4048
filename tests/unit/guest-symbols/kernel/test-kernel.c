/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whole kernels. Always: one made by the writers. With
 * KA_TEST_KERNELS=<vmlinuz>[:<vmlinuz>...] also real ones, against what
 * others say of them: the exports that the image carries for its modules
 * (__ksymtab), and bpftool for the types.
 */
#include "tests/lib/kallsyms-writer.h"
#include "tests/lib/test-main.h"
#include "guest-symbols/kernel/kernel.h"

#include <stdlib.h>
#include <unistd.h>

/* ---- a made one ---- */

static const KsSymbol made[] = {
    { 0x0, 'A', "__per_cpu_start" },
    { 0x100, 'A', "pcpu_hot" },
    { 0x140, 'A', "__per_cpu_end" },
    { KS_TEXT, 'T', "_stext" },
    { KS_TEXT + 0x100, 'T', "do_work" },
    { KS_TEXT + 0x200, 't', "helper" },
    { KS_TEXT + 0x300, 'T', "_etext" },
    { KS_RODATA + KS_BANNER_AT, 'D', "linux_banner" },
    { KS_RODATA + 0x80, 'd', "table.0" },
};

#define MADE_TEXT   7   /* of them without data, as without KALLSYMS_ALL */

/* Of a linker that found something executable in .data. */
static const KsSymbol misled[] = {
    { 0x0, 'A', "__per_cpu_start" },
    { 0x100, 'A', "pcpu_hot" },
    { 0x140, 'A', "__per_cpu_end" },
    { KS_TEXT, 'T', "_stext" },
    { KS_TEXT + 0x100, 'W', "weak_work" },
    { KS_TEXT + 0x200, 't', "helper" },
    { KS_TEXT + 0x300, 'T', "_etext" },
    { KS_RODATA, 'D', "__start_rodata" },
    { KS_RODATA + KS_BANNER_AT, 'D', "linux_banner" },
    { KS_RODATA + 0x80, 'W', "weak_table" },
    { KS_RODATA + 0x100, 'T', "__end_rodata" },
    { KS_RODATA + 0x200, 'T', "_sdata" },
    { KS_RODATA + 0x240, 'T', "init_task" },
    { KS_RODATA + 0x280, 't', "init_cred" },
    { KS_RODATA + 0x300, 'D', "_edata" },
    { KS_RODATA + 0x340, 't', "exit_work" },
    { KS_RODATA + 0x380, 'b', "a_buffer" },
};

static GsKernel *make_kernel(const KsSymbol *syms, unsigned n)
{
    KsWriter w = {
        .order = KS_6_4, .addresses = KS_PERCPU, .syms = syms, .n = n,
    };
    g_autoptr(GBytes) elf = ks_kernel(&w, 0x1000);
    g_autoptr(GError) err = NULL;
    size_t len;
    const void *data = g_bytes_get_data(elf, &len);
    GsKernel *k = gs_kernel_new_from_data(data, len, "made", &err);

    g_assert_no_error(err);
    g_byte_array_unref(w.out);
    return k;
}

TEST(test_made, "/kernel/made")
{
    g_autoptr(GsKernel) k = make_kernel(made, G_N_ELEMENTS(made));
    GsSymbol sym;
    char banner[14];

    g_assert_cmpstr(gs_kernel_banner(k), ==,
                    "Linux version 6.0.0-test (somebody@somewhere) #1");
    g_assert_cmpuint(gs_kernel_n_symbols(k), ==, G_N_ELEMENTS(made));
    g_assert_true(gs_kernel_read_image(k, KS_RODATA, banner, 14));
    g_assert_cmpmem(banner, 14, "Linux version ", 14);
    g_assert_false(gs_kernel_has_btf(k));
    gs_kernel_set_slide(k, 0x2000000);
    g_assert_true(gs_kernel_lookup(k, "do_work", &sym));
    g_assert_cmphex(sym.va, ==, KS_TEXT + 0x2000100);
    g_assert_true(gs_kernel_lookup(k, "pcpu_hot", &sym));
    g_assert_cmphex(sym.va, ==, 0x100);
    g_assert_true(gs_kernel_symbolize(k, KS_TEXT + 0x20002ff, &sym));
    g_assert_cmpstr(sym.name, ==, "helper");
    g_assert_false(gs_kernel_symbolize(k, KS_TEXT + 0x2000300, &sym));
    g_assert_false(gs_kernel_lookup(k, "ext4:do_work", &sym));
}

TEST(test_no_data_symbols, "/kernel/no-data-symbols")
{
    g_autoptr(GsKernel) k = make_kernel(made, MADE_TEXT);

    g_assert_cmpstr(gs_kernel_banner(k), ==,
                    "Linux version 6.0.0-test (somebody@somewhere) #1");
}

static bool names_code(const GsKernel *k, const char *name)
{
    GsSymbol sym;

    g_assert_true(gs_kernel_lookup(k, name, &sym));
    return gs_kernel_is_code(k, &sym);
}

TEST(test_code, "/kernel/code")
{
    static const char *const code[] = { "weak_work", "helper", "exit_work" };
    static const char *const data[] = {
        "pcpu_hot", "linux_banner", "weak_table", "init_task", "init_cred",
        "a_buffer",
    };
    g_autoptr(GsKernel) k = make_kernel(misled, G_N_ELEMENTS(misled));

    gs_kernel_set_slide(k, 0x2000000);
    for (size_t i = 0; i < G_N_ELEMENTS(code); i++) {
        g_assert_true(names_code(k, code[i]));
    }
    for (size_t i = 0; i < G_N_ELEMENTS(data); i++) {
        g_assert_false(names_code(k, data[i]));
    }
}

/* ---- hidden sources ---- */

static const KsSymbol hideable[] = {
    { 0x0, 'A', "__per_cpu_start" },
    { 0x100, 'A', "pcpu_hot" },
    { 0x140, 'A', "__per_cpu_end" },
    { KS_TEXT, 'T', "_stext" },
    { KS_TEXT + 0x100, 'T', "do_work" },
    { KS_TEXT + 0x180, 't', "do_work.part.0" },
    { KS_TEXT + 0x200, 't', "do_worker" },
    { KS_TEXT + 0x300, 'T', "_etext" },
    { KS_RODATA + KS_BANNER_AT, 'D', "linux_banner" },
};

static bool has(const GsKernel *k, const char *name)
{
    GsSymbol sym;

    return gs_kernel_lookup(k, name, &sym);
}

TEST(test_hidden_data, "/kernel/hidden/data")
{
    g_autoptr(GsKernel) k = make_kernel(hideable, G_N_ELEMENTS(hideable));
    GsSymbol sym;

    g_assert_true(gs_kernel_hide(k, "data+types+unwind"));
    g_assert_true(has(k, "do_worker") && has(k, "_etext"));
    g_assert_false(has(k, "linux_banner") || has(k, "pcpu_hot"));
    g_assert_cmpuint(gs_kernel_n_symbols(k), ==, 5);
    g_assert_true(gs_kernel_symbolize(k, KS_TEXT + 0x2ff, &sym));
    g_assert_cmpstr(sym.name, ==, "do_worker");
    g_assert_cmpuint(sym.size, ==, 0x100);
    g_assert_false(gs_kernel_symbolize(k, KS_TEXT + 0x300, &sym));
}

TEST(test_hidden_percpu, "/kernel/hidden/percpu")
{
    g_autoptr(GsKernel) k = make_kernel(hideable, G_N_ELEMENTS(hideable));

    g_assert_true(gs_kernel_hide(k, "percpu"));
    g_assert_false(has(k, "pcpu_hot"));
    g_assert_true(has(k, "do_work") && has(k, "linux_banner"));
}

TEST(test_hidden_symbol, "/kernel/hidden/symbol")
{
    g_autoptr(GsKernel) k = make_kernel(hideable, G_N_ELEMENTS(hideable));

    g_assert_true(gs_kernel_hide(k, "symbol:do_work"));
    g_assert_false(has(k, "do_work") || has(k, "do_work.part.0"));
    g_assert_true(has(k, "do_worker"));
}

TEST(test_wrong_words, "/kernel/hidden/wrong-words")
{
    static const char *const wrong[] = {
        "", "+", "types+", "type", "symbol:", "symbol", "data+nothing",
    };
    g_autoptr(GsKernel) k = make_kernel(hideable, G_N_ELEMENTS(hideable));

    for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_assert_false(gs_kernel_hide(k, wrong[i]));
    }
    g_assert_cmpuint(gs_kernel_n_symbols(k), ==, G_N_ELEMENTS(hideable));
}

/* ---- real ones ---- */

static GsKernel *open_real(const void *path)
{
    g_autoptr(GError) err = NULL;
    int64_t start = g_get_monotonic_time();
    GsKernel *k = gs_kernel_open(path, &err);

    g_assert_no_error(err);
    g_test_message("%s: %zu symbols in %.0f ms: %s", (const char *)path,
                   gs_kernel_n_symbols(k),
                   (g_get_monotonic_time() - start) / 1000.0,
                   gs_kernel_banner(k));
    return k;
}

static bool any_at(const GsSymbol *sym, void *opaque)
{
    uint64_t *want = opaque;

    if (sym->va == *want) {
        *want = 0;
    }
    return *want;
}

/* One export: value and name are offsets from their own place (4.19,
 * 7290d5809571). Returns whether a symbol of that name has that address. */
static bool check_export(const GsKernel *k, uint64_t va)
{
    int32_t off[2];
    char name[256];
    uint64_t value;

    g_assert_true(gs_kernel_read_image(k, va, off, sizeof(off)));
    value = va + (int64_t)off[0];
    for (size_t i = 0; i < sizeof(name); i++) {
        g_assert_true(gs_kernel_read_image(k, va + 4 + (int64_t)off[1] + i,
                                           &name[i], 1));
        if (!name[i]) {
            break;
        }
    }
    name[sizeof(name) - 1] = 0;
    if (!gs_kernel_foreach_named(k, name, any_at, &value) || value) {
        g_test_message("export %s is not at 0x%" G_GINT64_MODIFIER "x", name,
                       va + (int64_t)off[0]);
        return false;
    }
    return true;
}

static void test_exports(const void *path)
{
    static const char *const sections[] = { "__ksymtab", "__ksymtab_gpl" };
    g_autoptr(GsKernel) k = open_real(path);
    unsigned n = 0, wrong = 0;

    if (k->image->raw) {
        g_test_skip("a raw image has no section names");
        return;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(sections); i++) {
        uint64_t va;
        const uint8_t *data;
        size_t len;

        /* Newer kernels have one section of all, and flags beside it. */
        if (!gs_image_section(k->image, sections[i], &va, &data, &len)) {
            continue;
        }
        /* three words each: value, name, namespace (5.4, 8651ec01daed) */
        for (size_t at = 0; at + 12 <= len; at += 12, n++) {
            wrong += !check_export(k, va + at);
        }
    }
    g_test_message("%u exports, %u wrong", n, wrong);
    g_assert_cmpuint(n, >, 1000);
    g_assert_cmpuint(wrong, ==, 0);
}

/* Walks from symbol to symbol: each begins where the one before ends. */
static void test_round_trip(const void *path)
{
    g_autoptr(GsKernel) k = open_real(path);
    uint64_t start, end, va;
    bool gap = true;
    unsigned n = 0;
    GsSymbol sym, again;

    gs_kernel_set_slide(k, 0x14a00000);
    g_assert_true(gs_kernel_text_range(k, &start, &end));
    for (va = start; va < end; va = gap ? va + 16 : sym.va + sym.size) {
        if (!gs_kernel_symbolize(k, va, &sym)) {
            gap = true;
            continue;
        }
        g_assert_true(gap || sym.va == va);
        g_assert_cmpuint(sym.size, >, 0);
        g_assert_true(gs_kernel_symbolize(k, sym.va + sym.size / 2, &again));
        g_assert_cmpstr(again.name, ==, sym.name);
        g_assert_true(gs_kernel_lookup(k, sym.name, &again));
        gap = false;
        n++;
    }
    g_test_message("%u symbols of code", n);
    g_assert_cmpuint(n, >, 10000);
}

static const char *const well_known[] = {
    "start_kernel", "kfree", "kmem_cache_free", "__vmalloc_node_range",
    "vfree", "pcpu_alloc", "__free_pages", "do_exit", "schedule",
};

/* Several spellings changed over time (_noprof): most must be there. */
static void test_well_known(const void *path)
{
    g_autoptr(GsKernel) k = open_real(path);
    unsigned found = 0;
    GsSymbol sym;

    for (size_t i = 0; i < G_N_ELEMENTS(well_known); i++) {
        if (gs_kernel_lookup(k, well_known[i], &sym)) {
            found++;
            g_assert_true(gs_kernel_is_text(k, sym.va));
            g_assert_true(gs_kernel_is_code(k, &sym));
        }
    }
    g_assert_cmpuint(found, >=, G_N_ELEMENTS(well_known) - 3);
    g_assert_false(gs_kernel_lookup(k, "init_task", &sym) &&
                   gs_kernel_is_code(k, &sym));
}

static GStringChunk *strings;

static const char *intern(const char *s)
{
    return g_string_chunk_insert_const(strings, s);
}

/* ---- types, as bpftool prints them ---- */

static char *write_btf(const GsKernel *k)
{
    uint64_t va;
    const uint8_t *data;
    size_t len;
    char *path = NULL;
    int fd;

    if (!gs_image_section(k->image, ".BTF", &va, &data, &len)) {
        return NULL;
    }
    fd = g_file_open_tmp("ka-btf-XXXXXX", &path, NULL);
    g_assert_cmpint(fd, >=, 0);
    close(fd);
    g_assert_true(g_file_set_contents(path, (const char *)data, len, NULL));
    return path;
}

static char *bpftool_dump(const char *btf)
{
    const char *argv[] = { "bpftool", "btf", "dump", "file", btf, NULL };
    char *out = NULL;
    int status = -1;

    if (!g_spawn_sync(NULL, (char **)argv, NULL,
                      G_SPAWN_SEARCH_PATH | G_SPAWN_STDERR_TO_DEV_NULL, NULL,
                      NULL, &out, NULL, &status, NULL) || status) {
        g_free(out);
        return NULL;
    }
    return out;
}

/* Cuts @text into lines in place. Returns: (owned, g_free) NULL-terminated.
 * g_strsplit() would take minutes under the address sanitizer. */
static char **cut_lines(char *text)
{
    GPtrArray *lines = g_ptr_array_new();

    for (char *line; (line = strsep(&text, "\n"));) {
        g_ptr_array_add(lines, line);
    }
    g_ptr_array_add(lines, NULL);
    return (char **)g_ptr_array_free(lines, FALSE);
}

/* "\t'name' type_id=1 bits_offset=64" of the struct whose line was last. */
static bool check_member(const GsKernel *k, const char *type,
                         const char *line)
{
    const char *quote = strchr(line + 2, '\'');
    const char *bits = strstr(line, "bits_offset=");
    g_autofree char *name = NULL;
    uint32_t offset, want;

    if (!quote || !bits || strstr(line, "bitfield_size")) {
        return false;
    }
    name = g_strndup(line + 2, quote - line - 2);
    want = strtoul(bits + strlen("bits_offset="), NULL, 10);
    if (!gs_kernel_member(k, type, name, &offset, NULL)) {
        g_test_message("no %s.%s", type, name);
        return false;
    }
    g_assert_cmpuint(offset, ==, want / 8);
    return true;
}

/* Types whose name occurs once in the dump. */
static GHashTable *count_types(char **lines)
{
    GHashTable *seen = g_hash_table_new(g_str_hash, g_str_equal);

    for (char **l = lines; *l; l++) {
        char *at = strstr(*l, "] STRUCT '");
        char *name = at ? at + strlen("] STRUCT '") : NULL;
        char *quote = name ? strchr(name, '\'') : NULL;

        if (quote && quote > name) {
            g_autofree char *type = g_strndup(name, quote - name);
            const char *key = intern(type);
            size_t n = GPOINTER_TO_SIZE(g_hash_table_lookup(seen, key));

            g_hash_table_insert(seen, (char *)key, GSIZE_TO_POINTER(n + 1));
        }
    }
    return seen;
}

static unsigned compare_types(const GsKernel *k, char **lines)
{
    g_autoptr(GHashTable) seen = count_types(lines);
    const char *type = NULL;
    unsigned n = 0;

    for (char **l = lines; *l; l++) {
        if (**l == '[') {
            char **part = g_strsplit(*l, "'", 3);

            type = strstr(*l, "] STRUCT '") ? intern(part[1]) : NULL;
            g_strfreev(part);
            if (type && GPOINTER_TO_SIZE(g_hash_table_lookup(seen, type))
                != 1) {
                type = NULL;
            }
        } else if (type && g_str_has_prefix(*l, "\t'") &&
                   !g_str_has_prefix(*l, "\t'(anon)")) {
            n += check_member(k, type, *l);
        }
    }
    return n;
}

static void test_types(const void *path)
{
    g_autoptr(GsKernel) k = open_real(path);
    g_autofree char *btf = write_btf(k);
    g_autofree char *dump = btf ? bpftool_dump(btf) : NULL;
    g_autofree char **lines = dump ? cut_lines(dump) : NULL;
    unsigned n;

    if (!btf) {
        g_test_skip("a raw image has no section names");
        return;
    }
    unlink(btf);
    if (!lines) {
        g_test_skip("bpftool is not installed or failed");
        return;
    }
    n = compare_types(k, lines);
    g_test_message("%u members as bpftool has them", n);
    g_assert_cmpuint(n, >, 10000);
}

static const struct {
    const char *name;
    GTestDataFunc fn;
} real_tests[] = {
    { "exports", test_exports },
    { "round-trip", test_round_trip },
    { "well-known", test_well_known },
    { "types", test_types },
};

static void test_no_kernels(void)
{
    g_test_skip("KA_TEST_KERNELS is not set");
}

int main(int argc, char **argv)
{
    const char *env = g_getenv("KA_TEST_KERNELS");
    g_auto(GStrv) paths = g_strsplit(env ? env : "", ":", -1);
    int status;

    strings = g_string_chunk_new(4096);
    if (!paths[0]) {
        test_add("/kernel/real", test_no_kernels, NULL, NULL);
    }
    for (char **p = paths; *p; p++) {
        for (size_t i = 0; i < G_N_ELEMENTS(real_tests); i++) {
            g_autofree char *path = g_strdup_printf(
                "/kernel/real/%u/%s", (unsigned)(p - paths),
                real_tests[i].name);

            test_add(path, NULL, real_tests[i].fn, *p);
        }
    }
    status = test_run(argc, argv);
    g_string_chunk_free(strings);
    return status;
}
