/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Quarantine: see quarantine.h. */
#include "kalloc-tracer/access/quarantine.h"

#include "kalloc-tracer/tracer/tracer.h"

/* Blocks of the first array; it grows by doubling. */
#define FIRST 1024u
/* Bytes of a slot. A guest can write any number into a kmem_cache, and small
 * ones would need much memory of the host. */
#define SLOT_MIN 8u
#define SLOT_MAX (1u << 26)
#define BLOCKS_MAX (1u << 27)
/* Host memory of a block in the index: a key of 8 bytes, a value and a hash of
 * 4 each, in a table that can be half empty. */
#define INDEX_BYTES 32u

G_STATIC_ASSERT(sizeof(void *) >= sizeof(uint64_t));

/*
 * struct KtQuarantine - the part
 * @limit: bytes that may wait
 * @ring: (owned) of @room entries, a power of two or 0; @n are in use from
 *        @first on, which is the oldest block
 * @index: (owned) pointer of a block that waits -> its place in @ring
 *
 * A block that is dropped leaves a hole, of no bytes, behind the oldest block.
 * If half of a full ring are holes, they are removed, else it grows: so a drop
 * is amortised O(1).
 */
struct KtQuarantine {
    GMutex lock;
    KtBudget *budget;
    uint64_t limit, bytes;
    KtDelayedFree *ring;
    GHashTable *index;
    uint32_t room, first, n;
    bool running;
    const char *why_not;
};

/* ---- the ring ------------------------------------------------------------ */

static uint32_t place(const KtQuarantine *q, uint32_t i)
{
    return (q->first + i) & (q->room - 1);
}

static KtDelayedFree *nth(const KtQuarantine *q, uint32_t i)
{
    return &q->ring[place(q, i)];
}

static bool is_hole(const KtDelayedFree *block)
{
    return !block->size;
}

static uint32_t n_waiting(const KtQuarantine *q)
{
    return g_hash_table_size(q->index);
}

static uint64_t ring_bytes(uint32_t room)
{
    return (uint64_t)room * (sizeof(KtDelayedFree) + INDEX_BYTES);
}

static void *key(uint64_t ptr)
{
    return GSIZE_TO_POINTER(ptr);
}

static bool waits(const KtQuarantine *q, uint64_t ptr)
{
    return g_hash_table_contains(q->index, key(ptr));
}

/* Append a block. There is room. */
static void append(KtQuarantine *q, const KtDelayedFree *block)
{
    g_hash_table_insert(q->index, key(block->ptr),
                        GUINT_TO_POINTER(place(q, q->n)));
    *nth(q, q->n++) = *block;
}

/* Move all blocks to a ring of @room entries. */
static void move_to(KtQuarantine *q, uint32_t room)
{
    KtQuarantine from = *q;

    q->ring = g_new(KtDelayedFree, room);
    q->room = room;
    q->first = q->n = 0;
    for (uint32_t i = 0; i < from.n; i++) {
        if (!is_hole(nth(&from, i))) {
            append(q, nth(&from, i));
        }
    }
    g_free(from.ring);
}

/* Return false if there is no memory for another block. */
static bool make_room(KtQuarantine *q)
{
    uint32_t room = q->room ? q->room * 2 : FIRST;

    if (q->n < q->room) {
        return true;
    }
    if (q->room && n_waiting(q) <= q->room / 2) {
        move_to(q, q->room);
        return true;
    }
    if (q->n >= BLOCKS_MAX ||
        !kt_budget_take(q->budget, KT_MEM_QUARANTINE,
                        ring_bytes(room) - ring_bytes(q->room))) {
        return false;
    }
    move_to(q, room);
    return true;
}

static void push(KtQuarantine *q, const KtDelayedFree *block)
{
    append(q, block);
    q->bytes += block->size;
}

/* Take a block out of the quarantine. The oldest entry is a block after it. */
static void drop(KtQuarantine *q, KtDelayedFree *block)
{
    g_hash_table_remove(q->index, key(block->ptr));
    q->bytes -= block->size;
    block->size = 0;
    while (q->n && is_hole(nth(q, 0))) {
        q->first = place(q, 1);
        q->n--;
    }
}

static void empty(KtQuarantine *q)
{
    g_clear_pointer(&q->ring, g_free);
    g_hash_table_remove_all(q->index);
    kt_budget_release(q->budget, KT_MEM_QUARANTINE, ring_bytes(q->room));
    q->room = q->first = q->n = 0;
    q->bytes = 0;
}

