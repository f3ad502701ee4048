/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The hook table chooses the functions to hook in a kernel, here in System.map
 * files of a few lines.
 */
#include "tests/lib/test-main.h"
#include "kalloc-tracer/hooks/hooks.h"

#include <string.h>

#define MAP_HEAD "ffffffff81000000 T _stext\n" \
                 "ffffffff81000000 T _text\n"
#define MAP_TAIL "ffffffff82000000 T _etext\n" \
                 "ffffffff82100000 R linux_banner\n"

static GsKernel *kernel_of(const char *map)
{
    g_autoptr(GError) err = NULL;
    GsKernel *k = gs_kernel_new_from_data(map, strlen(map), "System.map",
                                          &err);

    g_assert_no_error(err);
    return k;
}

static KtHookTable *table;

static KtHookId id_of(const char *symbol)
{
    return kt_hook_table_find(table, symbol);
}

static KtHookRow row_of(const KtHooks *h, const char *symbol)
{
    return kt_hooks_row(h, id_of(symbol));
}

static const char map_612[] = MAP_HEAD
    "ffffffff81001000 T __kmalloc_noprof\n"
    "ffffffff81001100 T kfree\n"
    "ffffffff81001200 T kvrealloc_noprof\n"
    "ffffffff81001300 T kvfree\n"
    "ffffffff81001400 t delayed_vfree_work\n"
    MAP_TAIL;

TEST(presence_decides, "/hooks/presence-decides")
{
    g_autoptr(GsKernel) k = kernel_of(map_612);
    g_autoptr(KtHooks) h = kt_hooks_resolve(table, k, false);

    g_assert_cmphex(kt_hooks_va(h, id_of("__kmalloc_noprof")), ==,
                    0xffffffff81001000);
    g_assert_cmphex(kt_hooks_va(h, id_of("__kmalloc")), ==, 0);
    g_assert_cmpuint(kt_hooks_n_found(h), ==, 2);
    g_assert_cmpint(kt_hooks_vfree_called_again(h), ==, KT_YES);
}

/* ThinLTO (clang) made a static function global. */
TEST(a_renamed_function_is_hooked, "/hooks/a-renamed-function-is-hooked")
{
    g_autoptr(GsKernel) k = kernel_of(MAP_HEAD
        "ffffffff81001000 t __kmalloc_noprof.llvm.15033911\n"
        "ffffffff81001100 T kfree\n"
        "ffffffff81001400 t delayed_vfree_work.llvm.2\n"
        MAP_TAIL);
    g_autoptr(KtHooks) h = kt_hooks_resolve(table, k, false);

    g_assert_cmphex(kt_hooks_va(h, id_of("__kmalloc_noprof")), ==,
                    0xffffffff81001000);
    g_assert_cmpint(kt_hooks_vfree_called_again(h), ==, KT_YES);
}

TEST(slide_moves_all, "/hooks/slide-moves-all")
{
    g_autoptr(GsKernel) k = kernel_of(map_612);
    g_autoptr(KtHooks) h = NULL;

    gs_kernel_set_slide(k, 0x1e00000);
    h = kt_hooks_resolve(table, k, false);
    g_assert_cmpuint(kt_hooks_at(h, 0xffffffff82e01100).v, ==,
                     id_of("kfree").v);
    g_assert_cmpuint(kt_hooks_at(h, 0xffffffff81001100).v, ==, 0);
}

TEST(blocks_of_the_page_before_are_wanted,
     "/hooks/blocks-of-the-page-before-are-wanted")
{
    g_autoptr(GsKernel) k = kernel_of(map_612);
    g_autoptr(KtHooks) h = kt_hooks_resolve(table, k, false);

    g_assert_true(kt_hooks_page(h, 0xffffffff81001ff0));
    g_assert_true(kt_hooks_page(h, 0xffffffff81000ff0));
    g_assert_false(kt_hooks_page(h, 0xffffffff81002000));
    g_assert_false(kt_hooks_page(h, 0xffffffff80fff000));
}

