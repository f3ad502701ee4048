/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Events as columns: see journal-format.h.
 *
 * Example: three events of one vCPU and one task, the first of them at 500 us
 * with stack 7. The second allocates from the same cache 192 bytes further on.
 * In the columns (signed differences as zigzag varints: 0, -1, 1, -2 ... are
 * written as 0, 1, 2, 3 ...):
 *
 *              event 1          event 2     event 3
 *     us       500              3           1
 *     cpu      0                0           0
 *     seq      0                0           0
 *     stack    7                0           2
 *     task     1                1           1
 *     call     alloc kmalloc..  (the same)  free kfree..
 *     va       0xffff888000..   192         -192
 *
 * Addresses of one cache are close together and those of two caches are not,
 * so the last address is kept for each cache. Two caches may share a row of
 * that table: differences are larger then, and still right.
 */
#include "kalloc-tracer/journal/journal-format.h"

#define ROWS        512
#define US_MASK     ((1ull << 48) - 1)
#define CALL_MAX    48          /* bytes of a call, at most: 5, and varints */

/* The last event, as far as the next is written as a difference from it; and
 * the last address of each row. */
typedef struct Before {
    uint64_t seq;
    uint64_t us;
    uint32_t stack;
    uint64_t va[ROWS];
} Before;

static uint64_t *va_before(Before *b, const KtEvent *ev)
{
    return &b->va[(ev->cache.v ? ev->cache.v : ev->layer) % ROWS];
}

/* Gaps that the tracer adds itself have no sequence number: it is 0. */
static void advance(Before *b, const KtEvent *ev)
{
    b->seq = ev->seq ? ev->seq : b->seq;
    b->us = ev->us;
    b->stack = ev->stack.v;
    *va_before(b, ev) = ev->va;
}

/* ---- encoding ----------------------------------------------------------- */

static uint8_t *put_difference(uint8_t *to, uint64_t now, uint64_t before)
{
    return gs_write_varint(to, gs_zigzag(now - before));
}

static uint8_t *put_call(uint8_t *to, const KtEvent *ev)
{
    *to++ = ev->kind;
    *to++ = ev->hook.v;
    *to++ = ev->layer;
    *to++ = ev->family;
    *to++ = ev->flags;
    to = gs_write_varint(to, ev->cache.v);
    to = gs_write_varint(to, ev->gfp | (uint64_t)ev->tag << 32);
    to = gs_write_varint(to, ev->size);
    return gs_write_varint(to, ev->actual - ev->size);
}

/* @at: where each column goes on. */
static void put_event(uint8_t *at[], const KtEvent *ev, Before *b)
{
    at[KT_COL_US] = put_difference(at[KT_COL_US], ev->us, b->us);
    at[KT_COL_CPU] = gs_write_varint(at[KT_COL_CPU], ev->cpu);
    at[KT_COL_SEQ] = put_difference(at[KT_COL_SEQ], ev->seq, b->seq + 1);
    at[KT_COL_STACK] = put_difference(at[KT_COL_STACK], ev->stack.v, b->stack);
    at[KT_COL_TASK] = gs_write_varint(at[KT_COL_TASK], ev->task.v);
    at[KT_COL_CALL] = put_call(at[KT_COL_CALL], ev);
    at[KT_COL_VA] = put_difference(at[KT_COL_VA], ev->va, *va_before(b, ev));
    advance(b, ev);
}

void kt_event_codec_encode(const KtEvent *ev, unsigned n,
                           GByteArray *col[KT_COL__COUNT])
{
    uint8_t *at[KT_COL__COUNT];
    Before b = { 0 };

    for (unsigned i = 0; i < KT_COL__COUNT; i++) {
        g_byte_array_set_size(col[i], n * CALL_MAX);
        at[i] = col[i]->data;
    }
    for (; n; n--, ev++) {
        put_event(at, ev, &b);
    }
    for (unsigned i = 0; i < KT_COL__COUNT; i++) {
        g_byte_array_set_size(col[i], at[i] - col[i]->data);
    }
}

/* ---- decoding ----------------------------------------------------------- */

static uint64_t read_difference(GsBytes *col, uint64_t before, uint64_t max)
{
    uint64_t now = before + gs_unzigzag(gs_bytes_varint(col, UINT64_MAX));

    col->failed |= now > max;
    return now;
}

static void read_call(GsBytes *col, KtEvent *ev)
{
    uint64_t gfp_tag;

    ev->kind = gs_bytes_u8(col);
    ev->hook.v = gs_bytes_u8(col);
    ev->layer = gs_bytes_u8(col);
    ev->family = gs_bytes_u8(col);
    ev->flags = gs_bytes_u8(col);
    ev->cache.v = gs_bytes_varint(col, UINT16_MAX);
    gfp_tag = gs_bytes_varint(col, (1ull << 40) - 1);
    ev->gfp = gfp_tag & UINT32_MAX;
    ev->tag = gfp_tag >> 32;
    ev->size = gs_bytes_varint(col, UINT64_MAX);
    ev->actual = ev->size + gs_bytes_varint(col, UINT64_MAX);
}

static bool all_read(const GsBytes col[])
{
    bool ok = true;

    for (unsigned i = 0; i < KT_COL__COUNT; i++) {
        ok &= !col[i].failed && !gs_bytes_left(&col[i]);
    }
    return ok;
}

bool kt_event_codec_decode(GsBytes col[KT_COL__COUNT], unsigned n, KtEvent *ev)
{
    Before b = { 0 };

    if (n > KT_RUN_EVENTS) {
        return false;
    }
    for (; n; n--, ev++) {
        memset(ev, 0, sizeof(*ev));
        ev->us = read_difference(&col[KT_COL_US], b.us, US_MASK);
        ev->cpu = gs_bytes_varint(&col[KT_COL_CPU], UINT16_MAX);
        ev->seq = read_difference(&col[KT_COL_SEQ], b.seq + 1, UINT64_MAX);
        ev->stack.v = read_difference(&col[KT_COL_STACK], b.stack, UINT32_MAX);
        ev->task.v = gs_bytes_varint(&col[KT_COL_TASK], UINT32_MAX);
        read_call(&col[KT_COL_CALL], ev);
        ev->va = read_difference(&col[KT_COL_VA], *va_before(&b, ev),
                                 UINT64_MAX);
        advance(&b, ev);
    }
    return all_read(col);
}
