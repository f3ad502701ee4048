/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Depot: see depot.h.
 *
 * The hash table is open-addressing; a slot has the address of an entry and 16
 * bits of its hash in one word. Lookups take no lock: a slot changes once,
 * from 0 to its final value, by a release store after the entry is complete.
 *
 * A table that fills up is replaced by one of twice the size. Old tables are
 * kept until the end, since a thread may still search one; if it does not find
 * the words there, it searches the new table under the mutex. All tables
 * together take at most twice the size of the last.
 *
 * Entries lie in arenas, which never move, and are found by id through pages of
 * pointers.
 */
#include "kalloc-tracer/base/depot.h"

#include <glib.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#define ARENA_BYTES     (1024 * 1024)
#define SMALL_ARENA     (128 * 1024)    /* with a bound on memory */
#define PAGE_SHIFT      14
#define PAGE_IDS        (1u << PAGE_SHIFT)
#define FIRST_SLOTS     1024

/* What an id names. Its words follow the header. @head: the number of words and
 * the tag: one word, for a quick comparison. */
typedef struct Entry {
    uint32_t hash;
    uint32_t id;
    uint64_t head;
    uint64_t words[];
} Entry;

static uint64_t head_of(unsigned n, uint64_t tag)
{
    return (uint64_t)n << KT_DEPOT_TAG_BITS | tag;
}

typedef struct Table {
    uint32_t mask;
    uint64_t slot[];        /* address << 16 | high bits of hash; 0 = empty */
} Table;

struct KtDepot {
    uint32_t max;
    uint64_t seed;
    Table *table;           /* atomic */
    Entry ***page;          /* by id >> PAGE_SHIFT, each set once */
    uint32_t count;         /* atomic */
    pthread_mutex_t lock;   /* of all that follows, and of every change */
    GPtrArray *old_tables;
    GPtrArray *arenas;
    char *arena;
    size_t arena_left;
    uint64_t bytes;         /* atomic */
    KtBudget *budget;
    KtMemoryPart part;
    size_t arena_bytes;
};

static Table *table_new(uint32_t slots)
{
    Table *t = g_malloc0(sizeof(Table) + slots * sizeof(uint64_t));

    t->mask = slots - 1;
    return t;
}

KtDepot *kt_depot_new(uint32_t max)
{
    KtDepot *d = g_new0(KtDepot, 1);

    d->max = max;
    d->seed = (uint64_t)g_random_int() << 32 | g_random_int();
    d->page = g_new0(Entry **, (max >> PAGE_SHIFT) + 1);
    d->table = table_new(FIRST_SLOTS);
    d->old_tables = g_ptr_array_new_with_free_func(g_free);
    d->arenas = g_ptr_array_new_with_free_func(g_free);
    d->bytes = FIRST_SLOTS * sizeof(uint64_t);
    d->arena_bytes = ARENA_BYTES;
    pthread_mutex_init(&d->lock, NULL);
    return d;
}

void kt_depot_charge(KtDepot *d, KtBudget *budget, KtMemoryPart part)
{
    d->budget = budget;
    d->part = part;
    kt_budget_charge(budget, part, d->bytes);
    if (kt_budget_bounded(budget)) {
        d->arena_bytes = SMALL_ARENA;
    }
}

void kt_depot_free(KtDepot *d)
{
    if (!d) {
        return;
    }
    kt_budget_release(d->budget, d->part, d->bytes);
    for (uint32_t i = 0; i <= d->max >> PAGE_SHIFT; i++) {
        g_free(d->page[i]);
    }
    g_free(d->page);
    g_free(d->table);
    g_ptr_array_unref(d->old_tables);
    g_ptr_array_unref(d->arenas);
    pthread_mutex_destroy(&d->lock);
    g_free(d);
}

/* Two lanes, so that the multiplications of long stacks overlap. The seed is
 * secret: a guest cannot choose stacks that collide. */
static uint32_t hash_words(const KtDepot *d, const uint64_t *w, unsigned n,
                           uint64_t tag)
{
    const uint64_t k = 0x9e3779b97f4a7c15u;
    uint64_t a = d->seed ^ n;
    uint64_t b = ~d->seed ^ tag;
    unsigned i;

    for (i = 0; i + 1 < n; i += 2) {
        a = (a ^ w[i]) * k;
        b = (b ^ w[i + 1]) * k;
        a ^= a >> 29;
        b ^= b >> 31;
    }
    if (i < n) {
        a = (a ^ w[i]) * k;
        a ^= a >> 29;
    }
    a = (a ^ (b * k)) * k;
    return a >> 32;
}

static Entry *entry_at(const KtDepot *d, uint32_t id)
{
    return d->page[id >> PAGE_SHIFT][id & (PAGE_IDS - 1)];
}

static bool entry_is(const Entry *e, const uint64_t *words, unsigned n,
                     uint64_t tag)
{
    return e->head == head_of(n, tag) &&
           memcmp(e->words, words, n * sizeof(*words)) == 0;
}

/* Addresses in user space have at most 48 bits, unless a process asks for
 * more. */
static uint64_t to_slot(const Entry *e)
{
    return (uint64_t)(uintptr_t)e << 16 | e->hash >> 16;
}

static const Entry *from_slot(uint64_t slot)
{
    return (const Entry *)(uintptr_t)(slot >> 16);
}

