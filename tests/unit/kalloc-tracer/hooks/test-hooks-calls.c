/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether functions call hooks, as the table assumes, is found in their code:
 * here made-up functions of each architecture, which consist of calls and
 * jumps.
 */
#include "tests/lib/test-main.h"
#include "kalloc-tracer/hooks/hooks.h"

#include <inttypes.h>
#include <string.h>

#define FUNCTION    0x400               /* bytes of each function */

/* The functions, in the order of their addresses. */
typedef enum Function {
    KMALLOC, KFREE, KREALLOC, KFREE_SENSITIVE, KVFREE, ALLOC_INNER, FREE_INNER,
    HELPER, FAR_HELPER, FUNCTIONS
} Function;

static const char *const names[FUNCTIONS] = {
    "__kmalloc_node_track_caller", "kfree", "krealloc", "kfree_sensitive",
    "kvfree", "__kmem_cache_alloc_node", "__kmem_cache_free", "helper",
    "far_helper",
};

/* An instruction that does nothing, how many bytes it has, and those of a call
 * to somewhere else and of a jump. */
typedef struct Arch {
    const char *name, *marker;
    uint64_t base;
    uint32_t nothing;
    unsigned len, call_len, jump_len;
} Arch;

static const Arch x86_64 = {
    "x86_64", "x86_64_start_kernel", 0xffffffff81000000, 0x90, 1, 5, 5,
};
static const Arch arm64 = {
    "aarch64", "__primary_switched", 0xffff800008000000, 0xd503201f, 4, 4, 4,
};
static const Arch riscv64 = {
    "riscv64", "_start_kernel", 0xffffffff80000000, 0x00000013, 4, 8, 8,
};

typedef struct World {
    const Arch *arch;
    uint8_t code[FUNCTIONS * FUNCTION];
    size_t used[FUNCTIONS];
    bool unreadable;
    KtHookTable *table;
    GsKernel *kernel;
    KtHooks *hooks;
} World;

static uint64_t entry(const World *w, Function f)
{
    return w->arch->base + f * FUNCTION;
}

static void put(World *w, Function f, uint32_t bits, size_t len)
{
    memcpy(w->code + f * FUNCTION + w->used[f], &bits, len);
    w->used[f] += len;
}

static void put_far(World *w, Function f, int32_t off, bool call)
{
    uint32_t high = (uint32_t)(off + 0x800) & 0xfffff000;
    uint32_t low = (uint32_t)off - high, reg = call ? 1 : 6;

    put(w, f, high | reg << 7 | 0x17, 4);
    put(w, f, low << 20 | reg << 15 | (call ? reg : 0) << 7 | 0x67, 4);
}

/* Add an instruction of @f that leads to @to. Return its address. */
static uint64_t lead(World *w, Function f, Function to, bool call)
{
    uint64_t at = entry(w, f) + w->used[f];
    int32_t off = entry(w, to) - at;

    if (w->arch == &x86_64) {
        put(w, f, call ? 0xe8 : 0xe9, 1);
        put(w, f, off - 5, 4);
    } else if (w->arch == &arm64) {
        put(w, f, (call ? 0x94000000 : 0x14000000) |
                  (off >> 2 & 0x3ffffff), 4);
    } else {
        put_far(w, f, off, call);
    }
    return at;
}

static void call(World *w, Function f, Function to)
{
    lead(w, f, to, true);
}

static void world_init(World *w, const Arch *arch)
{
    g_autoptr(GString) map = g_string_new(NULL);
    g_autoptr(GError) err = NULL;

    *w = (World) { .arch = arch, .table = kt_hook_table_new() };
    for (size_t i = 0; i < sizeof(w->code); i += arch->len) {
        memcpy(w->code + i, &arch->nothing, arch->len);
    }
    g_string_append_printf(map, "%" PRIx64 " T _stext\n%" PRIx64 " T _text\n",
                           arch->base, arch->base);
    for (Function f = 0; f < FUNCTIONS; f++) {
        g_string_append_printf(map, "%" PRIx64 " T %s\n", entry(w, f),
                               names[f]);
    }
    g_string_append_printf(map, "%" PRIx64 " T %s\n%" PRIx64 " T _etext\n%"
                           PRIx64 " R linux_banner\n", entry(w, FUNCTIONS),
                           arch->marker, arch->base + 0x100000,
                           arch->base + 0x110000);
    w->kernel = gs_kernel_new_from_data(map->str, map->len, "System.map",
                                        &err);
    g_assert_no_error(err);
    g_assert_cmpstr(gs_kernel_arch(w->kernel)->name, ==, arch->name);
    w->hooks = kt_hooks_resolve(w->table, w->kernel, 0);
}

static void world_deinit(World *w)
{
    kt_hooks_free(w->hooks);
    gs_kernel_free(w->kernel);
    kt_hook_table_free(w->table);
}

