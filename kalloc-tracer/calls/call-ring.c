/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The newest call records of a vCPU: see call-records.h. */
#include "kalloc-tracer/calls/call-records.h"

#include <string.h>

#include "kalloc-tracer/calls/spin.h"

G_STATIC_ASSERT(sizeof(KtCall) % 8 == 0);

#define INDEX_EVERY 256
#define CACHE_LINE 64
#define LAST_WORD (sizeof(KtCall) - 8)
#define RECORD_MAX (sizeof(KtCall) + KT_CALL_ARGS_MAX * 8 + KT_CALL_EXTRA_MAX)

G_STATIC_ASSERT(offsetof(KtCall, n_extra) >= LAST_WORD);
G_STATIC_ASSERT(offsetof(KtCall, n_args) >= LAST_WORD);

struct KtCallRing {
    uint32_t lock;
    uint64_t capacity;          /* bytes, a multiple of 8 */
    uint64_t head, tail;        /* positions */
    uint64_t head_at;           /* @head % @capacity: no division for each */
    uint64_t n;                 /* records between them */
    uint64_t seq;               /* of the next record */
    uint64_t cleared;           /* records before this number were dropped by
                                 * kt_call_ring_clear() */
    uint64_t n_index;
    uint64_t *index;            /* position of record N * INDEX_EVERY, at
                                 * N % @n_index */
    uint8_t *bytes;             /* @capacity, and room for one more record, so
                                 * that each is written in one piece */
};

KtCallRing *kt_call_ring_new(uint64_t bytes)
{
    KtCallRing *r = g_new0(KtCallRing, 1);

    r->capacity = MAX(bytes, 4096u) & ~7ull;
    r->bytes = g_malloc0(r->capacity + RECORD_MAX);
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

static void copy_out(const KtCallRing *r, uint64_t pos, void *to, uint64_t len)
{
    uint64_t at = pos % r->capacity;
    uint64_t first = MIN(len, r->capacity - at);

    memcpy(to, r->bytes + at, first);
    memcpy((uint8_t *)to + first, r->bytes, len - first);
}

/* Return the size of the record at offset @at. Its last word tells; a word
 * never wraps. */
static uint64_t bytes_at_offset(const KtCallRing *r, uint64_t at)
{
    KtCall call;

    at += LAST_WORD;
    at -= at < r->capacity ? 0 : r->capacity;
    memcpy((uint8_t *)&call + LAST_WORD, r->bytes + at, 8);
    return kt_call_bytes(&call);
}

static uint64_t bytes_at(const KtCallRing *r, uint64_t pos)
{
    return bytes_at_offset(r, pos % r->capacity);
}

/* Return the offset of @r->tail, without a division. */
static uint64_t tail_offset(const KtCallRing *r)
{
    uint64_t used = r->head - r->tail;

    return r->head_at - used + (used <= r->head_at ? 0 : r->capacity);
}

/* Drop the oldest records until @len bytes are free. */
static unsigned make_room(KtCallRing *r, uint64_t len)
{
    unsigned dropped = 0;

    while (r->head + len - r->tail > r->capacity) {
        r->tail += bytes_at_offset(r, tail_offset(r));
        r->n--;
        dropped++;
    }
    return dropped;
}

/* When the ring is full, the oldest record lies where the next one goes: two
 * cache lines that nobody has used since. */
static void expect_next(const KtCallRing *r)
{
    __builtin_prefetch(r->bytes + r->head_at, 1);
    __builtin_prefetch(r->bytes + r->head_at + CACHE_LINE, 1);
}

static void write_record(uint8_t *to, const KtCall *call, uint64_t seq,
                         const uint64_t *args, const uint8_t *extra)
{
    uint64_t *words = (uint64_t *)(to + sizeof(*call));

    memcpy(to, call, sizeof(*call));
    ((KtCall *)to)->seq = seq;
    for (unsigned i = 0; i < call->n_args; i++) {
        words[i] = args[i];
    }
    if (call->n_extra) {
        to += sizeof(*call) + call->n_args * 8u;
        memcpy(to, extra, call->n_extra);
        memset(to + call->n_extra, 0, -call->n_extra & 7u);
    }
}

/* The end of the record, if it is behind the last byte, belongs to the
 * beginning. */
static void advance(KtCallRing *r, uint64_t len)
{
    r->head += len;
    r->head_at += len;
    if (r->head_at >= r->capacity) {
        r->head_at -= r->capacity;
        memcpy(r->bytes, r->bytes + r->capacity, r->head_at);
    }
}

unsigned kt_call_ring_put(KtCallRing *r, const KtCall *call,
                          const uint64_t *args, const uint8_t *extra)
{
    uint64_t len = kt_call_bytes(call);
    unsigned dropped;

    kt_spin_lock(&r->lock);
    dropped = make_room(r, len);
    if (r->seq % INDEX_EVERY == 0) {
        r->index[r->seq / INDEX_EVERY % r->n_index] = r->head;
    }
    write_record(r->bytes + r->head_at, call, r->seq++, args, extra);
    advance(r, len);
    r->n++;
    expect_next(r);
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
    if (len) {
        g_byte_array_set_size(out, out->len + len);
        copy_out(r, from, out->data + out->len - len, len);
    }
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
