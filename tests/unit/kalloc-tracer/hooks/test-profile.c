/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Kernel profiles are parsed and become rows of the hook table. Wrong profiles
 * are refused.
 */
#include "tests/lib/test-main.h"
#include "kalloc-tracer/hooks/hooks.h"
#include "kalloc-tracer/hooks/profile.h"

#include <string.h>

#define MAP "ffffffff81000000 T _stext\n" \
            "ffffffff81001000 T kalloc_ext\n" \
            "ffffffff81001100 T zalloc\n" \
            "ffffffff81001200 T kinit\n" \
            "ffffffff81001300 T zfree\n" \
            "ffffffff81001400 T kfree_ext\n" \
            "ffffffff82000000 T _etext\n"

#define ALLOC "[hook a]\nrole = alloc\nlayer = kmalloc\nsize = 0\n"

static KtProfile *parse(const char *text, GError **errp)
{
    return kt_profile_new_from_data(text, strlen(text), "test.profile", errp);
}

static KtProfile *good(const char *text)
{
    g_autoptr(GError) err = NULL;
    KtProfile *p = parse(text, &err);

    g_assert_no_error(err);
    return p;
}

TEST(every_key, "/profile/every-key")
{
    g_autoptr(KtProfile) p = good(
        "# a comment\n"
        "[hook first]\nrole=alloc\nlayer=cache\ncache=0\nflags=3\n"
        "inner=yes\n"
        "[kernel]\nstart = begin\noutermost =  one two\nva_bits = 39\n"
        "rounding = 0x10\n"
        "[cache]\nname_at = 8\nsize_at = 0x20\nsize_bytes = 2\n"
        "[hook second]\nrole = free\nlayer = any\nptr = 1\nsize = 5\n"
        "cache = 2\ninner = no\n"
        "[hook third]\nrole = realloc\nptr = 0\nsize = 1\n"
        "[hook fourth]\nrole = wrapper\n");

    g_assert_cmpstr(p->elf.start, ==, "begin");
    g_assert_cmpstr(p->elf.outermost[1], ==, "two");
    g_assert_null(p->elf.outermost[2]);
    g_assert_cmpuint(p->elf.va_bits, ==, 39);
    g_assert_cmpuint(p->caches.name, ==, 8);
    g_assert_cmpuint(p->caches.size, ==, 0x20);
    g_assert_cmpuint(p->caches.size_bytes, ==, 2);
    g_assert_cmpuint(p->n_hooks, ==, 4);
    g_assert_cmpstr(p->hook[0].symbol, ==, "first");
    g_assert_cmpint(p->hook[0].role, ==, KT_ROLE_ALLOC);
    g_assert_cmpint(p->hook[0].layer, ==, KT_LAYER_CACHE);
    g_assert_cmpint(p->hook[0].gfp, ==, 3);
    g_assert_cmpint(p->hook[0].size, ==, KT_NO_ARG);
    g_assert_cmpint(p->hook[0].flags, ==, KT_HOOK_INNER);
    g_assert_cmpuint(p->hook[0].sizes->rounding, ==, 16);
    g_assert_cmpint(p->hook[1].family, ==, KT_FAMILY_ANY);
    g_assert_cmpint(p->hook[1].ptr, ==, 1);
    g_assert_cmpint(p->hook[1].size, ==, 5);
    g_assert_cmpint(p->hook[1].flags, ==, 0);
    g_assert_cmpint(p->hook[2].role, ==, KT_ROLE_REALLOC);
    g_assert_cmpint(p->hook[3].role, ==, KT_ROLE_WRAPPER);
}

TEST(little_is_enough, "/profile/little-is-enough")
{
    g_autoptr(KtProfile) p = good(ALLOC);

    g_assert_null(p->elf.start);
    g_assert_null(p->elf.outermost[0]);
    g_assert_cmpuint(p->caches.name, ==, KT_NO_MEMBER);
    g_assert_cmpuint(p->caches.size, ==, KT_NO_MEMBER);
    g_assert_cmpuint(kt_reserve_rule_bytes(p->hook[0].sizes, 123), ==, 123);
}

