/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * History: see history.h.
 *
 * Rows are numbered 1, 2, ... as they come; row number s is at s % capacity.
 * Links and bucket heads are the low 32 bits of a row's number, which tell
 * the row as long as it is in the ring, since that is shorter than 2^32. A
 * stale link may come to name a row of another bucket. That is harmless:
 * every row is compared with the address that is asked for, and chains only
 * ever lead to older rows.
 */
#include "check.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#define ROW_BYTES   47
#define FIRST_SHIFT 6
#define SHIFT_STEP  2
#define LEVELS      30      /* shifts 6, 8, ... 64 */
#define MAX_ROWS    (1u << 31)
/* Rows of blocks of 4 GiB and more, whose sizes are not in the row. There
 * are a handful in any kernel that is not out to use up the host's memory. */
#define MAX_HUGE    65536

/* A row, unpacked. */
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
    uint32_t other;         /* rcu stack if queued, else free task */
    uint32_t flags;
    uint32_t link;
} Row;

/* Row.flags: the layer, and these. */
#define ROW_LAYER   7
#define ROW_QUEUED  8
#define ROW_HUGE    16      /* the sizes are in KtHistory.huge */
#define ROW_FREED   32

typedef struct Huge {
    uint64_t requested;
    uint64_t actual;
} Huge;

struct KtHistory {
    uint8_t *rows;
    uint64_t capacity;
    uint64_t next;          /* number of the next row */
    uint32_t *head;
    uint32_t mask;
    uint64_t at_level[LEVELS];
    GHashTable *huge;       /* slot -> Huge */
};

/* ---- rows --------------------------------------------------------------- */

static void pack(uint8_t *at, const Row *r)
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

static void unpack(const uint8_t *at, Row *r)
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

static uint64_t slot_of(const KtHistory *h, uint64_t number)
{
    return number % h->capacity;
}

static uint8_t *row_at(const KtHistory *h, uint64_t number)
{
    return h->rows + slot_of(h, number) * ROW_BYTES;
}

static void read_row(const KtHistory *h, uint64_t number, Row *r)
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
                 (b->state == KT_STATE_FREED ? ROW_FREED : 0),
    };
}

static void to_block(const Row *r, KtBlock *b)
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
        .state = r->flags & ROW_FREED ? KT_STATE_FREED : KT_STATE_ALLOCATED,
        .layer = r->flags & ROW_LAYER,
        .rcu_queued = queued,
        .past = true,
    };
}

/* ---- index -------------------------------------------------------------- */

static unsigned level_of(uint64_t len)
{
    unsigned bits = len > 1 ? 64 - __builtin_clzll(len - 1) : 0;

    return bits <= FIRST_SHIFT ? 0 :
           (bits - FIRST_SHIFT + SHIFT_STEP - 1) / SHIFT_STEP;
}

static uint64_t granule(unsigned level, uint64_t va)
{
    unsigned shift = FIRST_SHIFT + level * SHIFT_STEP;

    return shift < 64 ? va >> shift : 0;
}

static uint32_t *head_of(const KtHistory *h, unsigned level, uint64_t key)
{
    uint64_t x = (key ^ (uint64_t)level << 58) * 0x9e3779b97f4a7c15u;

    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return &h->head[(x >> 32) & h->mask];
}

/* The row's number if it is in the ring and older than @before, else 0. */
static uint64_t resolve(const KtHistory *h, uint32_t link, uint64_t before)
{
    uint32_t age = (uint32_t)h->next - link;
    uint64_t number = h->next - age;

    if (age == 0 || age > kt_history_rows(h) || number >= before) {
        return 0;
    }
    return number;
}

/* ---- life --------------------------------------------------------------- */

