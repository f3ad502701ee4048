/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Suspects that wait for a look at the allocator's lists: what each sequence of
 * looks decides, and when. */
#include "kalloc-tracer/access/verify.h"
#include "tests/lib/test-main.h"

#define PC      0xffffffff81001000ull
#define BLOCK   0xffff888000010000ull
#define START   5000u           /* guest time of the first look */

static const KtCacheId cache = { 7 }, other = { 8 };

/* @look: what the next look says; @asked: accesses of the last look */
typedef struct World {
    KtLook look;
    unsigned asked;
    unsigned n[KT_VERDICT_UNSEEN + 1], first;
} World;

static void look(void *opaque, KtHeldAccess *held, unsigned n)
{
    World *w = opaque;

    w->asked = n;
    for (unsigned i = 0; i < n; i++) {
        held[i].look = w->look;
    }
}

static void verdict(void *opaque, const KtHeldAccess *held, KtVerifyVerdict v,
                    bool first)
{
    World *w = opaque;

    g_assert_cmphex(held->ev.va, ==, held->bad);
    w->n[v]++;
    w->first += first;
}

static bool hold(KtVerify *v, uint64_t pc, KtCacheId id, uint64_t va)
{
    return kt_verify_hold(v, &(KtHeldAccess) {
        .ev = { .va = va }, .pc = pc, .bad = va, .cache = id });
}

static void make_look(KtVerify *v, World *w, KtLook what, uint64_t us)
{
    w->look = what;
    w->asked = 0;
    kt_verify_look(v, us, look, verdict, w);
}

/* Hold an access and look at it at all times, by letters: l(isted), r(eused),
 * m(issing), u(nreadable). Expect a verdict after the last. */
static void expect(const char *looks, KtVerifyVerdict want)
{
    static const uint64_t at[] = { START, START + 1000, START + 11000,
                                   START + 111000 };
    g_autoptr(KtVerify) v = kt_verify_new();
    World w = { 0 };

    g_assert_cmpint(kt_verify_ask(v, PC, cache), ==, KT_VERIFY_LOOK);
    g_assert_true(hold(v, PC, cache, BLOCK));
    for (unsigned i = 0; looks[i]; i++) {
        g_assert_true(kt_verify_waits(v));
        g_assert_cmpint(kt_verify_ask(v, PC, cache), ==, KT_VERIFY_HOLD);
        g_assert_false(i && kt_verify_claim(v, at[i] - 1));
        g_assert_true(kt_verify_claim(v, at[i]));
        g_assert_false(kt_verify_claim(v, at[i]));
        make_look(v, &w, looks[i] == 'l' ? KT_LOOK_LISTED :
                         looks[i] == 'r' ? KT_LOOK_REUSED :
                         looks[i] == 'm' ? KT_LOOK_MISSING :
                                           KT_LOOK_UNREADABLE, at[i]);
        g_assert_cmpuint(w.asked, ==, 1);
    }
    g_assert_false(kt_verify_waits(v));
    g_assert_cmpuint(w.n[want], ==, 1);
    g_assert_cmpuint(w.n[0] + w.n[1] + w.n[2], ==, 1);
    g_assert_cmpuint(w.first, ==, want == KT_VERDICT_UNSEEN);
    g_assert_cmpint(kt_verify_ask(v, PC, cache), ==,
                    want == KT_VERDICT_UNSEEN ? KT_VERIFY_UNSEEN :
                                                KT_VERIFY_STANDS);
}

static void test_decisions(void)
{
    expect("l", KT_VERDICT_STANDS);
    expect("r", KT_VERDICT_STANDS);
    expect("ml", KT_VERDICT_STANDS);
    expect("mmml", KT_VERDICT_STANDS);
    expect("ummr", KT_VERDICT_STANDS);
    expect("mmmm", KT_VERDICT_UNSEEN);
    expect("uumm", KT_VERDICT_UNSEEN);
    expect("uuum", KT_VERDICT_UNVERIFIED);
    expect("mmmu", KT_VERDICT_UNVERIFIED);
    expect("uuuu", KT_VERDICT_UNVERIFIED);
}