static bool read_code(void *opaque, uint64_t va, void *buf, size_t len)
{
    const World *w = opaque;
    uint64_t at = va - w->arch->base;

    if (w->unreadable || at > sizeof(w->code) ||
        len > sizeof(w->code) - at) {
        return false;
    }
    memcpy(buf, w->code + at, len);
    return true;
}

static void check(World *w)
{
    const KtCodeReader reader = { read_code, w };

    kt_hooks_check_calls(w->hooks, w->kernel, &reader);
}

static KtHookId id_of(const World *w, Function f)
{
    return kt_hook_table_find(w->table, names[f]);
}

static KtHookRow row_of(const World *w, Function f)
{
    return kt_hooks_row(w->hooks, id_of(w, f));
}

static bool begins(const World *w, Function f, const char *answer)
{
    const char *calls = kt_hooks_calls(w->hooks, id_of(w, f));

    return calls && g_str_has_prefix(calls, answer);
}

/* Neither hooks nor rows differ from those without a look at the code. */
static void assert_nothing_changed(const World *w)
{
    g_assert_null(kt_hooks_site(w->hooks, 0));
    g_assert_cmpuint(kt_hooks_n_found(w->hooks), ==, 4);
    g_assert_cmphex(kt_hooks_va(w->hooks, id_of(w, ALLOC_INNER)), ==, 0);
    g_assert_false(row_of(w, KREALLOC).self_allocs);
    g_assert_false(row_of(w, KREALLOC).self_frees);
    g_assert_false(row_of(w, KFREE_SENSITIVE).self_frees);
}

static void hooks_are_called(gconstpointer arch)
{
    World w;

    world_init(&w, arch);
    call(&w, KREALLOC, KMALLOC);
    call(&w, KREALLOC, KFREE);
    lead(&w, KFREE_SENSITIVE, KFREE, false);
    lead(&w, KVFREE, KFREE, false);
    check(&w);
    g_assert_true(begins(&w, KREALLOC, "yes"));
    g_assert_true(begins(&w, KFREE_SENSITIVE, "yes"));
    g_assert_true(begins(&w, KVFREE, "yes"));
    g_assert_null(kt_hooks_calls(w.hooks, id_of(&w, KFREE)));
    assert_nothing_changed(&w);
    world_deinit(&w);
}

TEST_WITH(hooks_are_called, "/hooks-calls/called/x86-64", &x86_64)
TEST_WITH(hooks_are_called, "/hooks-calls/called/arm64", &arm64)
TEST_WITH(hooks_are_called, "/hooks-calls/called/riscv64", &riscv64)

static void a_helper_calls(gconstpointer arch)
{
    World w;

    world_init(&w, arch);
    call(&w, KREALLOC, HELPER);
    call(&w, KREALLOC, KFREE);
    call(&w, HELPER, KMALLOC);
    call(&w, KFREE_SENSITIVE, KVFREE);
    call(&w, KVFREE, HELPER);
    check(&w);
    g_assert_true(begins(&w, KREALLOC, "yes"));
    g_assert_true(begins(&w, KFREE_SENSITIVE, "yes"));
    assert_nothing_changed(&w);
    world_deinit(&w);
}

TEST_WITH(a_helper_calls, "/hooks-calls/helper/x86-64", &x86_64)
TEST_WITH(a_helper_calls, "/hooks-calls/helper/arm64", &arm64)
TEST_WITH(a_helper_calls, "/hooks-calls/helper/riscv64", &riscv64)

static void assert_site(const World *w, unsigned i, uint64_t va, uint64_t ra,
                        Function f)
{
    const KtHookSite *site = kt_hooks_site(w->hooks, i);

    g_assert_nonnull(site);
    g_assert_cmphex(site->va, ==, va);
    g_assert_cmphex(site->ra, ==, ra);
    g_assert_cmpuint(site->id.v, ==, id_of(w, f).v);
    g_assert_true(kt_hooks_page(w->hooks, va));
}

static void what_is_inlined_is_hooked(gconstpointer arch)
{
    uint64_t at[3];
    World w;

    world_init(&w, arch);
    at[0] = lead(&w, KREALLOC, ALLOC_INNER, true);
    call(&w, KREALLOC, KFREE);
    at[1] = lead(&w, KREALLOC, FREE_INNER, true);
    at[2] = lead(&w, KFREE_SENSITIVE, FREE_INNER, false);
    call(&w, KMALLOC, ALLOC_INNER);
    check(&w);
    g_assert_true(begins(&w, KREALLOC, "no, it is inlined"));
    g_assert_true(begins(&w, KFREE_SENSITIVE, "no, it is inlined"));
    assert_site(&w, 0, at[0], at[0] + w.arch->call_len, ALLOC_INNER);
    assert_site(&w, 1, at[1], at[1] + w.arch->call_len, FREE_INNER);
    assert_site(&w, 2, at[2], 0, FREE_INNER);
    g_assert_null(kt_hooks_site(w.hooks, 3));
    g_assert_cmphex(kt_hooks_va(w.hooks, id_of(&w, ALLOC_INNER)), ==,
                    entry(&w, ALLOC_INNER));
    g_assert_cmpuint(kt_hooks_at(w.hooks, entry(&w, ALLOC_INNER)).v, ==, 0);
    world_deinit(&w);
}

