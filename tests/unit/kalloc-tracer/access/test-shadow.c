/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The shadow: which bytes are bad after what, against a record of each byte;
 * memory; and blocks of several vCPUs side by side.
 */
#include "tests/lib/naive-shadow.h"
#include "tests/lib/test-main.h"
#include "kalloc-tracer/access/shadow.h"

#include <pthread.h>

#define BASE 0xffff888000000000ull
#define LEN  (1ull << 30)
#define SPAN 0x8000ull      /* guest memory of a page of codes */
/* Pages of host memory for what is stored by page of 4 MiB of guest memory. */
#define MORE 3u

static KtShadow *new_shadow(KtBudget *budget)
{
    KtShadow *s = kt_shadow_new(BASE, LEN, budget, NULL);

    g_assert_nonnull(s);
    return s;
}

/* A case with a shadow @s without a budget. */
#define SHADOW_TEST(fn, path) \
    TEST_IN(g_autoptr(KtShadow), KtShadow *s, new_shadow(NULL), fn, path)

SHADOW_TEST(bytes_behind_the_request_are_bad, "/shadow/behind-the-request")
{
    uint64_t va = BASE + 0x1000;

    kt_shadow_alloc(s, va, 20, 32, true);
    g_assert_true(kt_shadow_is_good(s, va, 8));
    g_assert_true(kt_shadow_is_good(s, va + 16, 4));
    g_assert_true(kt_shadow_is_good(s, va + 12, 8));
    g_assert_false(kt_shadow_is_good(s, va + 16, 8));
    g_assert_false(kt_shadow_is_good(s, va + 13, 8));
    g_assert_false(kt_shadow_is_good(s, va + 20, 1));
    g_assert_false(kt_shadow_is_good(s, va + 31, 1));
    g_assert_true(kt_shadow_is_good(s, va + 32, 8));
    g_assert_cmpint(kt_shadow_state(s, va + 19), ==, KT_SHADOW_LIVE);
    g_assert_cmpint(kt_shadow_state(s, va + 20), ==, KT_SHADOW_SLACK);
    g_assert_cmpint(kt_shadow_state(s, va + 32), ==, KT_SHADOW_UNKNOWN);
}

SHADOW_TEST(freed_bytes_are_bad_until_reuse, "/shadow/freed")
{
    uint64_t va = BASE + SPAN - 64;

    kt_shadow_alloc(s, va, 100, 128, true);
    kt_shadow_alloc(s, va + 128, 128, 128, true);
    kt_shadow_freed(s, va);
    for (unsigned i = 0; i < 128; i++) {
        g_assert_cmpint(kt_shadow_state(s, va + i), ==, KT_SHADOW_FREED);
    }
    g_assert_cmpint(kt_shadow_state(s, va + 128), ==, KT_SHADOW_LIVE);
    kt_shadow_alloc(s, va, 128, 128, true);
    g_assert_true(kt_shadow_is_good(s, va + 120, 16));
}

SHADOW_TEST(unknown_blocks_stay_unknown, "/shadow/unknown")
{
    uint64_t va = BASE + 0x1000;

    kt_shadow_freed(s, va);
    kt_shadow_freed(s, BASE - 8);
    kt_shadow_freed(s, BASE + LEN);
    kt_shadow_resize(s, va, 10, 64);
    g_assert_cmpuint(kt_shadow_bytes(s), ==, 0);
    kt_shadow_alloc(s, va, 64, 64, true);
    kt_shadow_freed(s, va + 8);
    g_assert_true(kt_shadow_is_good(s, va + 8, 8));
    /* Not aligned, not armed, too large. */
    kt_shadow_alloc(s, va + 4, 10, 64, true);
    kt_shadow_alloc(s, va + 0x100, 10, 64, false);
    kt_shadow_alloc(s, va + 0x200, 8, KT_SHADOW_BLOCK_MAX + 8, true);
    g_assert_true(kt_shadow_is_good(s, va + 30, 1));
    g_assert_true(kt_shadow_is_good(s, va + 0x120, 1));
    g_assert_true(kt_shadow_is_good(s, va + 0x220, 1));
}

SHADOW_TEST(resize_moves_the_end, "/shadow/resize")
{
    uint64_t va = BASE + 0x1000;

    kt_shadow_alloc(s, va, 200, 256, true);
    kt_shadow_resize(s, va, 100, 256);
    g_assert_false(kt_shadow_is_good(s, va + 100, 1));
    kt_shadow_resize(s, va, 256, 256);
    g_assert_true(kt_shadow_is_good(s, va + 255, 1));
    kt_shadow_freed(s, va);
    kt_shadow_resize(s, va, 256, 256);
    g_assert_false(kt_shadow_is_good(s, va, 1));
}

