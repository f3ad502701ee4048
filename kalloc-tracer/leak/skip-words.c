/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Skip members that look like pointers but keep nothing alive: the rows of
 * skip-members.def. Each applies to the blocks of the cache that has the name
 * of the type.
 */
#include "kalloc-tracer/leak/leak-internal.h"

#include <string.h>

typedef enum Kind {
    KIND_NUMBER,
    KIND_RB_NODE,
    KIND_REMOVED,
} Kind;

static const struct {
    Kind kind;
    const char *cache, *type, *member;
} rows[] = {
#define KT_LEAK_MEMBER(kind_, cache_, type_, member_, why_) \
    { KIND_##kind_, (cache_), (type_), (member_) },
#include "kalloc-tracer/leak/skip-members.def"
};

#define ROWS G_N_ELEMENTS(rows)

/*
 * struct Finding - offsets and sizes in this kernel
 * @at, @size: of the member of each row
 */
typedef struct Finding {
    KtLiveSet *w;
    uint32_t at[ROWS], size[ROWS];
} Finding;

/* Return a bit for each row whose member this kernel has. */
static unsigned find_rows(Finding *f)
{
    const GsKernel *k = f->w->plan->kernel;
    bool nodes = kt_layout_has_all(&f->w->layout, KT_M_RB_PARENT,
                                   KT_M_RB_RIGHT);
    bool removed = nodes && kt_layout_has_all(&f->w->layout,
                                              KT_M_KERNFS_ACTIVE,
                                              KT_M_KERNFS_RB);
    unsigned found = 0;

    for (unsigned i = 0; i < ROWS; i++) {
        if ((rows[i].kind != KIND_RB_NODE || nodes) &&
            (rows[i].kind != KIND_REMOVED || removed) &&
            gs_kernel_member(k, rows[i].type, rows[i].member, &f->at[i],
                             &f->size[i])) {
            found |= 1u << i;
        }
    }
    return found;
}

/* Return (owned) an array by cache id, with a bit for each row. */
static uint8_t *rows_of_caches(const KtLiveSet *w, unsigned found)
{
    uint8_t *bits = g_new0(uint8_t, UINT16_MAX + 1);
    KtCacheInfo info;

    G_STATIC_ASSERT(ROWS <= 8);
    for (unsigned id = 1; id <= UINT16_MAX &&
         kt_tracer_cache(w->tracer, (KtCacheId) { id }, &info); id++) {
        for (unsigned i = 0; i < ROWS; i++) {
            bits[id] |= strcmp(info.name, rows[i].cache) ? 0 : found & 1u << i;
        }
    }
    return bits;
}

/* Is the rb_node in a tree? Then its parent has it as a child, or it is the
 * root and has no parent. RB_CLEAR_NODE() sets the parent to the node
 * itself. */
static bool is_linked(const Finding *f, uint64_t node)
{
    const uint32_t *at = f->w->layout.at;
    uint64_t parent, left, right;

    if (!kt_live_set_load(f->w, node + at[KT_M_RB_PARENT], &parent)) {
        return false;
    }
    parent &= ~3ull;
    return !parent || (kt_live_set_load(f->w, parent + at[KT_M_RB_LEFT],
                                        &left) &&
                       kt_live_set_load(f->w, parent + at[KT_M_RB_RIGHT],
                                        &right) &&
                       parent != node && (left == node || right == node));
}

/* Was the kernfs_node removed? Then it is in no tree (its rb_node points to
 * itself), and its count of users is negative. */
static bool is_removed(const Finding *f, uint64_t va)
{
    const uint32_t *at = f->w->layout.at;
    uint64_t parent, node = va + at[KT_M_KERNFS_RB];
    int32_t active;

    return f->w->mem.read(f->w->mem.opaque, va + at[KT_M_KERNFS_ACTIVE],
                          &active, sizeof(active)) && active < 0 &&
           kt_live_set_load(f->w, node + at[KT_M_RB_PARENT], &parent) &&
           parent == node;
}

static bool is_stale(const Finding *f, uint64_t va, unsigned row)
{
    switch (rows[row].kind) {
    case KIND_RB_NODE:
        return !is_linked(f, va + f->at[row]);
    case KIND_REMOVED:
        return is_removed(f, va);
    default:
        return true;
    }
}

static void skip_member(const Finding *f, uint32_t block, unsigned row)
{
    uint32_t at = f->at[row];

    if (is_stale(f, kt_live_set_block(f->w, block)->va, row)) {
        kt_marker_skip(f->w->scan, block, at, at + (uint64_t)f->size[row]);
    }
}

void kt_skip_members(KtLiveSet *w)
{
    Finding f = { .w = w };
    unsigned found = find_rows(&f);
    g_autofree uint8_t *of_cache = rows_of_caches(w, found);

    for (uint32_t i = 0; found && i < w->live->len && !w->ended; i++) {
        unsigned bits = of_cache[kt_live_set_block(w, i)->cache.v];

        for (; bits; bits &= bits - 1) {
            skip_member(&f, i, __builtin_ctz(bits));
        }
    }
}

/* ---- kmemleak ------------------------------------------------------------ */
/*
 * Skip the records of kmemleak, the kernel's own leak detector. A record, a
 * struct kmemleak_object, has the address of a block but does not own it:
 *
 *     use_count > 0     the record is in kmemleak's lists: no word is scanned
 *     use_count == 0    the record waits for a grace period to be freed. Its
 *                       rcu_head links it to other callbacks, so the rcu_head
 *                       is scanned. Before, the rcu_head has stale words
 *
 * All records are roots: kmemleak's lists are the owner.
 */

typedef struct Record {
    KtCacheId cache;
    uint32_t rcu, rcu_size, use_count;
    bool waits;                 /* all four are known */
} Record;

/* Return the newest cache with that name, 0 if there is none. */
static KtCacheId find_cache(const KtLiveSet *w, const char *name)
{
    KtCacheId found = { 0 };
    KtCacheInfo info;

    for (unsigned id = 1; id <= UINT16_MAX &&
         kt_tracer_cache(w->tracer, (KtCacheId) { id }, &info); id++) {
        if (!strcmp(info.name, name)) {
            found = (KtCacheId) { id };
        }
    }
    return found;
}

static bool find_record(const KtLiveSet *w, Record *r)
{
    const KtLayout *l = &w->layout;

    *r = (Record) {
        .cache = find_cache(w, "kmemleak_object"),
        .rcu = l->at[KT_M_KMEMLEAK_RCU], .rcu_size = l->size[KT_M_KMEMLEAK_RCU],
        .use_count = l->at[KT_M_KMEMLEAK_USERS],
        .waits = kt_layout_has(l, KT_M_KMEMLEAK_RCU) &&
                 l->size[KT_M_KMEMLEAK_USERS] == sizeof(int32_t),
    };
    return r->cache.v;
}

static bool is_waiting(const KtLiveSet *w, const Record *r, uint64_t va)
{
    int32_t count;

    return r->waits && w->mem.read(w->mem.opaque, va + r->use_count, &count,
                                   sizeof(count)) && count == 0;
}

void kt_skip_kmemleak(KtLiveSet *w)
{
    Record r;

    if (!find_record(w, &r)) {
        return;
    }
    for (uint32_t i = 0; i < w->live->len; i++) {
        const KtLiveBlock *b = kt_live_set_block(w, i);

        if (b->cache.v != r.cache.v) {
            continue;
        }
        kt_marker_set_flags(w->scan, i, KT_MARKERF_ROOT);
        if (is_waiting(w, &r, b->va)) {
            kt_marker_area(w->scan,
                           (KtMarkerArea) { i, r.rcu, r.rcu + r.rcu_size });
        } else {
            kt_marker_set_flags(w->scan, i, KT_MARKERF_NO_SCAN);
        }
    }
}

/* ---- sheaves ------------------------------------------------------------- */
/*
 * Skip the objects of sheaves. A sheaf is an array of a cache's free objects
 * that a CPU allocates from (struct slab_sheaf in mm/slub.c, since 6.18):
 *
 *     slab_sheaf { ..., cache, ..., size, objects[sheaf_capacity] }
 *                                         |  objects[size..]: stale, the
 *                                         |  objects are in use elsewhere
 *
 * Stale entries would keep alive every object that was allocated from the
 * sheaf, so the whole array is skipped. A block is a sheaf if its requested
 * size is that of a sheaf of some cache, and its member `cache` points to a
 * cache with sheaves of that size.
 */

typedef struct Sheaves {
    KtLiveSet *w;
    const uint32_t *at;             /* of members */
    KtCacheId caches;               /* id of the cache "kmem_cache" */
    GHashTable *size;               /* bytes of sheaves, of all caches */
} Sheaves;

static bool has_members(const KtLayout *l)
{
    return kt_layout_has(l, KT_M_SHEAF_CACHE) &&
           kt_layout_has(l, KT_M_SHEAF_OBJECTS) &&
           kt_layout_has(l, KT_M_CACHE_CAPACITY);
}

static bool find_caches(Sheaves *s)
{
    KtCacheInfo info;

    for (unsigned id = 1; id <= UINT16_MAX &&
         kt_tracer_cache(s->w->tracer, (KtCacheId) { id }, &info); id++) {
        if (!strcmp(info.name, "kmem_cache")) {
            s->caches.v = id;
            return true;
        }
    }
    return false;
}

/* Return the bytes of a sheaf of the cache at @va, 0 if it has no sheaves. */
static uint64_t sheaf_size(const Sheaves *s, uint64_t va)
{
    uint64_t word;
    uint32_t capacity;

    if (!kt_live_set_load(s->w, va + s->at[KT_M_CACHE_CAPACITY], &word)) {
        return 0;
    }
    capacity = word;
    return capacity ? s->at[KT_M_SHEAF_OBJECTS] + 8 * (uint64_t)capacity : 0;
}

static void find_sizes(Sheaves *s)
{
    for (uint32_t i = 0; i < s->w->live->len && !s->w->ended; i++) {
        const KtLiveBlock *b = kt_live_set_block(s->w, i);
        uint64_t size = b->cache.v == s->caches.v ? sheaf_size(s, b->va) : 0;

        if (size) {
            g_hash_table_add(s->size, g_memdup2(&size, sizeof(size)));
        }
    }
}

static bool is_sheaf(const Sheaves *s, const KtLiveBlock *b)
{
    const KtLiveBlock *cache;
    uint64_t va;

    if (!g_hash_table_contains(s->size, &b->requested) ||
        !kt_live_set_load(s->w, b->va + s->at[KT_M_SHEAF_CACHE], &va)) {
        return false;
    }
    cache = kt_live_set_find(s->w, va);
    return cache && cache->cache.v == s->caches.v &&
           sheaf_size(s, va) == b->requested;
}

void kt_skip_sheaves(KtLiveSet *w)
{
    g_autoptr(GHashTable) size = g_hash_table_new_full(gs_number_hash,
                                                       g_int64_equal, g_free,
                                                       NULL);
    Sheaves s = { .w = w, .at = w->layout.at, .size = size };
    uint32_t objects = s.at[KT_M_SHEAF_OBJECTS];

    if (!has_members(&w->layout) || !find_caches(&s)) {
        return;
    }
    find_sizes(&s);
    for (uint32_t i = 0; i < w->live->len && !w->ended; i++) {
        const KtLiveBlock *b = kt_live_set_block(w, i);

        if (is_sheaf(&s, b)) {
            g_array_append_val(w->sheaf, ((KtLiveSheaf) { i, objects }));
            kt_marker_skip(w->scan, i, objects, b->requested);
        }
    }
}