TEST(sizes, "/profile/sizes")
{
    g_autoptr(KtProfile) p = good(
        "[kernel]\nbuckets = 16 48 384\nrounding = 4096\n" ALLOC
        "[hook b]\nrole = alloc\nlayer = kmalloc\nfixed = 4096\n"
        "[hook c]\nrole = alloc\nlayer = kmalloc\nsize = 0\nbuckets = 32\n");
    static const struct {
        unsigned hook;
        uint64_t size, reserved;
    } cases[] = {
        { 0, 0, 16 }, { 0, 16, 16 }, { 0, 17, 48 }, { 0, 384, 384 },
        { 0, 385, 4096 }, { 0, 4097, 8192 }, { 0, UINT64_MAX, UINT64_MAX },
        { 1, 1, 4096 }, { 2, 20, 32 }, { 2, 33, 4096 },
    };
    const KtReserveRule rounding = { .rounding = 16 };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_assert_cmpuint(
            kt_reserve_rule_bytes(p->hook[cases[i].hook].sizes, cases[i].size),
            ==, cases[i].reserved);
    }
    g_assert_cmpuint(kt_reserve_rule_bytes(&rounding, 0), ==, 16);
}

/* The line names the file, the group and the key, and what would be right. */
TEST(bad_profiles, "/profile/bad-profiles")
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        { "", "no group [hook FUNCTION]" },
        { "x = 1\n", "group" },
        { "[kernel]\nname\n", "name" },
        { "[kernal]\n" ALLOC, "[kernal] is not a group: use [kernel]" },
        { "[kernel]\nfoo = 1\n" ALLOC, "[kernel] 'foo' is not a key of this "
          "group: use one of start, outermost, va_bits, rounding, buckets" },
        { "[kernel]\nstart =\n" ALLOC, "start = : not right, use a "
          "function's name" },
        { "[kernel]\noutermost = \n" ALLOC, "use functions' names" },
        { "[kernel]\nva_bits = 64\n" ALLOC, "use the bits of an address" },
        { "[kernel]\nrounding = 24\n" ALLOC, "use a power of two" },
        { "[kernel]\nrounding = 0\n" ALLOC, "use a power of two" },
        { "[kernel]\nbuckets = 16 16\n" ALLOC, "use sizes in bytes" },
        { "[kernel]\nbuckets = 16;32\n" ALLOC, "use sizes in bytes" },
        { "[cache]\nsize_at = -1\n" ALLOC, "[cache] size_at = -1: not right, "
          "use an offset" },
        { "[cache]\nsize_bytes = 3\n" ALLOC, "use 2, 4 or 8" },
        { "[hook a]\nlayer = kmalloc\n", "[hook a] role is missing: add "
          "alloc, " },
        { "[hook a]\nrole = allocate\n", "role = allocate: not right, use "
          "alloc, " },
        { "[hook ]\nrole = wrapper\n", "use a function's name" },
        { "[hook a b]\nrole = wrapper\n", "use a function's name" },
        { "[hook a]\nrole = wrapper\nsize = 1\n", "[hook a] 'size' is not "
          "a key of this group: use one of role" },
        { "[hook a]\nrole = alloc\nsize = 0\n", "layer is missing" },
        { "[hook a]\nrole = alloc\nlayer = slab\nsize = 0\n", "use kmalloc, "
          "cache, vmalloc" },
        { "[hook a]\nrole = alloc\nlayer = any\nsize = 0\n", "layer = any" },
        { "[hook a]\nrole = alloc\nlayer = cache\ncache = 0\n", "size is "
          "not known" },
        { ALLOC "fixed = 8\n", "size and fixed exclude each other" },
        { "[hook a]\nrole = alloc\nlayer = kmalloc\nsize = 6\n", "[hook a] "
          "size = 6: not right, use an argument's number, 0 to 5" },
        { "[hook a]\nrole = free\nlayer = kmalloc\n", "ptr is missing" },
        { "[hook a]\nrole = realloc\nptr = 0\n", "size is missing" },
        { ALLOC "inner = true\n", "use yes or no" },
        { "[hook a]\nrole = \033[31m\n", "role = \\033[31m" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) err = NULL;

        g_assert_null(parse(cases[i].text, &err));
        g_assert_nonnull(err);
        g_assert_true(g_str_has_prefix(err->message, "test.profile: "));
        g_assert_null(strpbrk(err->message, "\n\033"));
        if (!strstr(err->message, cases[i].why)) {
            g_test_message("%s", err->message);
            g_assert_cmpstr(err->message, ==, cases[i].why);
        }
    }
}

TEST(limits, "/profile/limits")
{
    g_autoptr(GString) many = g_string_new(NULL);
    g_autoptr(GString) long_file = g_string_new(ALLOC);
    g_autoptr(GError) err = NULL;

    for (unsigned i = 0; i < 255; i++) {
        g_string_append_printf(many, "[hook f%u]\nrole = wrapper\n", i);
    }
    g_assert_null(parse(many->str, &err));
    g_assert_nonnull(strstr(err->message, "[hook f254] more than 254"));
    g_clear_error(&err);
    while (long_file->len <= 65536) {
        g_string_append(long_file, "# and so on\n");
    }
    g_assert_null(parse(long_file->str, &err));
    g_assert_nonnull(strstr(err->message, "more than 65536 bytes"));
}