TEST(wrappers_are_named_not_hooked, "/hooks/wrappers-are-named-not-hooked")
{
    g_autoptr(GsKernel) k = kernel_of(map_612);
    g_autoptr(KtHooks) h = kt_hooks_resolve(table, k, false);

    g_assert_cmpuint(kt_hooks_at(h, 0xffffffff81001200).v, ==, 0);
    g_assert_cmpuint(kt_hooks_wrapper(h, 0xffffffff81001250, false).v, ==,
                     id_of("kvrealloc_noprof").v);
    g_assert_cmpuint(kt_hooks_wrapper(h, 0xffffffff81001150, false).v, ==, 0);
}

TEST(what_a_kernel_lacks_has_a_stand_in,
     "/hooks/what-a-kernel-lacks-has-a-stand-in")
{
    g_autoptr(GsKernel) tiny = kernel_of(MAP_HEAD
        "ffffffff81001000 T call_rcu\n"
        "ffffffff81001100 T kfree\n" MAP_TAIL);
    g_autoptr(GsKernel) tree = kernel_of(MAP_HEAD
        "ffffffff81001000 T call_rcu\n"
        "ffffffff81001080 T kvfree_call_rcu\n"
        "ffffffff81001100 T kfree\n" MAP_TAIL);
    g_autoptr(KtHooks) with = kt_hooks_resolve(table, tiny, false);
    g_autoptr(KtHooks) without = kt_hooks_resolve(table, tree, false);

    g_assert_cmpuint(kt_hooks_at(with, 0xffffffff81001000).v, ==,
                     id_of("call_rcu").v);
    g_assert_cmpuint(kt_hooks_at(without, 0xffffffff81001000).v, ==, 0);
}

/* It makes blocks, and calls other hooks for them: these are no inner ones. */
TEST(an_outer_one_is_both, "/hooks/an-outer-one-is-both")
{
    g_autoptr(GsKernel) k = kernel_of(MAP_HEAD
        "ffffffff81001000 T __kvmalloc_node_noprof\n"
        "ffffffff81001100 T kfree\n" MAP_TAIL);
    g_autoptr(KtHooks) h = kt_hooks_resolve(table, k, false);
    KtHookId outer = id_of("__kvmalloc_node_noprof");

    g_assert_cmpuint(kt_hooks_at(h, 0xffffffff81001000).v, ==, outer.v);
    g_assert_cmpuint(kt_hooks_wrapper(h, 0xffffffff81001050, false).v, ==,
                     outer.v);
    g_assert_false(kt_hooks_in_role(h, 0xffffffff81001050, KT_ROLE_ALLOC));
}

/* What it calls is no event, and it is none itself. */
TEST(what_works_for_the_allocator_is_not_hooked,
     "/hooks/what-works-for-the-allocator-is-not-hooked")
{
    g_autoptr(GsKernel) k = kernel_of(MAP_HEAD
        "ffffffff81001000 t deferred_percpu_work_fn\n"
        "ffffffff81001100 T kvfree_call_rcu\n" MAP_TAIL);
    g_autoptr(KtHooks) h = kt_hooks_resolve(table, k, false);

    g_assert_cmpuint(kt_hooks_at(h, 0xffffffff81001000).v, ==, 0);
    g_assert_true(kt_hooks_in_role(h, 0xffffffff81001050, KT_ROLE_SETUP));
    g_assert_true(kt_hooks_row(h, id_of("kvfree_call_rcu")).flags &
                  KT_HOOK_SETUP);
}

static bool is_inner(const KtHooks *h, const char *symbol, uint64_t va)
{
    KtHookRow row = row_of(h, symbol);

    return kt_hooks_is_inner(h, &row, va);
}