TEST_WITH(what_is_inlined_is_hooked, "/hooks-calls/inlined/x86-64", &x86_64)
TEST_WITH(what_is_inlined_is_hooked, "/hooks-calls/inlined/arm64", &arm64)
TEST_WITH(what_is_inlined_is_hooked, "/hooks-calls/inlined/riscv64", &riscv64)

/* Code that calls no hook, or only too deep. */
static void the_row_records_itself(gconstpointer arch)
{
    World w;

    world_init(&w, arch);
    call(&w, KREALLOC, KFREE);
    call(&w, KREALLOC, HELPER);
    call(&w, HELPER, FAR_HELPER);
    call(&w, FAR_HELPER, KMALLOC);
    call(&w, KFREE_SENSITIVE, HELPER);
    call(&w, KVFREE, HELPER);
    check(&w);
    g_assert_true(begins(&w, KREALLOC, "no, it is recorded itself"));
    g_assert_true(row_of(&w, KREALLOC).self_allocs);
    g_assert_false(row_of(&w, KREALLOC).self_frees);
    g_assert_true(begins(&w, KFREE_SENSITIVE, "no, it is recorded itself"));
    g_assert_true(row_of(&w, KFREE_SENSITIVE).self_frees);
    g_assert_true(begins(&w, KVFREE, "no, what it does is not recorded"));
    g_assert_true(row_of(&w, KFREE).flags & KT_HOOK_UNSURE);
    world_deinit(&w);
}

TEST_WITH(the_row_records_itself, "/hooks-calls/itself/x86-64", &x86_64)
TEST_WITH(the_row_records_itself, "/hooks-calls/itself/arm64", &arm64)
TEST_WITH(the_row_records_itself, "/hooks-calls/itself/riscv64", &riscv64)

/* Nor does code that only consists of padding. */
TEST(unreadable_code_changes_nothing, "/hooks-calls/unreadable")
{
    World w;

    world_init(&w, &x86_64);
    w.unreadable = true;
    check(&w);
    g_assert_true(begins(&w, KREALLOC, "not known"));
    g_assert_true(begins(&w, KVFREE, "not known"));
    assert_nothing_changed(&w);
    w.unreadable = false;
    check(&w);
    g_assert_true(begins(&w, KREALLOC, "not known"));
    assert_nothing_changed(&w);
    world_deinit(&w);
}

/* A conditional jump is taken now and then, and code that cannot be decoded may
 * do anything. */
TEST(doubtful_code_changes_nothing, "/hooks-calls/doubtful")
{
    World w;

    world_init(&w, &x86_64);
    put(&w, KREALLOC, 0x840f, 2);
    put(&w, KREALLOC, entry(&w, FREE_INNER) - entry(&w, KREALLOC) - 6, 4);
    put(&w, KFREE_SENSITIVE, 0x06, 1);
    call(&w, KFREE_SENSITIVE, FREE_INNER);
    check(&w);
    g_assert_true(begins(&w, KREALLOC, "not known"));
    g_assert_true(begins(&w, KFREE_SENSITIVE, "not known"));
    assert_nothing_changed(&w);
    world_deinit(&w);
}

TEST(answers_are_kept, "/hooks-calls/kept")
{
    g_autoptr(KtHooks) again = NULL;
    KtHooks *before;
    uint64_t at;
    World w;

    world_init(&w, &x86_64);
    at = lead(&w, KREALLOC, FREE_INNER, true);
    check(&w);
    g_assert_true(row_of(&w, KREALLOC).self_allocs);
    before = w.hooks;
    again = kt_hooks_resolve(w.table, w.kernel, 0);
    kt_hooks_keep_calls(again, before);
    w.hooks = again;
    g_assert_true(begins(&w, KREALLOC, "no, it is recorded itself"));
    g_assert_true(row_of(&w, KREALLOC).self_allocs);
    g_assert_true(row_of(&w, KFREE).flags & KT_HOOK_UNSURE);
    assert_site(&w, 0, at, at + w.arch->call_len, FREE_INNER);
    g_assert_cmpuint(kt_hooks_n_found(again), ==, kt_hooks_n_found(before));
    w.hooks = before;
    world_deinit(&w);
}