SHADOW_TEST(page_of_another_owner_is_unknown, "/shadow/new-owner")
{
    uint64_t va = BASE + 0x1000;

    kt_shadow_set_owner(s, va, 64, 1);
    kt_shadow_alloc(s, va, 64, 64, true);
    kt_shadow_freed(s, va);
    kt_shadow_alloc(s, va + 0x1000, 64, 64, true);
    kt_shadow_freed(s, va + 0x1000);
    kt_shadow_set_owner(s, va + 64, 64, 1);
    g_assert_false(kt_shadow_is_good(s, va, 1));
    kt_shadow_set_owner(s, va + 192, 192, 2);
    g_assert_true(kt_shadow_is_good(s, va, 64));
    g_assert_false(kt_shadow_is_good(s, va + 0x1000, 1));
    /* An owner of two pages. The second had none before. */
    kt_shadow_set_owner(s, va + 0xfc0, 128, 3);
    g_assert_false(kt_shadow_is_good(s, va + 0x1000, 1));
    kt_shadow_set_owner(s, va + 0x1000, 64, 2);
    g_assert_true(kt_shadow_is_good(s, va + 0x1000, 1));
    /* Nothing of it is left, and nothing outside is touched. */
    kt_shadow_alloc(s, va, 64, 64, true);
    kt_shadow_clear(s);
    kt_shadow_alloc(s, va, 64, 64, true);
    kt_shadow_freed(s, va);
    kt_shadow_set_owner(s, va, 64, 9);
    g_assert_false(kt_shadow_is_good(s, va, 1));
    kt_shadow_set_owner(s, BASE - 0x1000, 0x1000, 1);
    kt_shadow_set_owner(s, BASE + LEN, 0x1000, 1);
}

SHADOW_TEST(marked_pages_have_codes, "/shadow/marked")
{
    uint64_t va = BASE + 0x1000;

    g_assert_false(kt_shadow_is_marked(s, va));
    g_assert_false(kt_shadow_is_marked(&kt_shadow_none, va));
    kt_shadow_alloc(s, va + 16, 0xff0, 0xff0, true);
    g_assert_true(kt_shadow_is_marked(s, va));
    g_assert_true(kt_shadow_is_marked(s, va + 0xfff));
    g_assert_false(kt_shadow_is_marked(s, va - 1));
    g_assert_false(kt_shadow_is_marked(s, va + 0x1000));
    g_assert_false(kt_shadow_any_marked(s, BASE, 0x1000));
    g_assert_true(kt_shadow_any_marked(s, BASE, 0x1001));
    /* An access to the page in front can touch these bytes. */
    kt_shadow_alloc(s, va + 0x2008, 8, 8, true);
    g_assert_true(kt_shadow_is_marked(s, va + 0x1000));
    kt_shadow_forget(s, va + 0x1000, 0x1000);
    g_assert_true(kt_shadow_is_marked(s, va + 0x1000));
    kt_shadow_forget(s, va, 0xff8);
    g_assert_true(kt_shadow_is_marked(s, va));
    kt_shadow_forget(s, va, 0x3000);
    g_assert_false(kt_shadow_any_marked(s, va, 0x3000));
    kt_shadow_fresh(s, va, 8);
    kt_shadow_release(s, va + 0x1000, 0x1000);
    g_assert_true(kt_shadow_is_marked(s, va));
    g_assert_true(kt_shadow_is_marked(s, va + 0x1000));
    kt_shadow_clear(s);
    g_assert_false(kt_shadow_any_marked(s, BASE, LEN));
}

/* As ksize() grants before Linux 6.1. */
SHADOW_TEST(slack_can_be_used, "/shadow/slack-used")
{
    uint64_t va = BASE + 0x1000;

    kt_shadow_alloc(s, va, 5, 64, true);
    kt_shadow_alloc(s, va + 64, 20, 64, true);
    kt_shadow_use_slack(s, va);
    g_assert_true(kt_shadow_spans_good(s, va, 64));
    g_assert_false(kt_shadow_is_good(s, va + 64 + 20, 1));
    kt_shadow_resize(s, va, 8, 64);
    g_assert_false(kt_shadow_is_good(s, va + 8, 1));
    kt_shadow_freed(s, va);
    kt_shadow_use_slack(s, va);
    g_assert_false(kt_shadow_is_good(s, va, 1));
    kt_shadow_use_slack(s, va + 72);
    g_assert_false(kt_shadow_is_good(s, va + 64 + 20, 1));
    kt_shadow_use_slack(s, BASE - 8);
    kt_shadow_use_slack(s, BASE + LEN);
}