/* Nobody was handed it; but what another allocator frees was recorded. */
TEST(an_allocation_that_fails_undoes_its_own,
     "/hooks/an-allocation-that-fails-undoes-its-own")
{
    g_autoptr(GsKernel) k = kernel_of(MAP_HEAD
        "ffffffff81001000 T __vmalloc_node_range_noprof\n"
        "ffffffff81001100 T pcpu_alloc_noprof\n"
        "ffffffff81001200 t cleanup_vm_area_work\n"
        "ffffffff81001300 T vzalloc\n"
        "ffffffff81001400 T __kvmalloc_node_noprof\n"
        "ffffffff81001500 T kmem_cache_alloc_bulk_noprof\n"
        "ffffffff81001600 T kfree\n" MAP_TAIL);
    g_autoptr(KtHooks) h = kt_hooks_resolve(table, k, false);
    static const struct {
        const char *freed_by;
        bool is_inner[7];
    } rule[] = {
        { "vfree", { true, false, true, true } },
        { "vfree_atomic", { true, false, true, true } },
        { "kmem_cache_free_bulk", { [5] = true } },
        { "kmem_cache_free", { false } },
        { "kfree", { false } },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(rule); i++) {
        for (unsigned j = 0; j < G_N_ELEMENTS(rule[i].is_inner); j++) {
            uint64_t va = 0xffffffff81001050 + 0x100 * j;

            g_assert_cmpint(is_inner(h, rule[i].freed_by, va), ==,
                            rule[i].is_inner[j]);
        }
    }
}

/* In one piece, under another name, or with some of it elsewhere. */
TEST(what_undoes_may_be_cloned, "/hooks/what-undoes-may-be-cloned")
{
    static const struct {
        const char *map;
        bool is_inner[2];
    } made[] = {
        { "ffffffff81001000 t __vmalloc_area_node\n"
          "ffffffff81001100 t other\n", { true, false } },
        { "ffffffff81001000 t __vmalloc_area_node.constprop.0\n"
          "ffffffff81001100 t __vmalloc_area_node.constprop.0.cold\n",
          { true, true } },
        { "ffffffff81001000 t __vmalloc_area_node.isra.0\n"
          "ffffffff81001100 t __vmalloc_area_node.part.0\n",
          { true, true } },
        { "ffffffff81001000 t __vmalloc_node_range\n"
          "ffffffff81001100 t __vmalloc_node_range.cold\n", { true, true } },
        { "ffffffff81001000 t pcpu_alloc\n"
          "ffffffff81001100 t pcpu_alloc.cold\n", { false, false } },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(made); i++) {
        g_autofree char *map = g_strconcat(MAP_HEAD, made[i].map,
                                           "ffffffff81001200 T vfree\n"
                                           MAP_TAIL, NULL);
        g_autoptr(GsKernel) k = kernel_of(map);
        g_autoptr(KtHooks) h = kt_hooks_resolve(table, k, false);

        for (unsigned j = 0; j < G_N_ELEMENTS(made[i].is_inner); j++) {
            g_assert_cmpint(is_inner(h, "vfree",
                                     0xffffffff81001050 + 0x100 * j), ==,
                            made[i].is_inner[j]);
        }
    }
}

TEST(a_hook_tells_how_it_was_found, "/hooks/a-hook-tells-how-it-was-found")
{
    g_autoptr(GsKernel) k = kernel_of(MAP_HEAD
        "ffffffff81001000 t vfree.part.0\n"
        "ffffffff81001100 T vfree\n"
        "ffffffff81001200 T kfree\n" MAP_TAIL);
    g_autoptr(KtHooks) h = kt_hooks_resolve(table, k, false);

    g_assert_cmpstr(kt_hooks_symbol(h, id_of("vfree")), ==, "vfree.part.0");
    g_assert_cmpstr(kt_hooks_symbol(h, id_of("kfree")), ==, "kfree");
    g_assert_null(kt_hooks_symbol(h, id_of("__kmalloc")));
    g_assert_false(kt_hooks_args_by_btf(h, id_of("kfree")));
    g_assert_cmpstr(gs_kernel_symbols_from(k), ==, "System.map");
}

/* An array's size is the product of two arguments. */
TEST(arrays_of_vmalloc_are_wrapped, "/hooks/arrays-of-vmalloc-are-wrapped")
{
    static const char *const name[] = {
        "vmalloc_array", "vmalloc_array_noprof", "__vmalloc_array",
        "__vmalloc_array_noprof", "vcalloc", "vcalloc_noprof", "__vcalloc",
        "__vcalloc_noprof",
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(name); i++) {
        KtHookId id = id_of(name[i]);

        g_assert_cmpuint(id.v, !=, 0);
        g_assert_cmpint(kt_hook_table_row(table, id)->role, ==,
                        KT_ROLE_WRAPPER);
    }
}

