/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Accounts while memory is short, and the size classes. In test-agree.c
 * accounts are compared with a naive model.
 */
#include "tests/lib/test-main.h"
#include "kalloc-tracer/base/stack-tag.h"
#include "kalloc-tracer/model/accounts.h"

#include <string.h>

#define STACKS  20000
#define TEXT    0xffffffff81000000ull

typedef struct World {
    KtBudget *budget;
    KtDepot *stacks;
    KtAccounts a;
} World;

/* Each backtrace has a caller of its own. */
static World *world_new(uint64_t bytes)
{
    World *w = g_new0(World, 1);

    w->budget = kt_budget_new(KT_BUDGET_MIN);
    kt_budget_cap(w->budget, KT_MEM_ACCOUNTS, bytes);
    w->stacks = kt_depot_new(STACKS + 1);
    for (uint64_t i = 0; i < STACKS; i++) {
        uint64_t pc = TEXT + i * 16;

        g_assert_cmpuint(kt_depot_intern(w->stacks, &pc, 1, 0), ==, i + 1);
    }
    kt_accounts_init(&w->a, w->budget, w->stacks);
    return w;
}

static void world_free(World *w)
{
    kt_accounts_deinit(&w->a);
    g_assert_cmpuint(kt_budget_used(w->budget, KT_MEM_ACCOUNTS), ==, 0);
    kt_depot_free(w->stacks);
    kt_budget_free(w->budget);
    g_free(w);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(World, world_free)

static void allocate(World *w, uint32_t stack)
{
    const KtWho who = { .stack = stack, .layer = KT_LAYER_KMALLOC };

    kt_accounts_alloc(&w->a, &who, (KtAmount) { 10, 16 });
}

static uint64_t held_of(const World *w, uint64_t pc)
{
    gpointer id = g_hash_table_lookup(w->a.callers, GSIZE_TO_POINTER(pc));

    return id ? kt_accounts_held(&w->a, GPOINTER_TO_UINT(id))->live : 0;
}

TEST(test_callers_are_sums, "/accounts/callers-are-sums")
{
    g_autoptr(World) w = world_new(UINT64_MAX);
    KtCells callers = { 0 };
    KtTotals totals;
    const KtAccount *a;

    allocate(w, 1);
    allocate(w, 2);
    allocate(w, 2);
    kt_tables_callers(&w->a.now, &callers);
    a = kt_cells_get(&callers, kt_accounts_caller(&w->a, TEXT + 16, 0));
    g_assert_cmpuint(a->allocs, ==, 2);
    g_assert_cmpuint(a->asked, ==, 20);
    g_assert_cmpuint(a->peak, ==, 32);
    kt_cells_clear(&callers);
    totals = kt_tables_totals(&w->a.now);
    g_assert_cmpuint(totals.sum.allocs, ==, 3);
    g_assert_cmpuint(totals.sum.peak, ==, 48);
    g_assert_cmpuint(held_of(w, TEXT + 16), ==, 32);
}

/* The same address is another caller if another module lies there. */
TEST(test_callers_of_their_time, "/accounts/callers-of-their-time")
{
    g_autoptr(World) w = world_new(UINT64_MAX);
    const uint64_t pc = TEXT + 16;
    const GsStackEra later = { 9, 7 };
    uint32_t stack = kt_depot_intern(w->stacks, &pc, 1,
                                     kt_stack_tag(GS_STOP_END, later));
    uint32_t before, after;

    allocate(w, 2);
    allocate(w, stack);
    allocate(w, stack);
    before = kt_accounts_find_caller(&w->a, pc, 0);
    after = kt_accounts_find_caller(&w->a, pc, 7);
    g_assert_true(before && after && before != after);
    g_assert_cmpuint(kt_accounts_held(&w->a, before)->live, ==, 16);
    g_assert_cmpuint(kt_accounts_held(&w->a, after)->live, ==, 32);
    g_assert_cmpuint(kt_accounts_find_caller(&w->a, pc, 9), ==, 0);
}

/* Whom there is no room for is nobody, not somebody else; nothing is lost. */
TEST(test_callers_without_room, "/accounts/callers-without-room")
{
    g_autoptr(World) w = world_new(13 << 18);
    KtTotals totals;
    uint64_t held = 0;

    for (uint32_t i = 1; i <= STACKS; i++) {
        allocate(w, i);
    }
    g_assert_true(w->a.short_of_callers);
    g_assert_cmpuint(kt_budget_used(w->budget, KT_MEM_ACCOUNTS), <=, 13 << 18);
    g_assert_cmpuint(held_of(w, TEXT), ==, 16);
    g_assert_cmpuint(held_of(w, 0), >, 16);
    for (uint32_t id = 1; id < w->a.list->len; id++) {
        held += kt_accounts_held(&w->a, id)->live;
    }
    g_assert_cmpuint(held, ==, STACKS * 16);
    totals = kt_tables_totals(&w->a.now);
    g_assert_cmpuint(totals.sum.reserved, ==, STACKS * 16);
}

TEST(test_marks_without_room, "/accounts/points-without-room")
{
    g_autoptr(World) w = world_new(3 << 20);
    g_autoptr(GError) err = NULL;
    uint64_t before;

    for (uint32_t i = 1; i <= STACKS; i++) {
        allocate(w, i);
    }
    before = kt_budget_used(w->budget, KT_MEM_ACCOUNTS);
    g_assert_false(kt_accounts_set_mark(&w->a, "a", &err));
    g_assert_error(err, GS_ERROR, GS_ERROR_UNSUPPORTED);
    g_assert_cmpuint(kt_budget_used(w->budget, KT_MEM_ACCOUNTS), ==, before);
    g_assert_null(kt_accounts_tables(&w->a, "a"));
}

TEST(test_marks_stay_as_they_are, "/accounts/points-stay-as-they-are")
{
    g_autoptr(World) w = world_new(UINT64_MAX);
    const KtTables *then;

    allocate(w, 1);
    g_assert_true(kt_accounts_set_mark(&w->a, "a", NULL));
    allocate(w, 1);
    allocate(w, 2);
    then = kt_accounts_tables(&w->a, "a");
    g_assert_cmpuint(kt_tables_totals(then).sum.allocs, ==, 1);
    g_assert_cmpuint(kt_tables_totals(then).sum.peak, ==, 16);
    g_assert_true(kt_accounts_drop_mark(&w->a, "a"));
    g_assert_false(kt_accounts_drop_mark(&w->a, "a"));
}

/* ---- pages of other layers ----------------------------------------------- */

static void allocate_pages(World *w, uint32_t stack)
{
    const KtWho who = { .stack = stack, .layer = KT_LAYER_PAGES };

    kt_accounts_alloc(&w->a, &who, (KtAmount) { 4096, 4096 });
}

/* The code of stacks 3 and 4, whose frames are behind their calls. */
static GArray *some_code(void)
{
    const KtCodeRange before = { 1, 2 }, code = { TEXT + 17, TEXT + 48 };
    GArray *a = g_array_new(FALSE, FALSE, sizeof(KtCodeRange));

    g_array_append_val(a, before);
    g_array_append_val(a, code);
    return a;
}

static KtTotals totals_of(const World *w)
{
    return kt_tables_totals(&w->a.now);
}

TEST(test_backing, "/accounts/backing")
{
    g_autoptr(World) w = world_new(UINT64_MAX);
    g_autoptr(GArray) code = some_code();
    KtCells callers = { 0 };
    const KtWho who = { .stack = 3, .layer = KT_LAYER_PAGES };

    w->a.backing = code;
    for (uint32_t stack = 1; stack <= 5; stack++) {
        allocate_pages(w, stack);
        g_assert_cmpint(kt_accounts_is_backing(&w->a, stack), ==,
                        stack == 3 || stack == 4);
    }
    g_assert_cmpuint(totals_of(w).sum.allocs, ==, 3);
    g_assert_cmpuint(totals_of(w).sum.peak, ==, 3 * 4096);
    g_assert_cmpuint(totals_of(w).backing_blocks, ==, 2);
    kt_accounts_free(&w->a, &who, (KtAmount) { 4096, 4096 }, true);
    g_assert_cmpuint(totals_of(w).sum.frees, ==, 0);
    g_assert_cmpuint(totals_of(w).sum.cross, ==, 0);
    g_assert_cmpuint(totals_of(w).backing, ==, 4096);
    g_assert_cmpuint(totals_of(w).backing_unknown, ==, 0);
    kt_tables_callers(&w->a.now, &callers);
    g_assert_cmpuint(kt_cells_sum(&callers).allocs, ==, 3);
    kt_cells_clear(&callers);
}

/* A large kmalloc() by code that also gets pages for others, such as that of
 * the array of pages of a vmalloc() area, counts. */
TEST(test_only_pages_are_backing, "/accounts/only-pages-are-backing")
{
    g_autoptr(World) w = world_new(UINT64_MAX);
    g_autoptr(GArray) code = some_code();

    w->a.backing = code;
    allocate(w, 3);
    g_assert_false(kt_accounts_is_backing(&w->a, 3));
    g_assert_cmpuint(totals_of(w).sum.reserved, ==, 16);
}

/* What was not known stays counted, so that its free counts in the same
 * account. */
TEST(test_backing_unknown, "/accounts/backing-unknown")
{
    g_autoptr(World) w = world_new(UINT64_MAX);
    g_autoptr(GArray) code = some_code();

    allocate_pages(w, 3);
    allocate_pages(w, 0);
    g_assert_cmpuint(totals_of(w).backing_unknown, ==, 2);
    w->a.backing = code;
    allocate_pages(w, 3);
    allocate_pages(w, 4);
    g_assert_cmpuint(totals_of(w).backing_unknown, ==, 2);
    g_assert_cmpuint(totals_of(w).sum.allocs, ==, 3);
    g_assert_cmpuint(totals_of(w).backing_blocks, ==, 1);
}

/* A recount decides as the accounts did, whatever it sees first. */
TEST(test_recount_of_backing, "/accounts/recount-of-backing")
{
    g_autoptr(World) w = world_new(UINT64_MAX);
    g_autoptr(GArray) code = some_code();
    const KtWho object = { .stack = 3, .layer = KT_LAYER_KMALLOC };
    const KtWho pages = { .stack = 3, .layer = KT_LAYER_PAGES };
    g_autofree char *same = NULL, *other = NULL;
    KtAccounts again;

    w->a.backing = code;
    allocate_pages(w, 3);
    allocate(w, 3);
    kt_accounts_init_recount(&again, &w->a);
    kt_accounts_alloc(&again, &object, (KtAmount) { 10, 16 });
    other = kt_accounts_differ(&w->a, &again);
    g_assert_nonnull(other);
    kt_accounts_alloc(&again, &pages, (KtAmount) { 4096, 4096 });
    same = kt_accounts_differ(&w->a, &again);
    g_assert_cmpstr(same, ==, NULL);
    kt_accounts_deinit(&again);
}

/* Without an account of its own a stack cannot be told apart. */
TEST(test_fold_backing, "/accounts/fold-backing")
{
    g_autoptr(World) w = world_new(UINT64_MAX), live = world_new(UINT64_MAX);
    g_autoptr(GArray) code = some_code();

    w->a.backing = code;
    allocate_pages(w, 3);
    allocate_pages(w, 1);
    kt_accounts_fold_backing(&w->a);
    allocate_pages(live, 3);
    allocate_pages(live, 1);
    g_assert_true(kt_accounts_settle(&w->a, &live->a));
    g_assert_cmpuint(totals_of(w).sum.reserved, ==, 2 * 4096);
    g_assert_cmpuint(totals_of(w).backing_blocks, ==, 0);
    g_assert_cmpuint(totals_of(w).backing_unknown, ==, 1);
}

TEST(test_strays_without_room, "/accounts/strays-without-room")
{
    g_autoptr(World) w = world_new(2048);
    const KtStray *rest;
    guint n;

    for (uint32_t i = 1; i <= 100; i++) {
        kt_accounts_stray(&w->a, i, KT_STRAY_UNKNOWN);
    }
    n = g_hash_table_size(w->a.stray);
    rest = g_hash_table_lookup(w->a.stray, NULL);
    g_assert_cmpuint(n, <, 100);
    g_assert_cmpuint(rest->unknown, ==, 100 - (n - 1));
    g_assert_cmpuint(w->a.now.totals.stray, ==, 100);
}

TEST(test_classes_of_sizes, "/accounts/classes-of-sizes")
{
    uint64_t next = 0;

    for (uint32_t c = 0; c < kt_size_class(1 << 20); c++) {
        uint64_t lo, hi;

        kt_size_class_range(c, &lo, &hi);
        g_assert_cmpuint(lo, ==, next);
        g_assert_cmpuint(kt_size_class(lo), ==, c);
        g_assert_cmpuint(kt_size_class(hi), ==, c);
        next = hi + 1;
    }
    g_assert_cmpuint(kt_size_class(UINT64_MAX), <, KT_SIZE_CLASSES);
}
