/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows of the history and their index, for history*.c and the self-check.
 *
 * A row is a past life in 47 bytes. Numbers are little-endian and packed:
 *
 *     byte  0        8          12       16        22      24       30
 *          +--------+-----------+--------+---------+-------+--------+------
 *          | va     | requested | actual | alloc_us| cache | free_us| alloc_
 *          +--------+-----------+--------+---------+-------+--------+------
 *     byte  30          33         36         39     42      43    47
 *          +-----------+----------+----------+------+-------+------+
 *          |alloc_stack|free_stack|alloc_task| other| flags | link |
 *          +-----------+----------+----------+------+-------+------+
 *
 * The index finds the rows that contained an address. Level L divides the
 * address space into granules of 64 << 2L bytes. A row of a block of LEN bytes
 * is registered once: at the smallest level whose granule is not smaller than
 * LEN, under the granule of its start. So a block lies in at most two granules
 * of its level, and an address A is found with two lookups for each level:
 * under A's granule, and under the one before it. Example, level 0 (64 bytes):
 *
 *     granule   |     10     |     11     |     12     |
 *                         [ block, 40 bytes ]             registered under 10
 *                                ^ A                      looked up: 11, 10
 *
 * The rows of one bucket are a chain from the newest to the oldest (link).
 */
#ifndef KT_HISTORY_ROWS_H
#define KT_HISTORY_ROWS_H

#include "kalloc-tracer/model/history.h"

#include <string.h>

#define ROW_BYTES   47
#define FIRST_SHIFT 6
#define SHIFT_STEP  2
#define LEVELS      30      /* shifts 6, 8, ... 64 */

/* Rows are of two kinds: pages lie below objects, so an address can have a
 * life of each kind at the same time. Lives of one kind follow each other. */
enum { ROWS_OBJECTS, ROWS_PAGES, ROWS__COUNT };

/* A row, unpacked. @other: if kfree_rcu() queued the block, the stack that
 * did so; else the task that freed it */
typedef struct Row {
    uint64_t va;
    uint64_t requested;
    uint64_t actual;
    uint64_t alloc_us;
    uint64_t free_us;
    uint32_t cache;
    uint32_t alloc_stack;
    uint32_t free_stack;
    uint32_t alloc_task;
    uint32_t other;
    uint32_t flags;
    uint32_t link;
} Row;

/* Row.flags: KtLayer in the lower bits, and these. */
#define ROW_LAYER   7
#define ROW_QUEUED  8
#define ROW_HUGE    16      /* a size has more than 32 bits: both are in
                             * KtHistory.huge */
#define ROW_FREED   32
#define ROW_REMOVED 64

typedef struct Huge {
    uint64_t requested;
    uint64_t actual;
} Huge;

/*
 * Rows have numbers 1, 2, ... in the order in which they were added; row N is
 * in slot N % @capacity.
 */
struct KtHistory {
    uint8_t *rows;
    uint64_t capacity;
    uint64_t next;          /* number of the next row */
    uint64_t oldest;        /* number of the oldest row; @next: no row */
    uint64_t ready;         /* rows below this number have memory */
    uint64_t evicted;
    bool *held;             /* by segment: the budget was charged for it */
    KtBudget *budget;
    uint32_t *head;         /* hash table: newest row of each bucket */
    uint32_t mask;          /* buckets - 1 */
    /* rows of each kind and level */
    uint64_t at_level[ROWS__COUNT][LEVELS];
    GHashTable *huge;       /* slot -> Huge */
};

/* ---- rows --------------------------------------------------------------- */

static inline void pack(uint8_t *at, const Row *r)
{
    uint64_t w[6] = {
        r->va,
        (uint32_t)r->requested | r->actual << 32,
        r->alloc_us | (uint64_t)r->cache << 48,
        r->free_us | (uint64_t)r->alloc_stack << 48,
        r->alloc_stack >> 16 | (uint64_t)r->free_stack << 8 |
            (uint64_t)r->alloc_task << 32 | (uint64_t)r->other << 56,
        r->other >> 8 | (uint64_t)r->flags << 16 | (uint64_t)r->link << 24,
    };

    memcpy(at, w, ROW_BYTES);
}

