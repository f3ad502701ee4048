/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Types from DWARF are those of the compiler: members, sizes, enumerators and
 * parameters of dwarf-sample.h, in programs that have DWARF 4, DWARF 5 and
 * compressed DWARF: KA_DWARF_SAMPLES=<program>:... In a vmlinux with DWARF and
 * BTF all members are where pahole says: KA_TEST_DWARF=<vmlinux>. One without
 * BTF is only read.
 */
#include "tests/lib/test-main.h"
#include "tests/lib/types-writer.h"
#include "tests/unit/guest-symbols/types/dwarf-sample.h"
#include "guest-symbols/types/btf.h"
#include "guest-symbols/types/dwarf-types.h"

#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>

static GsBtf *types_of(const char *path)
{
    g_autoptr(GError) err = NULL;
    g_autoptr(GByteArray) raw = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    GsBtf *b = NULL;
    Elf *elf;

    g_assert_cmpint(elf_version(EV_CURRENT), !=, EV_NONE);
    elf = elf_begin(fd, ELF_C_READ, NULL);
    g_assert_nonnull(elf);
    raw = gs_dwarf_types(elf, &err);
    g_assert_no_error(err);
    b = gs_btf_new(raw->data, raw->len, &err);
    g_assert_no_error(err);
    elf_end(elf);
    close(fd);
    return b;
}

#define MEMBER(type, path, at) { #type, #path, offsetof(struct type, at), \
                                 sizeof(((struct type *)0)->at) }

static const TypesMember members[] = {
    MEMBER(sample_outer, name, name),
    MEMBER(sample_outer, x, x),
    MEMBER(sample_outer, y, y),
    MEMBER(sample_outer, in, in),
    MEMBER(sample_outer, in.b, in.b),
    MEMBER(sample_outer, comm, comm),
    MEMBER(sample_outer, matrix, matrix),
    MEMBER(sample_outer, list, list),
    MEMBER(sample_outer, list.prev, list.prev),
    MEMBER(sample_outer, u, u),
    MEMBER(sample_outer, fn, fn),
    MEMBER(sample_outer, flag, flag),
    MEMBER(sample_list, prev, prev),
    MEMBER(sample_inner, b, b),
    { "sample_outer", "tail", offsetof(struct sample_outer, tail), 0 },
    { "sample_inner_t", "b", offsetof(struct sample_inner, b), sizeof(long) },
    { "sample_union", "word", 0, 8 },
};

static void check_missing(const GsBtf *b)
{
    static const char *const names[] = {
        "one", "seven", "far", "nothing", "list.none",
    };
    uint32_t offset;

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_assert_false(gs_btf_member(b, "sample_outer", names[i], &offset,
                                     NULL));
    }
}

static void check_sizes(const GsBtf *b)
{
    uint32_t size;

    g_assert_true(gs_btf_type_size(b, "sample_outer", &size));
    g_assert_cmpuint(size, ==, sizeof(struct sample_outer));
    g_assert_true(gs_btf_type_size(b, "sample_union", &size));
    g_assert_cmpuint(size, ==, sizeof(union sample_union));
    g_assert_true(gs_btf_type_size(b, "sample_inner_t", &size));
    g_assert_cmpuint(size, ==, sizeof(struct sample_inner));
}

static void expect_place(const GsBtf *b, size_t at, const char *want)
{
    g_autofree char *path = gs_btf_member_at(b, "sample_outer", at);

    g_assert_cmpstr(path, ==, want);
}

static void check_places(const GsBtf *b)
{
    expect_place(b, offsetof(struct sample_outer, y), "y");
    expect_place(b, offsetof(struct sample_outer, list.prev), "list.prev");
    expect_place(b, offsetof(struct sample_outer, u[2]), "u[2].bytes[0]");
}

static void check_values(const GsBtf *b)
{
    types_expect_value(b, "SAMPLE_RED", SAMPLE_RED);
    types_expect_value(b, "SAMPLE_GREEN", SAMPLE_GREEN);
    types_expect_value(b, "SAMPLE_MINUS", SAMPLE_MINUS);
    types_expect_value(b, "SAMPLE_ANON", SAMPLE_ANON);
    types_expect_value(b, "SAMPLE_OTHER", SAMPLE_OTHER);
}