TEST(a_vmalloc_of_any_kind_is_an_outer_one,
     "/hooks/a-vmalloc-of-any-kind-is-an-outer-one")
{
    static const char *const name[] = {
        "vmalloc", "vzalloc", "vmalloc_node", "vzalloc_node", "vmalloc_user",
        "vmalloc_huge", "vmalloc_32", "vmalloc_32_user", "vmalloc_no_huge",
        "__vmalloc", "__vmalloc_node",
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(name); i++) {
        const KtHook *hook = kt_hook_table_row(table, id_of(name[i]));

        g_assert_cmpint(hook->role, ==, KT_ROLE_ALLOC);
        g_assert_cmpint(hook->layer, ==, KT_LAYER_VMALLOC);
        g_assert_cmpint(hook->flags, ==, KT_HOOK_OUTER);
        g_assert_cmpint(hook->size, ==, 0);
    }
}

TEST(a_split_function_is_hooked_in_its_part,
     "/hooks/a-split-function-is-hooked-in-its-part")
{
    g_autoptr(GsKernel) k = kernel_of(MAP_HEAD
        "ffffffff81001000 t vfree.part.0\n"
        "ffffffff81001100 T vfree\n"
        "ffffffff81001200 T kfree\n" MAP_TAIL);
    g_autoptr(KtHooks) h = kt_hooks_resolve(table, k, false);
    KtHookId vfree = id_of("vfree");

    g_assert_cmphex(kt_hooks_va(h, vfree), ==, 0xffffffff81001000);
    g_assert_cmpuint(kt_hooks_at(h, 0xffffffff81001000).v, ==, vfree.v);
    g_assert_cmpuint(kt_hooks_at(h, 0xffffffff81001100).v, ==, 0);
    g_assert_cmpuint(kt_hooks_wrapper(h, 0xffffffff81001120, false).v, ==,
                     vfree.v);
}

/* An area that gets too few pages is freed by a part of its function, and large
 * blocks are made by one. */
TEST(a_clone_of_an_allocating_function_is_its_code,
     "/hooks/a-clone-of-an-allocating-function-is-its-code")
{
    g_autoptr(GsKernel) k = kernel_of(MAP_HEAD
        "ffffffff81001000 T __vmalloc_node_range\n"
        "ffffffff81001100 t __vmalloc_node_range.part.0\n"
        "ffffffff81001200 T vfree\n"
        "ffffffff81001300 T kmalloc_large\n"
        "ffffffff81001400 t kmalloc_large.isra.0\n"
        "ffffffff81001500 T kmalloc_order\n" MAP_TAIL);
    g_autoptr(KtHooks) h = kt_hooks_resolve(table, k, false);

    g_assert_true(is_inner(h, "vfree", 0xffffffff81001110));
    g_assert_false(is_inner(h, "vfree", 0xffffffff81001410));
    g_assert_true(is_inner(h, "kmalloc_order", 0xffffffff81001410));
    g_assert_cmpuint(kt_hooks_at(h, 0xffffffff81001100).v, ==, 0);
}

#define MAP_SLAB "ffffffff81002000 T __kmalloc\n" \
                 "ffffffff81002100 T kmem_cache_alloc\n" \
                 "ffffffff81002200 T kfree\n" \
                 "ffffffff81002300 T kmem_cache_free\n"
#define MAP_VMALLOC "ffffffff81002400 T __vmalloc_node_range\n" \
                    "ffffffff81002500 T vfree\n"