/* ---- the part ------------------------------------------------------------ */

static void *new_quarantine(KtBudget *budget)
{
    KtQuarantine *q = g_new0(KtQuarantine, 1);

    q->budget = budget;
    q->index = g_hash_table_new(gs_number_hash_direct, g_direct_equal);
    g_mutex_init(&q->lock);
    return q;
}

static void free_quarantine(void *part)
{
    KtQuarantine *q = part;

    g_free(q->ring);
    g_hash_table_destroy(q->index);
    g_mutex_clear(&q->lock);
    g_free(q);
}

static void reset_quarantine(void *part, KtBootEnd why)
{
    KtQuarantine *q = part;

    if (why != KT_BOOT_CLEAR) {
        g_mutex_lock(&q->lock);
        empty(q);
        g_mutex_unlock(&q->lock);
    }
}

KtQuarantine *kt_quarantine_of(KtTracer *t)
{
    static const KtBootPart part = {
        .name = "quarantine", .new = new_quarantine, .free = free_quarantine,
        .reset = reset_quarantine,
    };

    return kt_tracer_part(t, &part);
}

void kt_quarantine_set(KtTracer *t, uint64_t bytes)
{
    kt_quarantine_of(t)->limit = bytes;
}

void kt_quarantine_info(KtTracer *t, KtQuarantineInfo *out)
{
    KtQuarantine *q = kt_quarantine_of(t);

    g_mutex_lock(&q->lock);
    *out = (KtQuarantineInfo) {
        .limit = q->limit, .blocks = n_waiting(q), .bytes = q->bytes,
        .running = q->running, .why_not = q->why_not,
    };
    g_mutex_unlock(&q->lock);
}

bool kt_quarantine_is_wanted(KtQuarantine *q)
{
    bool wanted;

    g_mutex_lock(&q->lock);
    wanted = q->limit || q->n;
    g_mutex_unlock(&q->lock);
    return wanted;
}

void kt_quarantine_begun(KtQuarantine *q, const char *why_not)
{
    g_mutex_lock(&q->lock);
    q->running = !why_not;
    q->why_not = why_not;
    g_mutex_unlock(&q->lock);
}

/* ---- frees --------------------------------------------------------------- */

/* Return true if @block may wait in place of the oldest block. */
static bool fits_instead(const KtQuarantine *q, const KtDelayedFree *block)
{
    return q->n && q->bytes - nth(q, 0)->size + block->size <= q->limit;
}

static bool fits(const KtQuarantine *q, const KtDelayedFree *block)
{
    return q->bytes + block->size <= q->limit - q->limit / 8;
}

/* Make the call free the oldest block. Stale ones are dropped before; then the
 * next one is the oldest. Return KT_INSTEAD_STALE if there is none.
 * @in: (nullable) block that waits in its place */
static KtInstead free_oldest(KtQuarantine *q, const KtDelayedFree *in,
                             KtFreeInstead instead, void *opaque)
{
    while (q->n && (!in || fits_instead(q, in))) {
        KtInstead done = instead(opaque, nth(q, 0));

        if (done == KT_INSTEAD_REFUSED) {
            return done;
        }
        drop(q, nth(q, 0));
        if (done == KT_INSTEAD_DONE) {
            return done;
        }
    }
    return KT_INSTEAD_STALE;
}

/* Return what became of a free. @delayed: if the call was changed */
static KtDelay delay_of(KtInstead done, KtDelay delayed)
{
    return done == KT_INSTEAD_DONE ? delayed :
           done == KT_INSTEAD_REFUSED ? KT_DELAY_REFUSED : KT_DELAY_NO_ROOM;
}

static KtDelay delay(KtQuarantine *q, const KtDelayedFree *block, bool may_none,
                     KtFreeInstead instead, void *opaque)
{
    bool alone = may_none && fits(q, block) && make_room(q);
    KtInstead done = alone ? instead(opaque, NULL) :
                             free_oldest(q, block, instead, opaque);

    if (done == KT_INSTEAD_DONE) {
        push(q, block);
    }
    return delay_of(done, alone ? KT_DELAY_ALONE : KT_DELAY_SWAPPED);
}

/* The block waits already. If the call cannot be changed, its own block is
 * freed now, and must not be freed later. */
