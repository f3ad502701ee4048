/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pointers in instructions are roots. The code of the guest is the first two
 * pages of its variables here, and the page before them, which is not mapped.
 */
#include "tests/lib/guest-memory.h"
#include "tests/lib/test-main.h"

#include <string.h>

#define OBJECT LG_OBJECT(5)

static LeakGuest *guest_with_code(uint64_t end)
{
    LeakGuest *g = leak_guest_new();

    gs_symtab_free(g->k.symtab);
    g->k.symtab = lg_symbols("_etext", end);
    return g;
}

/* Write mov $VALUE, %rcx. */
static void put_mov(LeakGuest *g, uint64_t va, uint64_t value)
{
    memcpy(lg_at(g, va, 2), "\x48\xb9", 2);
    for (unsigned i = 0; i < 8; i++) {
        *lg_at(g, va + 2 + i, 1) = value >> 8 * i;
    }
}

/* The address is at @va, and its value is @value: is the object in use? */
static void check(uint64_t va, uint64_t value, bool in_use)
{
    g_autoptr(LeakGuest) g = guest_with_code(LG_IMAGE + 0x2000);

    put_mov(g, va, value);
    g_assert_cmpint(lg_is_leaked(g, OBJECT), ==, !in_use);
}

TEST(test_a_pointer_in_code, "/leak-roots-code/a-pointer")
{
    check(LG_IMAGE + LG_ROOT + 1, OBJECT, true);
    check(LG_IMAGE + LG_ROOT + 1, OBJECT + 8, false);
    check(LG_IMAGE + LG_ROOT + 1, OBJECT - 8, false);
    /* in two pages */
    for (unsigned i = 1; i < 10; i++) {
        check(LG_IMAGE + 0x1000 - i, OBJECT, true);
    }
}

/* The symbols of the code are not there, or no code can be so large. */
TEST(test_no_code, "/leak-roots-code/no-code")
{
    static const uint64_t ends[] = {
        LG_IMAGE - 0x1000, LG_IMAGE - 0x2000, 0, UINT64_MAX,
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(ends); i++) {
        g_autoptr(LeakGuest) g = guest_with_code(ends[i]);

        put_mov(g, LG_IMAGE + LG_ROOT + 1, OBJECT);
        g_assert_true(lg_is_leaked(g, OBJECT));
    }
}

TEST(test_refs, "/leak-roots-code/refs")
{
    g_autoptr(LeakGuest) g = guest_with_code(LG_IMAGE + 0x2000);
    const KtLeakPlan plan = { .vm = &g->vm, .kernel = &g->k };
    g_autoptr(GArray) refs = NULL;
    uint64_t more, bytes;
    const KtRef *r;

    put_mov(g, LG_IMAGE + LG_ROOT + 1, OBJECT);
    g_assert_true(kt_refs(g->t, &plan, OBJECT, OBJECT + 63, &refs, &more,
                          &bytes, NULL));
    g_assert_cmpuint(refs->len, ==, 1);
    r = &g_array_index(refs, KtRef, 0);
    g_assert_cmpint(r->place, ==, KT_PLACE_CODE);
    g_assert_cmpstr(kt_place_name(r->place), ==, "code");
    g_assert_cmphex(r->va, ==, LG_IMAGE + LG_ROOT + 1);
    g_assert_cmphex(r->value, ==, OBJECT);
}

/* It is what keeps a block of a module in use. */
TEST(test_holder, "/leak-roots-code/holder")
{
    g_autoptr(LeakGuest) g = guest_with_code(LG_IMAGE + 0x2000);
    const KtLeakPlan plan = { .vm = &g->vm, .kernel = &g->k };
    g_autoptr(GArray) blocks = g_array_new(FALSE, FALSE, sizeof(KtReached));
    KtReached r = { .va = OBJECT, .layer = KT_LAYER_CACHE };

    put_mov(g, LG_IMAGE + LG_ROOT + 1, OBJECT);
    g_array_append_val(blocks, r);
    g_assert_true(kt_leak_classify(g->t, &plan, blocks, NULL));
    r = g_array_index(blocks, KtReached, 0);
    g_assert_cmpint(r.reach, ==, KT_REACH_KEPT);
    g_assert_cmpint(r.holder.place, ==, KT_PLACE_CODE);
}