/* @lack: the rows whose events are in doubt */
TEST(what_lacks_hooks_is_in_doubt, "/hooks/what-lacks-hooks-is-in-doubt")
{
    static const char *const rows[] = {
        "__kmalloc", "kfree", "__vmalloc_node_range", "vfree",
    };
    static const struct { const char *map; bool lack[4]; } cases[] = {
        { MAP_SLAB MAP_VMALLOC, { false } },
        { MAP_SLAB MAP_VMALLOC "ffffffff81002600 t vfree.part.0\n",
          { false } },
        { MAP_SLAB MAP_VMALLOC "ffffffff81002600 t vfree.isra.0\n",
          { false, false, true, false } },
        { MAP_SLAB MAP_VMALLOC "ffffffff81002600 t kmem_cache_free.part.0\n",
          { true, false, false, false } },
        { MAP_SLAB MAP_VMALLOC "ffffffff81002600 T __kfree_rcu_sheaf\n",
          { true, false, false, false } },
        { MAP_SLAB "ffffffff81002600 T vfree\n",
          { false, false, false, true } },
        { MAP_VMALLOC "ffffffff81002600 T __kmalloc\n"
          "ffffffff81002700 T kfree\n",
          { true, true, false, false } },
        { MAP_SLAB MAP_VMALLOC "ffffffff81002600 T __kmalloc_noprof\n",
          { false, true, false, false } },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *map = g_strconcat(MAP_HEAD, cases[i].map, MAP_TAIL,
                                           NULL);
        g_autoptr(GsKernel) k = kernel_of(map);
        g_autoptr(KtHooks) h = kt_hooks_resolve(table, k, false);

        for (size_t n = 0; n < G_N_ELEMENTS(rows); n++) {
            g_assert_cmpint(!(row_of(h, rows[n]).flags & KT_HOOK_UNSURE), ==,
                            !(cases[i].lack[n] && kt_hooks_va(h,
                                                       id_of(rows[n]))));
        }
    }
}

/* Before 7.0 kmem_cache_free() frees an object of another cache, too. */
TEST(a_strict_kernel_keeps_objects_of_other_caches,
     "/hooks/a-strict-kernel-keeps-objects-of-other-caches")
{
    static const struct { const char *symbol; bool strict; } cases[] = {
        { "warn_free_bad_obj", true },
        { "cache_from_obj", false },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *map = g_strdup_printf(MAP_HEAD
            "ffffffff81001000 T kmem_cache_free\n"
            "ffffffff81001100 t %s\n" MAP_TAIL, cases[i].symbol);
        g_autoptr(GsKernel) k = kernel_of(map);
        g_autoptr(KtHooks) h = kt_hooks_resolve(table, k, false);

        g_assert_cmpint(!(row_of(h, "kmem_cache_free").flags & KT_HOOK_STRICT),
                        ==, !cases[i].strict);
    }
}

/* __vunmap() was gone when the worker began to call vfree(). */
TEST(the_worker_of_vfree, "/hooks/the-worker-of-vfree")
{
    static const struct { const char *symbol; KtAnswer again; } cases[] = {
        { "delayed_vfree_work", KT_YES },
        { "delayed_vfree_work.isra.0", KT_YES },
        { "__vunmap", KT_NO },
        { "__vunmap.part.0", KT_NO },
        { "free_work", KT_UNKNOWN },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *map = g_strdup_printf(MAP_HEAD
            "ffffffff81001000 T vfree\n"
            "ffffffff81001100 t %s\n"
            "ffffffff81001200 t flush_work\n" MAP_TAIL, cases[i].symbol);
        g_autoptr(GsKernel) k = kernel_of(map);
        g_autoptr(KtHooks) h = kt_hooks_resolve(table, k, false);

        g_assert_cmpint(kt_hooks_vfree_called_again(h), ==, cases[i].again);
        g_assert_true(kt_hooks_is_vfree_worker(h, 0xffffffff81001110) ==
                      (cases[i].again == KT_YES));
        g_assert_false(kt_hooks_is_vfree_worker(h, 0xffffffff81001210));
        g_assert_true(kt_hooks_is_vfree(h, 0xffffffff81001010));
        g_assert_false(kt_hooks_is_vfree(h, 0xffffffff81001110));
    }
}

/* The part is hooked, so what the rest of vfree() calls is no part of it. */
TEST(the_rest_of_a_split_vfree_is_elsewhere,
     "/hooks/the-rest-of-a-split-vfree-is-elsewhere")
{
    g_autoptr(GsKernel) k = kernel_of(MAP_HEAD
        "ffffffff81001000 t vfree.part.0\n"
        "ffffffff81001100 T vfree\n" MAP_TAIL);
    g_autoptr(KtHooks) h = kt_hooks_resolve(table, k, false);

    g_assert_false(kt_hooks_is_vfree(h, 0xffffffff81001110));
}