/* Return the id; or 0, with the empty slot that ended the search in *@end. */
static uint32_t search(Table *t, uint32_t hash,
                       const uint64_t *words, unsigned n, uint64_t tag,
                       uint64_t **end)
{
    for (uint32_t i = hash & t->mask;; i = (i + 1) & t->mask) {
        uint64_t slot = __atomic_load_n(&t->slot[i], __ATOMIC_ACQUIRE);

        if (!slot) {
            *end = &t->slot[i];
            return 0;
        }
        if ((slot & 0xffff) == hash >> 16 &&
            entry_is(from_slot(slot), words, n, tag)) {
            return from_slot(slot)->id;
        }
    }
}

static bool take_bytes_locked(KtDepot *d, uint64_t n)
{
    if (!kt_budget_take(d->budget, d->part, n)) {
        return false;
    }
    __atomic_store_n(&d->bytes, d->bytes + n, __ATOMIC_RELAXED);
    return true;
}

/* Replace the table by one of twice the size. Return NULL if there is no
 * memory. */
static Table *grow_locked(KtDepot *d)
{
    Table *old = d->table;
    uint32_t slots = (old->mask + 1) * 2;
    Table *t;

    if (!take_bytes_locked(d, slots * sizeof(uint64_t))) {
        return NULL;
    }
    t = table_new(slots);
    for (uint64_t i = 0; i <= old->mask; i++) {
        uint64_t slot = old->slot[i];
        uint32_t at;

        if (!slot) {
            continue;
        }
        at = from_slot(slot)->hash & t->mask;
        while (t->slot[at]) {
            at = (at + 1) & t->mask;
        }
        t->slot[at] = slot;
    }
    g_ptr_array_add(d->old_tables, old);
    __atomic_store_n(&d->table, t, __ATOMIC_RELEASE);
    return t;
}

/* Allocate an entry of @n words. Return NULL if there is no memory. */
static Entry *new_entry_locked(KtDepot *d, unsigned n)
{
    size_t len = sizeof(Entry) + n * sizeof(uint64_t);
    Entry *e;

    if (len > d->arena_left) {
        size_t more = MAX(len, d->arena_bytes);

        if (!take_bytes_locked(d, more)) {
            return NULL;
        }
        d->arena_left = more;
        d->arena = g_malloc(more);
        g_ptr_array_add(d->arenas, d->arena);
    }
    e = (Entry *)d->arena;
    d->arena += len;
    d->arena_left -= len;
    return e;
}

/* Make the page of pointers for @id. Return false if there is no memory. */
static bool make_page_locked(KtDepot *d, uint32_t id)
{
    Entry ***page = &d->page[id >> PAGE_SHIFT];

    if (*page) {
        return true;
    }
    if (!take_bytes_locked(d, PAGE_IDS * sizeof(Entry *))) {
        return false;
    }
    *page = g_new0(Entry *, PAGE_IDS);
    return true;
}

static uint32_t insert_locked(KtDepot *d, uint32_t hash,
                              const uint64_t *words, unsigned n, uint64_t tag)
{
    Table *t = d->table;
    uint64_t *end;
    uint32_t id = search(t, hash, words, n, tag, &end);
    Entry *e;

    if (id || d->count >= d->max) {
        return id;
    }
    if (d->count >= (t->mask + 1) / 8 * 5) {
        t = grow_locked(d);
        if (!t) {
            return 0;
        }
        search(t, hash, words, n, tag, &end);
    }
    id = d->count + 1;
    e = make_page_locked(d, id) ? new_entry_locked(d, n) : NULL;
    if (!e) {
        return 0;
    }
    e->hash = hash;
    e->id = id;
    e->head = head_of(n, tag);
    memcpy(e->words, words, n * sizeof(*words));
    d->page[id >> PAGE_SHIFT][id & (PAGE_IDS - 1)] = e;
    /* The count first: a thread that finds the slot may call kt_depot_get() for
     * the id at once. */
    __atomic_store_n(&d->count, id, __ATOMIC_RELEASE);
    __atomic_store_n(end, to_slot(e), __ATOMIC_RELEASE);
    return id;
}

uint32_t kt_depot_intern(KtDepot *d, const uint64_t *words, unsigned n,
                         uint64_t tag)
{
    uint32_t hash = hash_words(d, words, n, tag);
    Table *t = __atomic_load_n(&d->table, __ATOMIC_ACQUIRE);
    uint64_t *end;
    uint32_t id = search(t, hash, words, n, tag, &end);

    if (id) {
        return id;
    }
    pthread_mutex_lock(&d->lock);
    id = insert_locked(d, hash, words, n, tag);
    pthread_mutex_unlock(&d->lock);
    return id;
}

const uint64_t *kt_depot_get(const KtDepot *d, uint32_t id, unsigned *n,
                             uint64_t *tag)
{
    const Entry *e;

    if (id == 0 || id > kt_depot_count(d)) {
        *n = 0;
        *tag = 0;
        return NULL;
    }
    e = entry_at(d, id);
    *n = e->head >> KT_DEPOT_TAG_BITS;
    *tag = e->head & (((uint64_t)1 << KT_DEPOT_TAG_BITS) - 1);
    return e->words;
}

uint32_t kt_depot_count(const KtDepot *d)
{
    return __atomic_load_n(&d->count, __ATOMIC_ACQUIRE);
}

uint64_t kt_depot_bytes(const KtDepot *d)
{
    return __atomic_load_n(&d->bytes, __ATOMIC_RELAXED);
}
