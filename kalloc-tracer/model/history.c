/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * History: see history.h; history-rows.h draws rows and index.
 *
 * Row N is in slot N % capacity. A link is the lower 32 bits of a row's number,
 * which is enough, as the ring has fewer than 2^32 rows. When the ring comes
 * around, an old link may lead to a row of another bucket. That is harmless:
 * each row is compared with the address, and a chain only leads to older rows,
 * so it ends.
 *
 * Memory is charged to the budget a segment (1 MiB) at a time, when the first
 * row is written to it. If there is none, or others need memory, the rows of
 * the oldest segment are evicted, and its pages are returned to the host.
 */
#include "kalloc-tracer/model/history-rows.h"

#include <sys/mman.h>

#define MAX_ROWS    (1u << 31)
/* Rows of blocks of 4 GiB and more, whose sizes are in a table. A kernel has a
 * handful of them; the limit is for one that wants to use up the host's
 * memory. */
#define MAX_HUGE    65536
#define HUGE_BYTES  96      /* of one of them */
#define SEG_BYTES   ((uint64_t)1 << 20)

/* ---- memory ------------------------------------------------------------- */

static void *map_memory(uint64_t len, bool huge_pages)
{
    void *at = mmap(NULL, len, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (at == MAP_FAILED) {
        return NULL;
    }
    madvise(at, len, huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    return at;
}

static void unmap_memory(void *at, uint64_t len)
{
    if (at) {
        munmap(at, len);
    }
}

static uint64_t rows_len(const KtHistory *h)
{
    return h->capacity * ROW_BYTES;
}

static uint64_t heads_len(const KtHistory *h)
{
    return ((uint64_t)h->mask + 1) * sizeof(uint32_t);
}

static unsigned n_segs(const KtHistory *h)
{
    return (rows_len(h) + SEG_BYTES - 1) / SEG_BYTES;
}

static uint64_t seg_len(const KtHistory *h, unsigned seg)
{
    return MIN(SEG_BYTES, rows_len(h) - seg * SEG_BYTES);
}

/* The segments in which a row begins and ends. */
static unsigned first_seg(const KtHistory *h, uint64_t number)
{
    return slot_of(h, number) * ROW_BYTES / SEG_BYTES;
}

static unsigned last_seg(const KtHistory *h, uint64_t number)
{
    return (slot_of(h, number) * ROW_BYTES + ROW_BYTES - 1) / SEG_BYTES;
}

static uint64_t release_seg(KtHistory *h, unsigned seg)
{
    uint64_t len = seg_len(h, seg);

    if (!h->held[seg]) {
        return 0;
    }
    madvise(h->rows + seg * SEG_BYTES, len, MADV_DONTNEED);
    h->held[seg] = false;
    kt_budget_release(h->budget, KT_MEM_HISTORY, len);
    return len;
}

/* Evict the oldest row. Links to it need not be removed: see resolve(). */
static void evict_oldest(KtHistory *h)
{
    Row old;

    read_row(h, h->oldest, &old);
    h->at_level[kind_of(&old)][level_of(MAX(old.requested, old.actual))]--;
    if (old.flags & ROW_HUGE) {
        g_hash_table_remove(h->huge,
                            GSIZE_TO_POINTER(slot_of(h, h->oldest)));
        kt_budget_release(h->budget, KT_MEM_HISTORY, HUGE_BYTES);
    }
    h->oldest++;
    h->evicted++;
}

/* Return true if all rows are in the segment that is written to. */
static bool in_one_seg(const KtHistory *h, unsigned seg)
{
    return seg == last_seg(h, h->next - 1) &&
           slot_of(h, h->oldest) <= slot_of(h, h->next - 1);
}

/* Evict the rows of the oldest segment and return its memory to the host. If
 * that is the segment that is written to, it stays, without its old rows.
 * Return the number of bytes. */
static uint64_t drop_oldest_seg(KtHistory *h)
{
    while (h->oldest < h->next) {
        unsigned seg = first_seg(h, h->oldest);

        if (in_one_seg(h, seg)) {
            return 0;
        }
        while (h->oldest < h->next && first_seg(h, h->oldest) == seg) {
            evict_oldest(h);
        }
        if (seg != last_seg(h, h->next - 1) && seg != last_seg(h, h->next)) {
            return release_seg(h, seg);
        }
    }
    return 0;
}

static bool hold_seg(KtHistory *h, unsigned seg)
{
    uint64_t len = seg_len(h, seg);

    while (!h->held[seg] && !kt_budget_take(h->budget, KT_MEM_HISTORY, len)) {
        if (!drop_oldest_seg(h)) {
            return false;
        }
    }
    h->held[seg] = true;
    return true;
}

/* Charge the segment of the next row, if it is not charged yet. */
static bool hold_next(KtHistory *h)
{
    uint64_t slot = slot_of(h, h->next);
    unsigned last = last_seg(h, h->next);
    uint64_t end = MIN((last + 1) * SEG_BYTES / ROW_BYTES, h->capacity);

    if (!hold_seg(h, first_seg(h, h->next)) || !hold_seg(h, last)) {
        return false;
    }
    h->ready = h->next + MAX(end, slot + 1) - slot;
    return true;
}

uint64_t kt_history_shrink(KtHistory *h, uint64_t bytes)
{
    uint64_t done = 0;
    uint64_t some;

    if (!h->rows || !h->head) {
        return 0;
    }
    while (done < bytes && (some = drop_oldest_seg(h))) {
        done += some;
    }
    if (done >= bytes) {
        return done;
    }
    while (h->oldest < h->next) {
        evict_oldest(h);
    }
    for (unsigned i = 0; i < n_segs(h); i++) {
        done += release_seg(h, i);
    }
    h->ready = 0;
    return done;
}

/* ---- life --------------------------------------------------------------- */

KtHistory *kt_history_new(uint64_t bytes, KtBudget *budget)
{
    KtHistory *h = g_new0(KtHistory, 1);
    bool bounded = kt_budget_bounded(budget);
    uint64_t heads = 1;

    if (bounded) {
        bytes = MIN(bytes, kt_budget_max(budget));
    }
    /* A bucket for each 8 to 16 rows: half a byte a row. */
    h->capacity = MIN(bytes / (ROW_BYTES + 1), MAX_ROWS);
    while (heads * 8 <= h->capacity) {
        heads *= 2;
    }
    h->mask = heads - 1;
    h->next = 1;
    h->oldest = 1;
    h->budget = budget;
    h->huge = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    if (h->capacity) {
        kt_budget_charge(budget, KT_MEM_HISTORY, heads_len(h));
        h->held = g_new0(bool, n_segs(h));
        h->rows = map_memory(rows_len(h), !bounded);
        h->head = map_memory(heads_len(h), !bounded);
    }
    return h;
}

void kt_history_free(KtHistory *h)
{
    if (!h) {
        return;
    }
    kt_history_shrink(h, UINT64_MAX);
    if (h->capacity) {
        kt_budget_release(h->budget, KT_MEM_HISTORY, heads_len(h));
    }
    unmap_memory(h->rows, rows_len(h));
    unmap_memory(h->head, heads_len(h));
    g_hash_table_unref(h->huge);
    g_free(h->held);
    g_free(h);
}

uint64_t kt_history_rows(const KtHistory *h)
{
    return h->next - h->oldest;
}

uint64_t kt_history_bytes(const KtHistory *h)
{
    return kt_history_rows(h) * ROW_BYTES + heads_len(h);
}

/* ---- add ---------------------------------------------------------------- */

static bool is_huge(const KtBlock *b)
{
    return b->requested > UINT32_MAX || b->actual > UINT32_MAX;
}

static void keep_huge(KtHistory *h, Row *r)
{
    Huge *huge = g_new(Huge, 1);

    *huge = (Huge) { r->requested, r->actual };
    g_hash_table_replace(h->huge, GSIZE_TO_POINTER(slot_of(h, h->next)),
                         huge);
    r->flags |= ROW_HUGE;
}

/* Make room for another row, and for its sizes if they are huge. */
static bool make_room(KtHistory *h, const KtBlock *b)
{
    if (!h->rows || !h->head) {
        return false;
    }
    if (kt_history_rows(h) == h->capacity) {
        evict_oldest(h);
    }
    return (G_LIKELY(h->next < h->ready) || hold_next(h)) &&
           (G_LIKELY(!is_huge(b)) ||
            (g_hash_table_size(h->huge) < MAX_HUGE &&
             kt_budget_take(h->budget, KT_MEM_HISTORY, HUGE_BYTES)));
}

static void from_block(Row *r, const KtBlock *b)
{
    *r = (Row) {
        .va = b->va,
        .requested = b->requested,
        .actual = b->actual,
        .alloc_us = b->alloc_us,
        .free_us = b->free_us,
        .cache = b->cache.v,
        .alloc_stack = b->alloc_stack.v,
        .free_stack = b->free_stack.v,
        .alloc_task = b->alloc_task.v,
        .other = b->rcu_queued ? b->rcu_stack.v : b->free_task.v,
        .flags = b->layer | (b->rcu_queued ? ROW_QUEUED : 0) |
                 (b->state == KT_BLOCK_FREED ? ROW_FREED : 0) |
                 (b->removed ? ROW_REMOVED : 0),
    };
}

bool kt_history_add(KtHistory *h, const KtBlock *b)
{
    unsigned level = level_of(kt_block_len(b));
    uint64_t evicted = h->evicted;
    uint32_t *head;
    Row r;

    if (!make_room(h, b)) {
        h->evicted++;
        return false;
    }
    from_block(&r, b);
    if (G_UNLIKELY(is_huge(b))) {
        keep_huge(h, &r);
    }
    head = head_of(h, level, granule(level, b->va));
    r.link = *head;
    *head = h->next;
    h->at_level[kind_of(&r)][level]++;
    pack(row_at(h, h->next), &r);
    h->next++;
    return h->evicted == evicted;
}

uint64_t kt_history_evicted(const KtHistory *h)
{
    return h->evicted;
}

void kt_history_touch(const KtHistory *h, uint64_t va, uint64_t len)
{
    unsigned level = level_of(len);

    if (h->head) {
        kt_prefetch(head_of(h, level, granule(level, va)));
    }
}

/* ---- find --------------------------------------------------------------- */

/* A chain of a search, at its newest row that has the address and is of the
 * chain's kind. A chain of the index has rows of both kinds, so it is searched
 * once for each kind. */
typedef struct Chain {
    unsigned kind;
    uint64_t at;
    Row row;
} Chain;

/* A search for an address: the chains that may have it. @rows: that may still
 * be read; what is not read is not found */
typedef struct Search {
    const KtHistory *h;
    uint64_t va;
    uint64_t rows;
    Chain chain[ROWS__COUNT * 2 * LEVELS];
    unsigned n;
} Search;

static bool contains(const Row *r, uint64_t va)
{
    uint64_t len = MAX(r->requested, r->actual);

    return va >= r->va && va - r->va < MAX(len, 1);
}

/* Move a chain, from @link on, to the next row that is wanted. */
static bool advance(Search *s, Chain *c, uint32_t link, uint64_t before)
{
    uint64_t number = resolve(s->h, link, before);

    for (; number && s->rows; s->rows--) {
        read_row(s->h, number, &c->row);
        if (kind_of(&c->row) == c->kind && contains(&c->row, s->va)) {
            c->at = number;
            return true;
        }
        number = resolve(s->h, c->row.link, number);
    }
    return false;
}

static void add_chain(Search *s, unsigned kind, unsigned level, uint64_t key)
{
    Chain *c = &s->chain[s->n];

    c->kind = kind;
    if (advance(s, c, *head_of(s->h, level, key), s->h->next)) {
        s->n++;
    }
}

static void add_chains(Search *s, unsigned kind)
{
    for (unsigned level = 0; level < LEVELS; level++) {
        uint64_t key = granule(level, s->va);

        if (!s->h->at_level[kind][level]) {
            continue;
        }
        add_chain(s, kind, level, key);
        if (key > 0) {
            add_chain(s, kind, level, key - 1);
        }
    }
}

/* Return the chain of @kind whose row was added last, NULL if there is none. */
static Chain *newest(Search *s, unsigned kind)
{
    Chain *best = NULL;

    for (unsigned i = 0; i < s->n; i++) {
        Chain *c = &s->chain[i];

        if (c->kind == kind && (!best || c->at > best->at)) {
            best = c;
        }
    }
    return best;
}

/* Return the chain with the next row. Rows of one kind are in their order of
 * time. Of the two kinds, the life that began later comes first: a slab's page
 * becomes a past life long after the objects in it. */
static Chain *next_chain(Search *s)
{
    Chain *object = newest(s, ROWS_OBJECTS);
    Chain *pages = newest(s, ROWS_PAGES);

    if (!object || !pages) {
        return object ? object : pages;
    }
    return pages->row.alloc_us > object->row.alloc_us ? pages : object;
}

static void begin(Search *s)
{
    if (s->h->rows && s->h->head) {
        add_chains(s, ROWS_OBJECTS);
        add_chains(s, ROWS_PAGES);
    }
}

bool kt_history_newest(const KtHistory *h, uint64_t va, unsigned *rows,
                       KtBlock *out)
{
    Search s = { .h = h, .va = va, .rows = *rows };
    const Chain *c;

    begin(&s);
    *rows = (unsigned)s.rows;
    c = *rows ? next_chain(&s) : NULL;
    if (!c) {
        return false;
    }
    to_block(&c->row, out);
    return true;
}

void kt_history_find(const KtHistory *h, uint64_t va, KtBlockFn fn,
                     void *opaque)
{
    Search s = { .h = h, .va = va, .rows = UINT64_MAX };
    uint64_t last[ROWS__COUNT] = { 0 };
    Chain *c;

    begin(&s);
    while ((c = next_chain(&s)) != NULL) {
        KtBlock b;

        /* Two chains may have become one: see the head of the file. */
        to_block(&c->row, &b);
        if (c->at != last[c->kind] && !fn(&b, opaque)) {
            return;
        }
        last[c->kind] = c->at;
        if (!advance(&s, c, c->row.link, c->at)) {
            *c = s.chain[--s.n];
        }
    }
}

/* ---- walks --------------------------------------------------------------- */

void kt_history_foreach(const KtHistory *h, KtBlockFn fn, void *opaque)
{
    for (uint64_t number = h->oldest; number < h->next; number++) {
        KtBlock b;
        Row r;

        read_row(h, number, &r);
        to_block(&r, &b);
        if (!fn(&b, opaque)) {
            return;
        }
    }
}

bool kt_history_some(const KtHistory *h, uint64_t *at, unsigned n,
                     KtBlockFn fn, void *opaque)
{
    uint64_t number = MAX(*at, h->oldest);

    for (; n && number < h->next; n--, number++) {
        KtBlock b;
        Row r;

        read_row(h, number, &r);
        to_block(&r, &b);
        if (!fn(&b, opaque)) {
            break;
        }
    }
    *at = number;
    return number < h->next;
}

void kt_history_renumber(KtHistory *h, const KtRenumber *to)
{
    for (uint64_t number = h->oldest; number < h->next; number++) {
        Row r;

        unpack(row_at(h, number), &r);
        r.cache = to->cache[r.cache];
        r.alloc_stack = to->stack[r.alloc_stack];
        r.free_stack = to->stack[r.free_stack];
        r.alloc_task = to->task[r.alloc_task];
        r.other = (r.flags & ROW_QUEUED ? to->stack : to->task)[r.other];
        pack(row_at(h, number), &r);
    }
}