static void check_params(const GsBtf *b)
{
    g_assert_cmpint(gs_btf_func_param(b, "sample_function", "object"), ==, 0);
    g_assert_cmpint(gs_btf_func_param(b, "sample_function", "size"), ==, 1);
    g_assert_cmpint(gs_btf_func_param(b, "sample_function", "gfp"), ==, 2);
    g_assert_cmpint(gs_btf_func_param(b, "sample_function", "no"), ==, -1);
}

TEST(test_samples, "/dwarf-types/samples")
{
    g_auto(GStrv) paths = g_strsplit(g_getenv("KA_DWARF_SAMPLES"), ":", -1);

    g_assert_cmpuint(g_strv_length(paths), ==, 3);
    for (char **path = paths; *path; path++) {
        g_autoptr(GsBtf) b = types_of(*path);

        types_expect_members(b, members, G_N_ELEMENTS(members));
        check_missing(b);
        check_sizes(b);
        check_places(b);
        check_values(b);
        check_params(b);
    }
}

TEST(test_no_dwarf, "/dwarf-types/no-dwarf")
{
    static char no_elf[64] = "no ELF file at all";
    g_autoptr(GError) err = NULL;
    Elf *elf = elf_memory(no_elf, sizeof(no_elf));

    g_assert_null(gs_dwarf_types(elf, &err));
    g_assert_error(err, GS_ERROR, GS_ERROR_FORMAT);
    elf_end(elf);
}

/* ---- a real kernel ---- */

/* Count the members of a struct that are where @b says. */
static unsigned compare_members(const GsBtf *b, const struct btf *btf,
                                const struct btf_type *t, unsigned *wrong)
{
    const char *type = btf__name_by_offset(btf, t->name_off);
    unsigned n = 0;

    for (unsigned i = 0; i < btf_vlen(t); i++) {
        const char *name = btf__name_by_offset(btf,
                                               btf_members(t)[i].name_off);
        uint32_t want = btf_member_bit_offset(t, i), offset = 0;

        if (!*name || btf_member_bitfield_size(t, i)) {
            continue;
        }
        n++;
        if (!gs_btf_member(b, type, name, &offset, NULL) ||
            offset != want / 8) {
            g_test_message("%s.%s: %u, not %u", type, name, offset, want / 8);
            ++*wrong;
        }
    }
    return n;
}

/* Return names that only one struct or union has. */
static GHashTable *unique_names(const struct btf *btf)
{
    GHashTable *names = g_hash_table_new(g_str_hash, g_str_equal);

    for (uint32_t id = 1; id < btf__type_cnt(btf); id++) {
        const struct btf_type *t = btf__type_by_id(btf, id);
        const char *name = btf__name_by_offset(btf, t->name_off);

        if (btf_is_composite(t) && *name) {
            bool known = g_hash_table_contains(names, name);

            g_hash_table_insert(names, (char *)name,
                                known ? NULL : (gpointer)t);
        }
    }
    return names;
}

static void compare_with_btf(const GsBtf *b, const char *path)
{
    struct btf *btf = btf__parse(path, NULL);
    unsigned n = 0, wrong = 0, n_types = 0, n_local = 0;
    GHashTable *names;
    GHashTableIter at;
    gpointer name, type;

    if (!btf) {
        g_test_message("%s has no BTF to compare with", path);
        return;
    }
    names = unique_names(btf);
    g_hash_table_iter_init(&at, names);
    while (g_hash_table_iter_next(&at, &name, &type)) {
        const struct btf_type *t = type;
        uint32_t size = 0;

        if (t) {
            if (!gs_btf_type_size(b, name, &size)) {
                n_local++;
                continue;
            }
            g_assert_cmpuint(size, ==, t->size);
            n += compare_members(b, btf, t, &wrong);
            n_types++;
        }
    }
    g_test_message("%u members of %u types compared, %u types are inside of "
                   "functions", n, n_types, n_local);
    g_assert_cmpuint(wrong, ==, 0);
    g_assert_cmpuint(n_local * 100, <, n_types);
    g_assert_cmpuint(n, >, 10000);
    g_hash_table_destroy(names);
    btf__free(btf);
}

TEST(test_large_file, "/dwarf-types/large-file")
{
    const char *path = g_getenv("KA_TEST_DWARF");
    g_autoptr(GsBtf) b = NULL;

    if (!path) {
        g_test_skip("KA_TEST_DWARF is not set");
        return;
    }
    g_test_timer_start();
    b = types_of(path);
    g_test_message("%.1f s, types have %zu KiB", g_test_timer_elapsed(),
                   gs_btf_bytes(b) >> 10);
    compare_with_btf(b, path);
}