TEST(unreadable_files, "/profile/unreadable-files")
{
    const char *const paths[] = { "/", "/nowhere/at.all", "/dev/zero" };

    for (size_t i = 0; i < G_N_ELEMENTS(paths); i++) {
        g_autoptr(GError) err = NULL;

        g_assert_null(kt_profile_open(paths[i], &err));
        g_assert_true(g_str_has_prefix(err->message, paths[i]));
    }
}

static KtProfile *shipped(const char *name)
{
    g_autofree char *path = g_build_filename(KA_SOURCE_DIR, "kalloc-tracer",
                                             "hooks", "profiles", name, NULL);
    g_autoptr(GError) err = NULL;
    KtProfile *p = kt_profile_open(path, &err);

    g_assert_no_error(err);
    return p;
}

static bool has_gfp(const KtHookTable *t, const char *symbol)
{
    return kt_hook_table_has_gfp(t, kt_hook_table_find(t, symbol));
}

/* It takes the place of Linux's table. */
TEST(the_table_in_use, "/profile/the-table-in-use")
{
    g_autoptr(GsKernel) k = gs_kernel_new_from_data(MAP, strlen(MAP), "map",
                                                    NULL);
    g_autoptr(KtProfile) p = shipped("xnu.profile");
    g_autoptr(KtHookTable) t = kt_hook_table_new();
    unsigned linux_rows = kt_hook_table_count(t);
    KtHookRow row;
    KtHooks *h;

    kt_hook_table_set(t, p->hook, p->n_hooks);
    g_assert_cmpuint(kt_hook_table_count(t), ==, p->n_hooks);
    g_assert_cmpstr(kt_hook_table_name(t, (KtHookId) { 1 }), ==, "kalloc_ext");
    g_assert_cmpuint(kt_hook_table_find(t, "__kmalloc").v, ==, 0);
    h = kt_hooks_resolve(t, k, false);
    g_assert_cmpuint(kt_hooks_n_found(h), ==, 4);
    g_assert_cmpuint(kt_hooks_at(h, 0xffffffff81001400).v, ==,
                     kt_hook_table_find(t, "kfree_ext").v);
    row = kt_hooks_row(h, kt_hook_table_find(t, "kfree_ext"));
    g_assert_cmpint(row.size, ==, 2);
    g_assert_cmpint(row.family, ==, KT_FAMILY_KMALLOC);
    g_assert_nonnull(kt_hooks_row(h, kt_hook_table_find(t, "zalloc")).sizes);
    g_assert_true(kt_hooks_in_role(h, 0xffffffff81001010, KT_ROLE_ALLOC));
    g_assert_true(has_gfp(t, "kalloc_ext"));
    g_assert_false(has_gfp(t, "zalloc"));
    kt_hooks_free(h);
    kt_hook_table_set(t, NULL, 0);
    g_assert_cmpuint(kt_hook_table_count(t), ==, linux_rows);
    g_assert_true(has_gfp(t, "__kmalloc"));
    g_assert_cmpuint(kt_hook_table_find(t, "kalloc_ext").v, ==, 0);
}

/* Functions that fill the allocator are named, not hooked. */
TEST(what_sets_up_is_told, "/profile/what-sets-up-is-told")
{
    g_autoptr(GsKernel) k = gs_kernel_new_from_data(MAP, strlen(MAP), "map",
                                                    NULL);
    g_autoptr(KtProfile) p = shipped("xv6.profile");
    g_autoptr(KtHookTable) t = kt_hook_table_new();
    KtHooks *h;

    kt_hook_table_set(t, p->hook, p->n_hooks);
    h = kt_hooks_resolve(t, k, false);
    g_assert_cmpuint(kt_hooks_n_found(h), ==, 0);
    g_assert_true(kt_hooks_in_role(h, 0xffffffff81001210, KT_ROLE_SETUP));
    g_assert_true(kt_hooks_row(h, kt_hook_table_find(t, "kfree")).flags &
                  KT_HOOK_SETUP);
    kt_hooks_free(h);
    for (unsigned i = 1; i <= kt_hook_table_count(t); i++) {
        g_assert_nonnull(kt_hook_table_missing_note(t, (KtHookId) { i }));
    }
}
