/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Suspects that wait for a look at the allocator's lists: what each sequence of
 * looks decides, and when; also with several threads. */
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

TEST(test_decisions, "/verify/decisions")
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
TEST(test_release, "/verify/release")
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
TEST(test_disarm, "/verify/disarm")
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

TEST(test_limits, "/verify/limits")
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

/* The time of the next look, for a timer. */
TEST(test_due, "/verify/due")
{
    g_autoptr(KtVerify) v = kt_verify_new();
    World w = { 0 };

    g_assert_cmpuint(kt_verify_due(v), ==, UINT64_MAX);
    g_assert_true(hold(v, PC, cache, BLOCK));
    g_assert_cmpuint(kt_verify_due(v), ==, 0);
    g_assert_true(kt_verify_claim(v, START));
    g_assert_cmpuint(kt_verify_due(v), ==, UINT64_MAX);
    make_look(v, &w, KT_LOOK_MISSING, START);
    g_assert_cmpuint(kt_verify_due(v), ==, START + 1000);
    make_look(v, &w, KT_LOOK_LISTED, START + 1000);
    g_assert_cmpuint(kt_verify_due(v), ==, UINT64_MAX);
}

/* ---- threads ------------------------------------------------------------- */

#define VCPUS   2u
#define ROUNDS  20000u
#define PCS     64u
#define CACHES  16u
/* The lists do not have the objects of this cache. */
#define UNSEEN_CACHE 3u

/* @us: (atomic) guest time; @running: (atomic) vCPUs; @held: (atomic) accesses
 * that waited; @decided: (atomic) verdicts of them; @first: (atomic) caches
 * that were disarmed */
typedef struct Shared {
    KtVerify *v;
    uint64_t us;
    unsigned running, held, first;
    unsigned decided[KT_VERDICT_UNSEEN + 1];
} Shared;

typedef struct Vcpu {
    Shared *s;
    unsigned index;
} Vcpu;

static unsigned add(unsigned *n, unsigned more)
{
    return __atomic_add_fetch(n, more, __ATOMIC_RELAXED);
}

/* Each cache answers in its own way. */
static void look_at_caches(void *opaque, KtHeldAccess *held, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        unsigned id = held[i].cache.v;

        held[i].look = id == UNSEEN_CACHE ? KT_LOOK_MISSING :
                       id % 4 == 1 ? KT_LOOK_UNREADABLE :
                       id % 4 == 2 ? KT_LOOK_REUSED : KT_LOOK_LISTED;
    }
}

static void count_verdict(void *opaque, const KtHeldAccess *held,
                          KtVerifyVerdict verdict, bool first)
{
    Shared *s = opaque;

    g_assert_cmphex(held->ev.va, ==, held->bad);
    g_assert_true(verdict != KT_VERDICT_UNSEEN ||
                  held->cache.v == UNSEEN_CACHE);
    add(&s->decided[verdict], 1);
    add(&s->first, first);
}

/* Do what a vCPU does with an access: capture/watch-verify.c. */
static void suspect(Shared *s, uint64_t pc, KtCacheId id, uint64_t va)
{
    switch (kt_verify_ask(s->v, pc, id)) {
    case KT_VERIFY_LOOK:
        if (id.v % 4 == 0) {
            kt_verify_stands(s->v, pc, id);
            return;
        }
        break;
    case KT_VERIFY_HOLD:
        break;
    case KT_VERIFY_UNSEEN:
        g_assert_cmpuint(id.v, ==, UNSEEN_CACHE);
        return;
    default:
        return;
    }
    if (hold(s->v, pc, id, va)) {
        add(&s->held, 1);
    }
}

static uint32_t roll(uint64_t *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return *state >> 33;
}

static void *run_vcpu(void *opaque)
{
    const Vcpu *c = opaque;
    Shared *s = c->s;
    uint64_t state = c->index + 1;

    for (unsigned i = 0; i < ROUNDS; i++) {
        uint32_t number = roll(&state);
        uint64_t va = BLOCK + (number >> 8) % 256 * 64;

        __atomic_add_fetch(&s->us, 5, __ATOMIC_RELAXED);
        suspect(s, PC + number % PCS, (KtCacheId) { number / PCS % CACHES + 1 },
                va);
        /* Some objects are never handed out again. */
        if (i % 16 == 0 && va < BLOCK + 128 * 64) {
            kt_verify_release(s->v, va, 64, count_verdict, s);
        }
    }
    add(&s->running, -1u);
    return NULL;
}

static void look_if_due(Shared *s)
{
    uint64_t us = __atomic_load_n(&s->us, __ATOMIC_RELAXED);

    if (kt_verify_claim(s->v, us)) {
        kt_verify_look(s->v, us, look_at_caches, count_verdict, s);
    }
}

/* Two vCPUs and a thread that looks at the lists. Each access that waited has
 * one verdict, and only the cache that the lists do not have is disarmed. */
TEST(test_threads, "/verify/threads")
{
    g_autoptr(KtVerify) v = kt_verify_new();
    Shared s = { .v = v, .running = VCPUS };
    Vcpu vcpu[VCPUS];
    pthread_t thread[VCPUS];

    for (unsigned i = 0; i < VCPUS; i++) {
        vcpu[i] = (Vcpu) { &s, i };
        g_assert_cmpint(pthread_create(&thread[i], NULL, run_vcpu, &vcpu[i]),
                        ==, 0);
    }
    while (__atomic_load_n(&s.running, __ATOMIC_RELAXED)) {
        look_if_due(&s);
    }
    for (unsigned i = 0; i < VCPUS; i++) {
        pthread_join(thread[i], NULL);
    }
    for (unsigned i = 0; kt_verify_waits(v); i++) {
        g_assert_cmpuint(i, <, 1000);
        s.us += 1000;
        look_if_due(&s);
    }
    g_test_message("%u held: %u stand, %u not verified, %u not seen", s.held,
                   s.decided[0], s.decided[1], s.decided[2]);
    g_assert_cmpuint(s.decided[0] + s.decided[1] + s.decided[2], ==, s.held);
    g_assert_cmpuint(s.decided[KT_VERDICT_STANDS], >, 0);
    g_assert_cmpuint(s.decided[KT_VERDICT_UNVERIFIED], >, 0);
    g_assert_cmpuint(s.decided[KT_VERDICT_UNSEEN], >, 0);
    g_assert_cmpuint(s.first, ==, 1);
    for (unsigned i = 1; i <= CACHES; i++) {
        g_assert_true(kt_verify_is_disarmed(v, (KtCacheId) { i }) ==
                      (i == UNSEEN_CACHE));
    }
}