static inline void unpack(const uint8_t *at, Row *r)
{
    const uint64_t us = ((uint64_t)1 << 48) - 1;
    uint64_t w[6] = { 0 };

    memcpy(w, at, ROW_BYTES);
    r->va = w[0];
    r->requested = (uint32_t)w[1];
    r->actual = w[1] >> 32;
    r->alloc_us = w[2] & us;
    r->cache = w[2] >> 48;
    r->free_us = w[3] & us;
    r->alloc_stack = w[3] >> 48 | (w[4] & 0xff) << 16;
    r->free_stack = w[4] >> 8 & 0xffffff;
    r->alloc_task = w[4] >> 32 & 0xffffff;
    r->other = w[4] >> 56 | (w[5] & 0xffff) << 8;
    r->flags = w[5] >> 16 & 0xff;
    r->link = w[5] >> 24;
}

/* Return the kind of a row, ROWS_*. */
static inline unsigned kind_of(const Row *r)
{
    return (r->flags & ROW_LAYER) == KT_LAYER_PAGES ? ROWS_PAGES :
                                                      ROWS_OBJECTS;
}

/* Return the place of a row in the ring. */
static inline uint64_t slot_of(const KtHistory *h, uint64_t number)
{
    return number % h->capacity;
}

static inline uint8_t *row_at(const KtHistory *h, uint64_t number)
{
    return h->rows + slot_of(h, number) * ROW_BYTES;
}

/* Read a row, with its sizes if they are huge. */
static inline void read_row(const KtHistory *h, uint64_t number, Row *r)
{
    const Huge *huge;

    unpack(row_at(h, number), r);
    if (r->flags & ROW_HUGE) {
        huge = g_hash_table_lookup(h->huge,
                                   GSIZE_TO_POINTER(slot_of(h, number)));
        r->requested = huge->requested;
        r->actual = huge->actual;
    }
}

/* Convert a row to what queries return. */
static inline void to_block(const Row *r, KtBlock *b)
{
    bool queued = r->flags & ROW_QUEUED;

    *b = (KtBlock) {
        .va = r->va,
        .requested = r->requested,
        .actual = r->actual,
        .alloc_us = r->alloc_us,
        .free_us = r->free_us,
        .alloc_stack = { r->alloc_stack },
        .free_stack = { r->free_stack },
        .rcu_stack = { queued ? r->other : 0 },
        .alloc_task = { r->alloc_task },
        .free_task = { queued ? 0 : r->other },
        .cache = { r->cache },
        .state = r->flags & ROW_FREED ? KT_BLOCK_FREED : KT_BLOCK_ALLOCATED,
        .layer = r->flags & ROW_LAYER,
        .rcu_queued = queued,
        .removed = r->flags & ROW_REMOVED,
        .past = true,
    };
}

/* ---- index -------------------------------------------------------------- */

/* Return the smallest level whose granules have at least @len bytes. */
static inline unsigned level_of(uint64_t len)
{
    unsigned bits = len > 1 ? 64 - __builtin_clzll(len - 1) : 0;

    return bits <= FIRST_SHIFT ? 0 :
           (bits - FIRST_SHIFT + SHIFT_STEP - 1) / SHIFT_STEP;
}

/* Return the number of the granule of @level that contains @va. */
static inline uint64_t granule(unsigned level, uint64_t va)
{
    unsigned shift = FIRST_SHIFT + level * SHIFT_STEP;

    return shift < 64 ? va >> shift : 0;
}

/* Return the bucket of granule @key of @level. */
static inline uint32_t *head_of(const KtHistory *h, unsigned level,
                                uint64_t key)
{
    uint64_t x = (key ^ (uint64_t)level << 58) * 0x9e3779b97f4a7c15u;

    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return &h->head[(x >> 32) & h->mask];
}

/* Return the number of the row that a link refers to; 0 if it is not in the
 * ring any more, or not older than row @before. A link has the lower 32 bits
 * of the number; the age (next - number) says whether the row still exists,
 * so the links of evicted rows need not be removed. */
static inline uint64_t resolve(const KtHistory *h, uint32_t link,
                               uint64_t before)
{
    uint32_t age = (uint32_t)h->next - link;
    uint64_t number = h->next - age;

    if (age == 0 || age > kt_history_rows(h) || number >= before) {
        return 0;
    }
    return number;
}

#endif /* KT_HISTORY_ROWS_H */