/* The free of the first block was not seen, and its page is a slab now. */
SHADOW_TEST(remains_of_an_unseen_free_go, "/shadow/unseen-free")
{
    uint64_t va = BASE + 0x10000;

    kt_shadow_alloc(s, va, 0x3ff0, 0x4000, true);
    kt_shadow_alloc(s, va + 0x100, 0x80, 0x80, true);
    g_assert_cmpint(kt_shadow_state(s, va + 0x180), ==, KT_SHADOW_UNKNOWN);
    g_assert_cmpint(kt_shadow_state(s, va + 0x3ff8), ==, KT_SHADOW_UNKNOWN);
    kt_shadow_freed(s, va + 0x100);
    g_assert_cmpint(kt_shadow_state(s, va + 0x17f), ==, KT_SHADOW_FREED);
    g_assert_true(kt_shadow_is_good(s, va + 0x180, 8));
}

SHADOW_TEST(fresh_slots_are_those_never_used, "/shadow/fresh")
{
    uint64_t va = BASE + 0x2000;

    kt_shadow_alloc(s, va + 64, 64, 64, true);
    kt_shadow_fresh(s, va, 192);
    g_assert_cmpint(kt_shadow_state(s, va), ==, KT_SHADOW_FRESH);
    g_assert_cmpint(kt_shadow_state(s, va + 64), ==, KT_SHADOW_LIVE);
    g_assert_cmpint(kt_shadow_state(s, va + 128), ==, KT_SHADOW_FRESH);
    kt_shadow_freed(s, va + 64);
    kt_shadow_forget_freed(s);
    for (unsigned i = 0; i < 192; i += 8) {
        g_assert_cmpint(kt_shadow_state(s, va + i), ==, KT_SHADOW_UNKNOWN);
    }
}

SHADOW_TEST(first_bad_byte_of_a_range, "/shadow/ranges")
{
    uint64_t va = BASE + 0x3000, bad = 0;
    KtShadowState state = KT_SHADOW_UNKNOWN;

    kt_shadow_alloc(s, va, 4000, 4096, true);
    g_assert_false(kt_shadow_find_bad(s, va, 4000, &bad, &state));
    g_assert_true(kt_shadow_find_bad(s, va + 1, 4000, &bad, &state));
    g_assert_cmphex(bad, ==, va + 4000);
    g_assert_cmpint(state, ==, KT_SHADOW_SLACK);
    g_assert_true(kt_shadow_find_bad(s, 0, UINT64_MAX, &bad, &state));
    g_assert_cmphex(bad, ==, va + 4000);
    g_assert_false(kt_shadow_find_bad(s, va, 0, &bad, &state));
    kt_shadow_freed(s, va);
    g_assert_true(kt_shadow_find_bad(s, va + 3, 1, &bad, &state));
    g_assert_cmphex(bad, ==, va + 3);
    g_assert_cmpint(state, ==, KT_SHADOW_FREED);
}

/* A refused page of codes means: nothing is known there. */
TEST(memory_is_charged_by_pages, "/shadow/memory")
{
    KtBudget *b = kt_budget_new(KT_BUDGET_MIN);
    KtShadow *s = new_shadow(b);

    kt_budget_cap(b, KT_MEM_SHADOW, (2 + MORE) * 4096);
    g_assert_true(kt_shadow_alloc(s, BASE, 8, 64, true));
    g_assert_true(kt_shadow_alloc(s, BASE + SPAN - 64, 65, 128, true));
    g_assert_cmpuint(kt_shadow_bytes(s), ==, (2 + MORE) * 4096);
    g_assert_cmpuint(kt_budget_used(b, KT_MEM_SHADOW), ==, (2 + MORE) * 4096);
    g_assert_false(kt_shadow_alloc(s, BASE + 5 * SPAN, 8, 64, true));
    g_assert_true(kt_shadow_alloc(s, BASE + 5 * SPAN, 8, 64, false));
    g_assert_true(kt_shadow_is_good(s, BASE + 5 * SPAN + 8, 8));
    kt_shadow_freed(s, BASE + 5 * SPAN);
    g_assert_true(kt_shadow_is_good(s, BASE + 5 * SPAN, 8));
    g_assert_false(kt_shadow_is_good(s, BASE + 8, 8));
    kt_shadow_clear(s);
    g_assert_true(kt_shadow_is_good(s, BASE + 8, 8));
    g_assert_cmpuint(kt_budget_used(b, KT_MEM_SHADOW), ==, 0);
    kt_shadow_alloc(s, BASE + 9 * SPAN, 8, 64, true);
    kt_shadow_free(s);
    g_assert_cmpuint(kt_budget_used(b, KT_MEM_SHADOW), ==, 0);
    kt_budget_free(b);
}

/* Each page of owners is charged before it is written. Without room, an owner
 * is not stored, and no block on its page is marked. */