/* A recorded allocation of the object decides. */
static void test_release(void)
{
    g_autoptr(KtVerify) v = kt_verify_new();
    World w = { 0 };

    kt_verify_ask(v, PC, cache);
    hold(v, PC, cache, BLOCK + 16);
    kt_verify_release(v, BLOCK + 17, 64, verdict, &w);
    kt_verify_release(v, BLOCK - 64, 80, verdict, &w);
    g_assert_true(kt_verify_waits(v));
    kt_verify_release(v, BLOCK, 17, verdict, &w);
    g_assert_false(kt_verify_waits(v));
    g_assert_false(kt_verify_claim(v, UINT64_MAX - 1));
    g_assert_cmpuint(w.n[KT_VERDICT_UNVERIFIED], ==, 1);
    g_assert_cmpint(kt_verify_ask(v, PC, cache), ==, KT_VERIFY_LOOK);
    kt_verify_stands(v, PC, cache);
    g_assert_cmpint(kt_verify_ask(v, PC, cache), ==, KT_VERIFY_STANDS);
}

/* What waits for a disarmed cache is decided with it; no other cache is. */
static void test_disarm(void)
{
    g_autoptr(KtVerify) v = kt_verify_new();
    World w = { 0 };
    uint64_t us = START;

    kt_verify_ask(v, PC, cache);
    hold(v, PC, cache, BLOCK);
    for (unsigned i = 0; i < 3; i++, us += 100000) {
        make_look(v, &w, KT_LOOK_MISSING, us);
    }
    kt_verify_ask(v, PC + 1, cache);
    hold(v, PC + 1, cache, BLOCK + 64);
    kt_verify_ask(v, PC, other);
    hold(v, PC, other, BLOCK + 4096);
    make_look(v, &w, KT_LOOK_MISSING, us);
    g_assert_cmpuint(w.asked, ==, 3);
    g_assert_cmpuint(w.n[KT_VERDICT_UNSEEN], ==, 2);
    g_assert_cmpuint(w.first, ==, 1);
    g_assert_true(kt_verify_is_disarmed(v, cache));
    g_assert_false(kt_verify_is_disarmed(v, other));
    g_assert_true(kt_verify_waits(v));
    make_look(v, &w, KT_LOOK_LISTED, us);
    g_assert_cmpuint(w.asked, ==, 0);
    make_look(v, &w, KT_LOOK_LISTED, us + 1000);
    g_assert_cmpuint(w.n[KT_VERDICT_STANDS], ==, 1);
}

static void test_limits(void)
{
    g_autoptr(KtVerify) v = kt_verify_new();
    World w = { 0 };

    for (unsigned i = 0; i < KT_VERIFY_HELD_MAX; i++) {
        g_assert_true(hold(v, PC, cache, BLOCK + i));
    }
    g_assert_false(hold(v, PC, cache, BLOCK));
    make_look(v, &w, KT_LOOK_LISTED, START);
    g_assert_cmpuint(w.n[KT_VERDICT_STANDS], ==, KT_VERIFY_HELD_MAX);
    for (unsigned i = 0; i < KT_VERIFY_KEYS_MAX; i++) {
        g_assert_cmpint(kt_verify_ask(v, PC + i, cache), ==, KT_VERIFY_LOOK);
    }
    g_assert_cmpint(kt_verify_ask(v, PC - 1, cache), ==, KT_VERIFY_FULL);
}

/* Returns a millisecond after an access is held; at once after the end. */
static void test_wait(void)
{
    g_autoptr(KtVerify) v = kt_verify_new();

    g_assert_true(hold(v, PC, cache, BLOCK));
    g_assert_true(kt_verify_wait(v));
    kt_verify_end(v);
    g_assert_false(kt_verify_wait(v));
}

int main(int argc, char **argv)
{
    static const TestCase cases[] = {
        { "/verify/decisions", test_decisions },
        { "/verify/release", test_release },
        { "/verify/disarm", test_disarm },
        { "/verify/limits", test_limits },
        { "/verify/wait", test_wait },
    };

    return test_main(argc, argv, cases, G_N_ELEMENTS(cases));
}