static void *map_memory(uint64_t len)
{
    void *at = mmap(NULL, len, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (at == MAP_FAILED) {
        return NULL;
    }
    madvise(at, len, MADV_HUGEPAGE);
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

KtHistory *kt_history_new(uint64_t bytes)
{
    KtHistory *h = g_new0(KtHistory, 1);
    uint64_t heads = 1;

    /* A head for 8 to 16 rows: half a byte a row. */
    h->capacity = MIN(bytes / (ROW_BYTES + 1), MAX_ROWS);
    while (heads * 8 <= h->capacity) {
        heads *= 2;
    }
    h->mask = heads - 1;
    h->next = 1;
    h->huge = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    if (h->capacity) {
        h->rows = map_memory(rows_len(h));
        h->head = map_memory(heads_len(h));
    }
    return h;
}

void kt_history_free(KtHistory *h)
{
    if (!h) {
        return;
    }
    unmap_memory(h->rows, rows_len(h));
    unmap_memory(h->head, heads_len(h));
    g_hash_table_unref(h->huge);
    g_free(h);
}

uint64_t kt_history_rows(const KtHistory *h)
{
    return MIN(h->next - 1, h->capacity);
}

uint64_t kt_history_bytes(const KtHistory *h)
{
    return kt_history_rows(h) * ROW_BYTES + heads_len(h);
}

/* ---- add ---------------------------------------------------------------- */

/* The oldest row makes room: all that needs to be undone. */
static void forget_row(KtHistory *h, uint64_t number)
{
    Row old;

    read_row(h, number, &old);
    h->at_level[level_of(MAX(old.requested, old.actual))]--;
    if (old.flags & ROW_HUGE) {
        g_hash_table_remove(h->huge, GSIZE_TO_POINTER(slot_of(h, number)));
    }
}

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

bool kt_history_add(KtHistory *h, const KtBlock *b)
{
    unsigned level = level_of(kt_block_len(b));
    bool full;
    uint32_t *head;
    Row r;

    if (!h->rows || !h->head ||
        (is_huge(b) && g_hash_table_size(h->huge) >= MAX_HUGE)) {
        return false;
    }
    full = h->next > h->capacity;
    if (full) {
        forget_row(h, h->next - h->capacity);
    }
    from_block(&r, b);
    if (G_UNLIKELY(is_huge(b))) {
        keep_huge(h, &r);
    }
    head = head_of(h, level, granule(level, b->va));
    r.link = *head;
    *head = h->next;
    h->at_level[level]++;
    pack(row_at(h, h->next), &r);
    h->next++;
    return !full;
}

void kt_history_touch(const KtHistory *h, uint64_t va, uint64_t len)
{
    unsigned level = level_of(len);

    if (h->head) {
        __builtin_prefetch(head_of(h, level, granule(level, va)), 1);
    }
}

/* ---- find --------------------------------------------------------------- */

/* The chains an address may be in, each at its newest row that fits. */
typedef struct Search {
    const KtHistory *h;
    uint64_t va;
    uint64_t at[2 * LEVELS];
    Row row[2 * LEVELS];
    unsigned n;
} Search;

static bool contains(const Row *r, uint64_t va)
{
    uint64_t len = MAX(r->requested, r->actual);

    return va >= r->va && va - r->va < MAX(len, 1);
}

/* Move chain @i to its next row that contains the address, from @link. */
static bool advance(Search *s, unsigned i, uint32_t link, uint64_t before)
{
    Row *r = &s->row[i];
    uint64_t number = resolve(s->h, link, before);

    while (number) {
        read_row(s->h, number, r);
        if (contains(r, s->va)) {
            s->at[i] = number;
            return true;
        }
        number = resolve(s->h, r->link, number);
    }
    return false;
}

static void add_chain(Search *s, unsigned level, uint64_t key)
{
    if (advance(s, s->n, *head_of(s->h, level, key), s->h->next)) {
        s->n++;
    }
}

static void begin_search(Search *s)
{
    for (unsigned level = 0; level < LEVELS; level++) {
        uint64_t key = granule(level, s->va);

        if (!s->h->at_level[level]) {
            continue;
        }
        add_chain(s, level, key);
        if (key > 0) {
            add_chain(s, level, key - 1);
        }
    }
}

static unsigned newest(const Search *s)
{
    unsigned best = 0;

    for (unsigned i = 1; i < s->n; i++) {
        if (s->at[i] > s->at[best]) {
            best = i;
        }
    }
    return best;
}

void kt_history_find(const KtHistory *h, uint64_t va, KtBlockFn fn,
                     void *opaque)
{
    Search s = { .h = h, .va = va };
    uint64_t last = 0;

    if (!h->rows || !h->head) {
        return;
    }
    begin_search(&s);
    while (s.n > 0) {
        unsigned i = newest(&s);
        KtBlock b;

        /* Two chains may have grown together: see the top of the file. */
        to_block(&s.row[i], &b);
        if (s.at[i] != last && !fn(&b, opaque)) {
            return;
        }
        last = s.at[i];
        if (!advance(&s, i, s.row[i].link, s.at[i])) {
            s.n--;
            s.at[i] = s.at[s.n];
            s.row[i] = s.row[s.n];
        }
    }
}

/* ---- all of it ---------------------------------------------------------- */

static uint64_t oldest(const KtHistory *h)
{
    return h->next - kt_history_rows(h);
}

void kt_history_foreach(const KtHistory *h, KtBlockFn fn, void *opaque)
{
    for (uint64_t number = oldest(h); number < h->next; number++) {
        KtBlock b;
        Row r;

        read_row(h, number, &r);
        to_block(&r, &b);
        if (!fn(&b, opaque)) {
            return;
        }
    }
}

void kt_history_renumber(KtHistory *h, const KtRenumber *to)
{
    for (uint64_t number = oldest(h); number < h->next; number++) {
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

/* ---- checking ----------------------------------------------------------- */

static void bad_row(KtExam *x, uint64_t number, const char *what)
{
    kt_exam_found(x, KT_CHECK_HISTORY_ROW, "%srow %" PRIu64 ": %s", x->boot,
                  number, what);
}

/* Returns: can it be read? Rows are unpacked before their huge sizes are
 * looked up, which may be missing. */
static bool check_row(const KtHistory *h, KtExam *x, uint64_t number)
{
    Row r;

    unpack(row_at(h, number), &r);
    if ((r.flags & ROW_HUGE) &&
        !g_hash_table_contains(h->huge,
                               GSIZE_TO_POINTER(slot_of(h, number)))) {
        bad_row(x, number, "its sizes are not kept");
        return false;
    }
    if (!(r.flags & ROW_LAYER) || (r.flags & ROW_LAYER) >= KT_LAYER__COUNT) {
        bad_row(x, number, "of no layer");
    } else if (!kt_exam_ids(x, r.alloc_stack, r.alloc_task, r.cache) ||
               !kt_exam_ids(x, r.free_stack, 0, 0) ||
               !(r.flags & ROW_QUEUED ? kt_exam_ids(x, r.other, 0, 0) :
                                        kt_exam_ids(x, 0, r.other, 0))) {
        bad_row(x, number, "names a stack, task or cache that is not known");
    } else if (r.alloc_us > x->last_us || r.free_us > x->last_us) {
        bad_row(x, number, "newer than the newest event");
    }
    return true;
}

bool kt_history_check_rows(const KtHistory *h, KtExam *x, uint64_t *at,
                           unsigned n)
{
    uint64_t number = MAX(*at, oldest(h));

    if (!h->rows || !h->head) {
        return false;
    }
    while (n-- && number < h->next) {
        check_row(h, x, number++);
    }
    *at = number;
    return number < h->next;
}

/* The rows of a bucket, newest first. Where a link leads to another bucket's
 * row, what it named is gone, and all before it. */
static void walk_bucket(const KtHistory *h, KtExam *x, uint32_t *head,
                        KtSeen *seen)
{
    uint64_t number = resolve(h, *head, h->next);
    uint64_t first = oldest(h);

    while (number) {
        unsigned level;
        Row r;

        read_row(h, number, &r);
        level = level_of(MAX(r.requested, r.actual));
        if (head_of(h, level, granule(level, r.va)) != head) {
            return;
        }
        kt_seen_add(seen, number - first);
        number = resolve(h, r.link, number);
    }
}

static void check_levels(const KtHistory *h, KtExam *x)
{
    uint64_t at_level[LEVELS] = { 0 };
    Row r;

    for (uint64_t i = oldest(h); i < h->next; i++) {
        read_row(h, i, &r);
        at_level[level_of(MAX(r.requested, r.actual))]++;
    }
    for (unsigned i = 0; i < LEVELS; i++) {
        if (at_level[i] != h->at_level[i]) {
            kt_exam_found(x, KT_CHECK_HISTORY_INDEX, "%s%" PRIu64 " rows of "
                          "level %u, counted are %" PRIu64, x->boot,
                          at_level[i], i, h->at_level[i]);
        }
    }
}

static void check_buckets(const KtHistory *h, KtExam *x)
{
    KtSeen seen;

    kt_seen_init(&seen, kt_history_rows(h));
    for (uint64_t i = 0; i <= h->mask; i++) {
        walk_bucket(h, x, &h->head[i], &seen);
    }
    for (uint64_t i = 0; i < seen.size && seen.n != seen.size; i++) {
        if (!kt_seen_has(&seen, i)) {
            kt_exam_found(x, KT_CHECK_HISTORY_INDEX, "%srow %" PRIu64 " is "
                          "not found by its address, %" PRIu64 " are not",
                          x->boot, oldest(h) + i, seen.size - seen.n);
            break;
        }
    }
    kt_seen_deinit(&seen);
}

void kt_history_check(const KtHistory *h, KtExam *x)
{
    bool readable = true;

    if (!h->rows || !h->head) {
        return;
    }
    for (uint64_t i = oldest(h); i < h->next; i++) {
        readable &= check_row(h, x, i);
        kt_exam_step(x, 1);
    }
    if (readable) {
        check_levels(h, x);
        check_buckets(h, x);
    }
    x->report.history += kt_history_rows(h);
}
