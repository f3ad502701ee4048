/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rules of KtShadow once more: see naive-shadow.h. */
#include "tests/lib/naive-shadow.h"
#include "kalloc-tracer/access/shadow.h"

#define BASE 0xffff888000000000ull
/* Two pages of codes. */
#define LEN  0x10000u
/* Bytes of host memory for the values that are kept per guest page. */
#define MORE (3 * 4096u)
/* Addresses in front of the shadow, and behind it, that are used, too. */
#define MARGIN 256u
/* All bytes are compared after so many operations. */
#define COMPARE 16u

/* @block: the number of the block that the byte belongs to; 0: none. */
typedef struct Byte {
    KtShadowState state;
    unsigned block;
} Byte;

typedef struct Naive {
    KtShadow *shadow;
    Byte bytes[LEN];
    unsigned start[1u << 16];       /* by block: its first byte */
    unsigned n_blocks;
} Naive;

typedef struct Operation {
    unsigned kind;
    uint64_t va;
    uint64_t a, b;
} Operation;

static Operation next_operation(const uint8_t *data)
{
    unsigned place = data[1] | (unsigned)data[2] << 8;
    Operation op = {
        .kind = data[0],
        .a = data[3] | (uint64_t)(data[4] & 15) << 8,
        .b = data[5] | (uint64_t)(data[6] & 15) << 8,
    };

    /* Mostly near the border of the two pages, and the ends. */
    switch (data[0] >> 6) {
    case 0:
        place = LEN / 2 - 512 + place % 1024;
        break;
    case 1:
        place = LEN - MARGIN + place % (2 * MARGIN);
        break;
    case 2:
        place = place % (2 * MARGIN) - MARGIN;
        break;
    default:
        break;
    }
    op.va = BASE + (int64_t)(int32_t)place;
    if (data[0] & 0x20) {
        op.va &= ~7ull;
    }
    return op;
}

/* The bytes of [va, va + len) that are in the shadow, with those of the
 * granules at both ends. */
static unsigned first_of(uint64_t va)
{
    return va < BASE ? 0 : (unsigned)(va - BASE) & ~7u;
}

static unsigned end_of(uint64_t va, uint64_t len)
{
    uint64_t end = va + len;

    return end <= BASE ? 0 : MIN(LEN, (unsigned)(end - BASE + 7) & ~7u);
}

static void set(Naive *n, unsigned from, unsigned to, Byte value)
{
    for (unsigned i = from; i < to; i++) {
        n->bytes[i] = value;
    }
}

/* A block that goes on behind @at loses that part. */
static void cut_tail(Naive *n, unsigned at)
{
    unsigned block = at < LEN ? n->bytes[at].block : 0;

    if (block && n->start[block] < at) {
        while (at < LEN && n->bytes[at].block == block) {
            n->bytes[at++] = (Byte) { KT_SHADOW_UNKNOWN, 0 };
        }
    }
}

static void naive_alloc(Naive *n, uint64_t va, uint64_t requested,
                        uint64_t actual, bool armed)
{
    uint64_t len = actual ? actual : requested;
    uint64_t good = requested ? MIN(requested, len) : len;
    unsigned from = first_of(va), to = end_of(va, len), live;

    if (!len || from >= to) {
        return;
    }
    set(n, from, to, (Byte) { KT_SHADOW_UNKNOWN, 0 });
    if (armed && va % 8 == 0 && va >= BASE) {
        n->start[++n->n_blocks] = from;
        live = MIN(to, from + (unsigned)good);
        set(n, from, live, (Byte) { KT_SHADOW_LIVE, n->n_blocks });
        set(n, live, to, (Byte) { KT_SHADOW_SLACK, n->n_blocks });
    }
    cut_tail(n, to);
}

/* Return the number of the block that begins at @va; 0: none. */
static unsigned block_at(const Naive *n, uint64_t va)
{
    uint64_t at = va - BASE;
    unsigned block = at < LEN ? n->bytes[at].block : 0;

    return block && n->start[block] == at ? block : 0;
}

static void naive_freed(Naive *n, uint64_t va)
{
    unsigned block = block_at(n, va);

    for (unsigned i = (unsigned)(va - BASE);
         block && i < LEN && n->bytes[i].block == block; i++) {
        n->bytes[i] = (Byte) { KT_SHADOW_FREED, 0 };
    }
}

static void naive_use_slack(Naive *n, uint64_t va)
{
    unsigned block = block_at(n, va);

    for (unsigned i = (unsigned)(va - BASE);
         block && i < LEN && n->bytes[i].block == block; i++) {
        n->bytes[i].state = KT_SHADOW_LIVE;
    }
}

static void naive_fresh(Naive *n, uint64_t va, uint64_t len)
{
    for (unsigned i = first_of(va); len && i < end_of(va, len); i++) {
        if (n->bytes[i].state == KT_SHADOW_UNKNOWN) {
            n->bytes[i].state = KT_SHADOW_FRESH;
        }
    }
}