static KtDelay delay_twice(KtQuarantine *q, const KtDelayedFree *block,
                           bool may_none, KtFreeInstead instead, void *opaque)
{
    return may_none ? delay_of(instead(opaque, NULL), KT_DELAY_TWICE) :
                      delay_of(free_oldest(q, NULL, instead, opaque),
                               KT_DELAY_TWICE_SWAPPED);
}

KtDelay kt_quarantine_delay(KtQuarantine *q, const KtDelayedFree *block,
                            bool may_none, KtFreeInstead instead, void *opaque)
{
    KtDelay done;

    if (block->size < SLOT_MIN || block->size > SLOT_MAX) {
        return KT_DELAY_NO_ROOM;
    }
    g_mutex_lock(&q->lock);
    done = (waits(q, block->ptr) ? delay_twice : delay)(q, block, may_none,
                                                        instead, opaque);
    g_mutex_unlock(&q->lock);
    return done;
}

bool kt_quarantine_drain(KtQuarantine *q, KtFreeInstead instead, void *opaque)
{
    bool done;

    g_mutex_lock(&q->lock);
    done = q->bytes > q->limit &&
           free_oldest(q, NULL, instead, opaque) == KT_INSTEAD_DONE;
    g_mutex_unlock(&q->lock);
    return done;
}

bool kt_quarantine_has(KtQuarantine *q, uint64_t ptr)
{
    bool has;

    g_mutex_lock(&q->lock);
    has = waits(q, ptr);
    g_mutex_unlock(&q->lock);
    return has;
}

bool kt_quarantine_drop(KtQuarantine *q, uint64_t ptr)
{
    gpointer at;
    bool has;

    g_mutex_lock(&q->lock);
    has = g_hash_table_lookup_extended(q->index, key(ptr), NULL, &at);
    if (has) {
        drop(q, &q->ring[GPOINTER_TO_UINT(at)]);
    }
    g_mutex_unlock(&q->lock);
    return has;
}

/* From the end, because drop() moves the start. */
unsigned kt_quarantine_drop_cache(KtQuarantine *q, uint64_t cache)
{
    uint32_t n;

    g_mutex_lock(&q->lock);
    n = n_waiting(q);
    for (uint32_t i = q->n; i--;) {
        if (!is_hole(nth(q, i)) && nth(q, i)->cache == cache) {
            drop(q, nth(q, i));
        }
    }
    n -= n_waiting(q);
    g_mutex_unlock(&q->lock);
    return n;
}

/* ---- snapshots ----------------------------------------------------------- */

void kt_quarantine_pack(KtQuarantine *q, GsOut *out)
{
    g_mutex_lock(&q->lock);
    gs_out_varint(out, n_waiting(q));
    for (uint32_t i = 0; i < q->n; i++) {
        const KtDelayedFree *block = nth(q, i);

        if (!is_hole(block)) {
            gs_out_varint(out, block->ptr);
            gs_out_varint(out, block->cache);
            gs_out_varint(out, block->size);
        }
    }
    g_mutex_unlock(&q->lock);
}

/* Return false if the bytes are wrong. */
static bool unpack_block(const KtQuarantine *q, GsBytes *in,
                         KtDelayedFree *block)
{
    block->ptr = gs_bytes_varint(in, UINT64_MAX);
    block->cache = gs_bytes_varint(in, UINT64_MAX);
    block->size = (uint32_t)gs_bytes_upto(in, SLOT_MAX,
                                          "the size of a delayed free");
    if (block->size < SLOT_MIN) {
        gs_bytes_fail(in, "the size of a delayed free is too small");
    }
    if (waits(q, block->ptr)) {
        gs_bytes_fail(in, "a block waits twice to be freed");
    }
    return gs_bytes_ok(in);
}

uint64_t kt_quarantine_unpack(KtQuarantine *q, GsBytes *in)
{
    uint64_t n = gs_bytes_upto(in, BLOCKS_MAX, "the number of delayed frees");
    uint64_t dropped = 0;
    KtDelayedFree block;

    g_mutex_lock(&q->lock);
    empty(q);
    for (uint64_t i = 0; i < n && unpack_block(q, in, &block); i++) {
        if (make_room(q)) {
            push(q, &block);
        } else {
            dropped++;
        }
    }
    g_mutex_unlock(&q->lock);
    return dropped;
}