TEST(an_empty_kernel_has_no_hooks, "/hooks/an-empty-kernel-has-no-hooks")
{
    g_autoptr(GsKernel) k = kernel_of(MAP_HEAD MAP_TAIL);
    g_autoptr(KtHooks) h = kt_hooks_resolve(table, k, false);

    g_assert_cmpuint(kt_hooks_n_found(h), ==, 0);
    g_assert_false(kt_hooks_page(h, 0xffffffff81001000));
    g_assert_cmpint(kt_hooks_vfree_called_again(h), ==, KT_UNKNOWN);
}

static const char map_pages[] = MAP_HEAD
    "ffffffff81001000 T __alloc_pages_noprof\n"
    "ffffffff81001100 T alloc_pages_noprof\n"
    "ffffffff81001200 T kvmalloc_node\n"
    "ffffffff81001300 T free_unref_page\n"
    "ffffffff81001400 t __free_pages_ok\n"
    "ffffffff81001500 T kfree\n"
    MAP_TAIL;

TEST(pages_are_an_option, "/hooks/pages-are-an-option")
{
    g_autoptr(GsKernel) k = kernel_of(map_pages);
    g_autoptr(KtHooks) off = kt_hooks_resolve(table, k, false);
    g_autoptr(KtHooks) on = kt_hooks_resolve(table, k, true);

    g_assert_cmpuint(kt_hooks_n_found(off), ==, 1);
    g_assert_cmpuint(kt_hooks_at(off, 0xffffffff81001000).v, ==, 0);
    g_assert_cmpuint(kt_hooks_n_found(on), ==, 4);
    g_assert_cmpuint(kt_hooks_at(on, 0xffffffff81001000).v, ==,
                     id_of("__alloc_pages_noprof").v);
    g_assert_true(kt_hook_table_is_pages(table, id_of("alloc_pages_noprof")));
    g_assert_false(kt_hook_table_is_pages(table, id_of("kfree")));
    g_assert_false(kt_hook_table_is_pages(table, (KtHookId) { 0 }));
}

/* Each kind of event has wrappers of its own. */
TEST(wrappers_of_pages_are_apart, "/hooks/wrappers-of-pages-are-apart")
{
    g_autoptr(GsKernel) k = kernel_of(map_pages);
    g_autoptr(KtHooks) h = kt_hooks_resolve(table, k, true);
    const uint64_t pages = 0xffffffff81001150, slab = 0xffffffff81001250;

    g_assert_cmpuint(kt_hooks_wrapper(h, pages, true).v, ==,
                     id_of("alloc_pages_noprof").v);
    g_assert_cmpuint(kt_hooks_wrapper(h, pages, false).v, ==, 0);
    g_assert_cmpuint(kt_hooks_wrapper(h, slab, false).v, ==,
                     id_of("kvmalloc_node").v);
    g_assert_cmpuint(kt_hooks_wrapper(h, slab, true).v, ==, 0);
    g_assert_cmpuint(kt_hooks_wrapper(h, 0xffffffff81001100, true).v, ==, 0);
    g_assert_true(kt_hooks_in_role(h, 0xffffffff81001310,
                                   KT_ROLE_PAGE_FREE));
    g_assert_false(kt_hooks_in_role(h, 0xffffffff81001310, KT_ROLE_FREE));
}

/* free_pages() without its first test: the caller has that inline. */
TEST(a_part_of_a_wrapper_is_the_wrapper,
     "/hooks/a-part-of-a-wrapper-is-the-wrapper")
{
    g_autoptr(GsKernel) k = kernel_of(MAP_HEAD
        "ffffffff81001000 T free_pages\n"
        "ffffffff81001100 T kvfree\n"
        "ffffffff81001200 t free_pages.part.0\n"
        "ffffffff81001300 t kvfree.part.0\n"
        "ffffffff81001400 T other\n"
        MAP_TAIL);
    g_autoptr(KtHooks) h = kt_hooks_resolve(table, k, true);

    g_assert_cmpuint(kt_hooks_wrapper(h, 0xffffffff81001210, true).v, ==,
                     id_of("free_pages").v);
    g_assert_cmpuint(kt_hooks_wrapper(h, 0xffffffff81001310, false).v, ==,
                     id_of("kvfree").v);
    g_assert_cmpuint(kt_hooks_wrapper(h, 0xffffffff81001410, true).v, ==, 0);
}