static void naive_forget_freed(Naive *n)
{
    for (unsigned i = 0; i < LEN; i++) {
        if (n->bytes[i].state == KT_SHADOW_FREED ||
            n->bytes[i].state == KT_SHADOW_FRESH) {
            n->bytes[i].state = KT_SHADOW_UNKNOWN;
        }
    }
}

static bool is_bad(KtShadowState state)
{
    return state > KT_SHADOW_LIVE;
}

static KtShadowState naive_state(const Naive *n, uint64_t va)
{
    return va - BASE < LEN ? n->bytes[va - BASE].state : KT_SHADOW_UNKNOWN;
}

static void compare_byte(const Naive *n, uint64_t va)
{
    KtShadowState naive = naive_state(n, va);
    KtShadowState state = kt_shadow_state(n->shadow, va);

    g_assert_cmpint(state, ==, naive);
    g_assert_true(kt_shadow_is_good(n->shadow, va, 1) == !is_bad(naive));
    /* Accesses of 16 bytes that touch this byte. */
    for (unsigned i = 0; naive != KT_SHADOW_UNKNOWN && i < 16; i += 5) {
        g_assert_true(va - i < BASE || kt_shadow_is_marked(n->shadow, va - i));
    }
    if (is_bad(naive)) {
        g_assert_true(kt_shadow_may_be_bad(n->shadow, va));
    }
}

static void compare_range(const Naive *n, uint64_t va, uint64_t len)
{
    uint64_t bad = 0, naive = va;
    KtShadowState state = KT_SHADOW_UNKNOWN;
    bool found = kt_shadow_find_bad(n->shadow, va, len, &bad, &state);

    while (naive < va + len && !is_bad(naive_state(n, naive))) {
        naive++;
    }
    g_assert_true(found == (naive < va + len));
    if (found) {
        g_assert_cmphex(bad, ==, naive);
        g_assert_cmpint(state, ==, naive_state(n, naive));
    }
    if (va >= BASE && len && len <= 64) {
        g_assert_true(kt_shadow_is_good(n->shadow, va, (unsigned)len) ==
                      !found);
    }
}

static void apply(Naive *n, const Operation *op)
{
    switch (op->kind % 32) {
    case 0 ... 11:
        if (op->kind % 32 <= 1 &&
            !kt_shadow_any_marked(n->shadow, op->va,
                                  op->b ? op->b : op->a)) {
            naive_alloc(n, op->va, op->a, op->b, false);
            break;
        }
        kt_shadow_alloc(n->shadow, op->va, op->a, op->b, op->kind % 32 > 1);
        naive_alloc(n, op->va, op->a, op->b, op->kind % 32 > 1);
        break;
    case 12 ... 20:
        kt_shadow_freed(n->shadow, op->va);
        naive_freed(n, op->va);
        break;
    case 21 ... 23:
        kt_shadow_resize(n->shadow, op->va, op->a, op->b);
        if (block_at(n, op->va)) {
            naive_alloc(n, op->va, op->a, op->b, true);
        }
        break;
    case 24 ... 26:
        kt_shadow_forget(n->shadow, op->va, op->a);
        if (op->a && first_of(op->va) < end_of(op->va, op->a)) {
            set(n, first_of(op->va), end_of(op->va, op->a),
                (Byte) { KT_SHADOW_UNKNOWN, 0 });
        }
        break;
    case 27:
        kt_shadow_use_slack(n->shadow, op->va);
        naive_use_slack(n, op->va);
        break;
    case 28 ... 29:
        kt_shadow_fresh(n->shadow, op->va, op->a);
        naive_fresh(n, op->va, op->a);
        break;
    case 30:
        kt_shadow_forget_freed(n->shadow);
        naive_forget_freed(n);
        break;
    default:
        kt_shadow_clear(n->shadow);
        set(n, 0, LEN, (Byte) { KT_SHADOW_UNKNOWN, 0 });
        break;
    }
    compare_range(n, op->va, op->a % 100);
    compare_range(n, op->va, op->b);
}

static void compare_all(const Naive *n)
{
    for (uint64_t va = BASE - 8; va < BASE + LEN + 8; va++) {
        compare_byte(n, va);
    }
    g_assert_cmpuint(kt_shadow_bytes(n->shadow), <=, LEN / 8 + MORE);
}

void naive_shadow_run(const uint8_t *data, size_t len)
{
    g_autofree Naive *n = g_new0(Naive, 1);
    size_t ops = MIN(len / NAIVE_SHADOW_OPERATION,
                     G_N_ELEMENTS(n->start) - 1);

    n->shadow = kt_shadow_new(BASE, LEN, NULL, NULL);
    for (size_t i = 0; i < ops; i++) {
        Operation op = next_operation(&data[i * NAIVE_SHADOW_OPERATION]);

        apply(n, &op);
        if (i % COMPARE == 0) {
            compare_all(n);
        }
    }
    compare_all(n);
    kt_shadow_free(n->shadow);
}