TEST(owners_are_charged, "/shadow/owners-are-charged")
{
    const uint64_t far = 8 << 20, pages = LEN / 4096;
    KtBudget *b = kt_budget_new(KT_BUDGET_MIN);
    g_autoptr(KtShadow) s = new_shadow(b);
    uint64_t all = 0;

    kt_shadow_set_owner(s, BASE, 64, 1);
    g_assert_cmpuint(kt_shadow_bytes(s), ==, (1 + MORE) * 4096);
    kt_shadow_set_owner(s, BASE + 64, 64, 1);
    kt_shadow_set_owner(s, BASE, 64, 2);
    g_assert_cmpuint(kt_shadow_bytes(s), ==, (1 + MORE) * 4096);
    /* Another page of owners, the same page of marks. */
    kt_shadow_set_owner(s, BASE + far, 64, 1);
    g_assert_cmpuint(kt_shadow_bytes(s), ==, (3 + MORE) * 4096);
    kt_budget_cap(b, KT_MEM_SHADOW, (4 + MORE) * 4096);
    kt_shadow_set_owner(s, BASE + 2 * far, 64, 1);
    g_assert_cmphex(s->owner[2 * far / 4096], ==, 0);
    g_assert_false(kt_shadow_alloc(s, BASE + 2 * far, 8, 64, true));
    g_assert_true(kt_shadow_is_good(s, BASE + 2 * far + 8, 1));
    kt_shadow_clear(s);
    g_assert_cmpuint(kt_budget_used(b, KT_MEM_SHADOW), ==, 0);
    for (uint64_t i = 0; i < pages; i++) {
        all |= s->owner[i];
    }
    g_assert_cmphex(all, ==, 0);
    kt_shadow_set_owner(s, BASE, 64, 3);
    g_assert_cmpuint(kt_budget_used(b, KT_MEM_SHADOW), ==, (1 + MORE) * 4096);
    g_clear_pointer(&s, kt_shadow_free);
    g_assert_cmpuint(kt_budget_used(b, KT_MEM_SHADOW), ==, 0);
    kt_budget_free(b);
}

TEST(ranges_that_are_none, "/shadow/bad-arguments")
{
    const uint64_t bad[][2] = {
        { BASE + 8, LEN }, { BASE, 0 }, { BASE, 1ull << 60 },
        { -SPAN, 2 * SPAN },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) err = NULL;

        g_assert_null(kt_shadow_new(bad[i][0], bad[i][1], NULL, &err));
        g_assert_nonnull(err);
    }
}

TEST(as_a_record_of_each_byte, "/shadow/naive")
{
    g_autoptr(GRand) r = g_rand_new_with_seed(36);

    for (unsigned round = 0; round < 4; round++) {
        size_t len = NAIVE_SHADOW_OPERATION * 1500u;
        g_autofree uint8_t *data = g_malloc(len);

        for (size_t i = 0; i < len; i++) {
            data[i] = (uint8_t)g_rand_int(r);
        }
        naive_shadow_run(data, len);
    }
}

/* ---- threads ------------------------------------------------------------ */

#define VCPUS 4u
#define ROUNDS 2000u

typedef struct Vcpu {
    KtShadow *s;
    uint64_t va;
    pthread_t thread;
} Vcpu;

/* Blocks of 24 bytes, side by side with those of the other vCPUs: three share
 * a word of codes. */
static void *one_vcpu(void *opaque)
{
    Vcpu *v = opaque;

    for (unsigned i = 0; i < ROUNDS; i++) {
        for (unsigned k = 0; k < 8; k++) {
            uint64_t va = v->va + (uint64_t)k * 24 * VCPUS;

            kt_shadow_alloc(v->s, va, 20, 24, true);
            g_assert_true(kt_shadow_is_good(v->s, va + 16, 4));
            g_assert_false(kt_shadow_is_good(v->s, va + 16, 8));
            kt_shadow_freed(v->s, va);
            g_assert_false(kt_shadow_is_good(v->s, va, 8));
            g_assert_true(kt_shadow_is_good(v->s, BASE + LEN / 2, 8));
        }
    }
    return NULL;
}

SHADOW_TEST(vcpus_side_by_side, "/shadow/vcpus")
{
    Vcpu v[VCPUS];

    for (unsigned i = 0; i < VCPUS; i++) {
        v[i] = (Vcpu) { .s = s, .va = BASE + SPAN - 240 + (uint64_t)i * 24 };
        g_assert_cmpint(pthread_create(&v[i].thread, NULL, one_vcpu, &v[i]),
                        ==, 0);
    }
    for (unsigned i = 0; i < VCPUS; i++) {
        pthread_join(v[i].thread, NULL);
    }
    g_assert_cmpuint(kt_shadow_bytes(s), ==, (2 + MORE) * 4096);
}