/* kvfree() jumps to kfree(), that to who frees pages: one return address. */
TEST(a_site_has_a_wrapper_of_each_kind,
     "/hooks/a-site-has-a-wrapper-of-each-kind")
{
    g_autoptr(GsKernel) k = kernel_of(map_pages);
    g_autoptr(KtHooks) h = kt_hooks_resolve(table, k, true);
    const uint64_t slab = 0xffffffff81001250;
    KtWrapperCache seen = { 0 };

    for (unsigned i = 0; i < 4; i++) {
        g_assert_cmpuint(kt_hooks_wrapper_cached(h, &seen, slab, i % 2).v, ==,
                         i % 2 ? 0 : id_of("kvmalloc_node").v);
    }
    g_assert_cmpuint(sizeof(seen), ==, 16);
}

/* Without BTF the table's own positions count. */
TEST(arguments_of_pages, "/hooks/arguments-of-pages")
{
    g_autoptr(GsKernel) k = kernel_of(map_pages);
    g_autoptr(KtHooks) h = kt_hooks_resolve(table, k, true);

    g_assert_cmpint(row_of(h, "__alloc_pages_noprof").size, ==, 1);
    g_assert_cmpint(row_of(h, "__alloc_pages_noprof").gfp, ==, 0);
    g_assert_cmpint(row_of(h, "__alloc_pages_bulk").list, ==, KT_NO_ARG);
}

/* Arguments that each row of a role has. */
enum { SIZE = 1, PTR = 2, ARRAY = 4, COUNT = 8 };

static unsigned arguments(const KtHook *hook)
{
    return (hook->size >= 0 ? SIZE : 0) | (hook->ptr >= 0 ? PTR : 0) |
           (hook->array >= 0 ? ARRAY : 0) | (hook->count >= 0 ? COUNT : 0);
}

TEST(every_row_has_what_its_role_needs,
     "/hooks/every-row-has-what-its-role-needs")
{
    static const unsigned needs[KT_ROLE__COUNT] = {
        [KT_ROLE_ALLOC_BULK] = ARRAY | COUNT,
        [KT_ROLE_FREE] = PTR,
        [KT_ROLE_FREE_BULK] = ARRAY | COUNT,
        [KT_ROLE_PAGE_ALLOC] = SIZE,
        [KT_ROLE_PAGE_BULK] = ARRAY | COUNT,
        [KT_ROLE_PAGE_ISOLATE] = PTR | SIZE,
        [KT_ROLE_PAGE_CONTIG] = PTR | SIZE,
        [KT_ROLE_PAGE_FREE] = PTR | SIZE,
        [KT_ROLE_PAGE_FREE_BATCH] = ARRAY,
        [KT_ROLE_PAGE_FREE_LIST] = ARRAY,
    };

    for (unsigned i = 1; i <= kt_hook_table_count(table); i++) {
        const KtHook *hook = kt_hook_table_row(table, (KtHookId) { i });

        g_assert_cmphex(needs[hook->role] & ~arguments(hook), ==, 0);
        if (hook->role == KT_ROLE_ALLOC) {
            g_assert_cmpint(hook->layer, !=, KT_LAYER_NONE);
            g_assert_true(hook->size >= 0 || hook->cache >= 0);
        }
        g_assert_cmpuint(id_of(hook->symbol).v, ==, i);
        g_assert_cmpuint(
            strlen(kt_hook_table_missing_note(table, (KtHookId) { i })), >, 0);
    }
}

int main(int argc, char **argv)
{
    int failed;

    table = kt_hook_table_new();
    failed = test_run(argc, argv);
    kt_hook_table_free(table);
    return failed;
}
