/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The newest call records of a vCPU: see call-ring.h. */
#include "kalloc-tracer/calls/call-ring.h"

#include <string.h>

#include "kalloc-tracer/calls/spin.h"

G_STATIC_ASSERT(sizeof(KtCall) % 8 == 0);

#define INDEX_EVERY 256

struct KtCallRing {
    uint32_t lock;
    uint64_t capacity;          /* bytes, a multiple of 8 */
    uint64_t head, tail;        /* positions */
    uint64_t n;                 /* records between them */
    uint64_t seq;               /* of the next record */
    uint64_t cleared;           /* records before this number were dropped by
                                 * kt_call_ring_clear() */
    uint64_t n_index;
    uint64_t *index;            /* position of record N * INDEX_EVERY, at
                                 * N % @n_index */
    uint8_t *bytes;
};

KtCallRing *kt_call_ring_new(uint64_t bytes)
{
    KtCallRing *r = g_new0(KtCallRing, 1);

    r->capacity = MAX(bytes, 4096u) & ~7ull;
    r->bytes = g_malloc0(r->capacity);
    r->n_index = r->capacity / (sizeof(KtCall) * INDEX_EVERY) + 2;
    r->index = g_new0(uint64_t, r->n_index);
    return r;
}

void kt_call_ring_free(KtCallRing *r)
{
    if (r) {
        g_free(r->bytes);
        g_free(r->index);
    }
    g_free(r);
}

static void copy_in(KtCallRing *r, const void *from, uint64_t len)
{
    uint64_t at = r->head % r->capacity;
    uint64_t first = MIN(len, r->capacity - at);

    if (!len) {
        return;                 /* @from may be NULL then */
    }
    memcpy(r->bytes + at, from, first);
    memcpy(r->bytes, (const uint8_t *)from + first, len - first);
    r->head += len;
}

static void copy_out(const KtCallRing *r, uint64_t pos, void *to, uint64_t len)
{
    uint64_t at = pos % r->capacity;
    uint64_t first = MIN(len, r->capacity - at);

    if (!len) {
        return;                 /* @to may be NULL then */
    }
    memcpy(to, r->bytes + at, first);
    memcpy((uint8_t *)to + first, r->bytes, len - first);
}

static uint64_t bytes_at(const KtCallRing *r, uint64_t pos)
{
    KtCall call;

    copy_out(r, pos, &call, sizeof(call));
    return kt_call_bytes(&call);
}

/* Drop the oldest records until @len bytes are free. */
static unsigned make_room(KtCallRing *r, uint64_t len)
{
    unsigned dropped = 0;

    while (r->head + len - r->tail > r->capacity) {
        r->tail += bytes_at(r, r->tail);
        r->n--;
        dropped++;
    }
    return dropped;
}

unsigned kt_call_ring_put(KtCallRing *r, const KtCall *call,
                          const uint64_t *args, const uint8_t *extra)
{
    KtCall numbered = *call;
    uint64_t pad = 0;
    unsigned dropped;

    kt_spin_lock(&r->lock);
    dropped = make_room(r, kt_call_bytes(call));
    if (r->seq % INDEX_EVERY == 0) {
        r->index[r->seq / INDEX_EVERY % r->n_index] = r->head;
    }
    numbered.seq = r->seq++;
    copy_in(r, &numbered, sizeof(numbered));
    copy_in(r, args, call->n_args * 8ull);
    if (call->n_extra) {
        copy_in(r, extra, call->n_extra);
        copy_in(r, &pad, -call->n_extra & 7u);
    }
    r->n++;
    kt_spin_unlock(&r->lock);
    return dropped;
}

/* Return the position of record @seq, which is kept, or is the next one. */
static uint64_t find(const KtCallRing *r, uint64_t seq)
{
    uint64_t oldest = r->seq - r->n;
    uint64_t at = seq - seq % INDEX_EVERY, pos = r->tail;

    if (seq == r->seq) {
        return r->head;
    }
    if (at >= oldest) {
        pos = r->index[at / INDEX_EVERY % r->n_index];
    } else {
        at = oldest;
    }
    for (; at < seq; at++) {
        pos += bytes_at(r, pos);
    }
    return pos;
}

/* Return the number of the first record to read: @seq, or the oldest record if
 * @seq was overwritten. Add the number of overwritten records to @lost. */
static uint64_t first_to_read(const KtCallRing *r, uint64_t seq, uint64_t *lost)
{
    uint64_t oldest = r->seq - r->n, wanted = MAX(seq, r->cleared);

    if (wanted < oldest) {
        *lost += oldest - wanted;
    }
    return MIN(MAX(wanted, oldest), r->seq);
}

bool kt_call_ring_read(KtCallRing *r, uint64_t *seq, uint64_t max,
                       GByteArray *out, uint64_t *lost)
{
    uint64_t from, len = 0;
    bool more;

    kt_spin_lock(&r->lock);
    *seq = first_to_read(r, *seq, lost);
    from = find(r, *seq);
    while (from + len < r->head && len < KT_CALL_RING_COPY && max--) {
        len += bytes_at(r, from + len);
        ++*seq;
    }
    g_byte_array_set_size(out, out->len + len);
    copy_out(r, from, out->data + out->len - len, len);
    more = *seq < r->seq;
    kt_spin_unlock(&r->lock);
    return more;
}

void kt_call_ring_clear(KtCallRing *r)
{
    kt_spin_lock(&r->lock);
    r->tail = r->head;
    r->cleared = r->seq;
    r->n = 0;
    kt_spin_unlock(&r->lock);
}

uint64_t kt_call_ring_count(KtCallRing *r)
{
    uint64_t n;

    kt_spin_lock(&r->lock);
    n = r->n;
    kt_spin_unlock(&r->lock);
    return n;
}
