/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the calls of the slab allocator say of struct kmem_cache: see
 * witnesses.h.
 *
 * Offsets that are left beside the right one. A member can have the value of
 * object_size in all caches so far: inuse is object_size in units of 8 bytes.
 * Each then answers the same. Both change only inside the hooked functions, so
 * the first call after which they differ is seen, and decides: the new value is
 * the size that this call asked for. For name and size exactly one offset must
 * be left.
 *
 * Calls of kmalloc() alone decide nothing: in those caches size, inuse and
 * usersize have the value of object_size, too. So some of the witnesses must be
 * caches that were made: their sizes are of all kinds.
 */
#include "kalloc-tracer/kernel/witnesses.h"

#include <string.h>

#define NAME_MAX_BYTES  64
#define NAMES_LEAST     16
#define MADE_LEAST      4       /* of these, by a function that makes caches */
#define PAIRS_LEAST     16
#define SIZE_LEAST      8       /* a slab's slots have room for a pointer */
#define KMALLOC_SMALL   128     /* the smallest cache has at most so many */
#define KERNEL_HALF     (1ull << 63)

/*
 * struct Witness - a cache, and what is known of it
 * @bytes: its first bytes
 * @name, @name_len: the name; its NUL included
 * @object_size: a lower bound of size
 * @distance: bytes between two of its objects, 0: none
 */
typedef struct Witness {
    KtView view;
    uint64_t tag_bits;
    uint8_t bytes[KT_CACHE_BYTES];
    char name[NAME_MAX_BYTES];
    unsigned name_len;
    uint32_t object_size;
    uint64_t distance;
} Witness;

static uint32_t number_at(const Witness *w, uint32_t at)
{
    uint32_t number;

    memcpy(&number, &w->bytes[at], sizeof(number));
    return GUINT32_FROM_LE(number);
}

/* Does @at have a pointer to the name, or to a copy of it? */
static bool has_name(const void *witness, uint32_t at)
{
    const Witness *w = witness;
    char name[NAME_MAX_BYTES];
    uint64_t va;

    memcpy(&va, &w->bytes[at], sizeof(va));
    va = gs_untag(w->tag_bits, GUINT64_FROM_LE(va));
    return va >= KERNEL_HALF && kt_view_read(w->view, va, name, w->name_len) &&
           !memcmp(name, w->name, w->name_len);
}

static bool has_object_size(const void *witness, uint32_t at)
{
    const Witness *w = witness;

    return number_at(w, at) == w->object_size;
}

static bool may_be_size(const void *witness, uint32_t at)
{
    const Witness *w = witness;
    uint32_t size = number_at(w, at);

    return size >= MAX(w->object_size, SIZE_LEAST) && !(w->distance % size);
}

/* Read the name with its NUL. False if it is empty, long, or unreadable. */
static bool read_name(Witness *w, uint64_t va)
{
    for (w->name_len = 0; w->name_len < NAME_MAX_BYTES;) {
        char *to = &w->name[w->name_len++];

        if (!kt_view_read(w->view, va + w->name_len - 1, to, 1)) {
            return false;
        }
        if (!*to) {
            return w->name_len > 1;
        }
    }
    return false;
}

/* Was @va allocated after @since? */
static bool is_fresh(const KtCacheWitnesses *w, uint64_t va, uint32_t since)
{
    uint32_t n = MIN(w->clock - since, KT_FRESH_OBJECTS);

    for (uint32_t i = 1; i <= n; i++) {
        if (w->fresh[(w->clock - i) % KT_FRESH_OBJECTS] == va) {
            return true;
        }
    }
    return false;
}

static void check_learned(KtCacheWitnesses *w)
{
    uint32_t size = kt_votes_only(&w->size, NAMES_LEAST);

    if (size == KT_NO_MEMBER || w->pairs < PAIRS_LEAST ||
        w->made < MADE_LEAST ||
        kt_votes_only(&w->name, NAMES_LEAST) == KT_NO_MEMBER) {
        return;
    }
    /* Another member than size */
    kt_votes_remove(&w->object_size, size);
    w->learned = w->object_size.n && w->object_size.seen >= NAMES_LEAST;
}

/* Let a cache vote. Its name and object size are known. */
static void vote(KtCacheWitnesses *w, const Witness *now)
{
    kt_votes_cast(&w->name, has_name, now, KT_CACHE_BYTES, 8);
    kt_votes_cast(&w->object_size, has_object_size, now, KT_CACHE_BYTES, 4);
    kt_votes_cast(&w->size, may_be_size, now, KT_CACHE_BYTES, 4);
    check_learned(w);
}

/* Of several offsets for object_size, keep those that have the size that was
 * asked for, if any has. */
static void choose_object_size(KtCacheWitnesses *w, const Witness *now)
{
    bool any = false;

    for (unsigned i = 0; i < w->object_size.n; i++) {
        any |= has_object_size(now, w->object_size.at[i]);
    }
    if (any && w->object_size.n > 1) {
        kt_votes_cast(&w->object_size, has_object_size, now, 0, 1);
    }
}

void kt_cache_witnesses_made(KtCacheWitnesses *w, const KtCacheMade *made)
{
    Witness now = {
        .view = w->view, .tag_bits = w->tag_bits, .object_size = made->size,
    };

    if (!made->size ||
        !kt_view_read(w->view, made->cache, now.bytes, sizeof(now.bytes))) {
        return;
    }
    if (w->learned) {
        choose_object_size(w, &now);
        return;
    }
    if ((made->in_place || is_fresh(w, made->cache, made->since)) &&
        read_name(&now, made->name)) {
        w->made++;
        vote(w, &now);
    }
}

/* Return the bytes that the name of a cache of kmalloc() says, 0 if it is
 * another name: "kmalloc-96", "kmalloc-rcl-2k", "kmalloc-rnd-05-8". */
static uint32_t bytes_by_name(const char *name)
{
    const char *number = strrchr(name, '-');
    uint64_t bytes;
    char *end;

    if (!strstr(name, "kmalloc-") || !g_ascii_isdigit(number[1])) {
        return 0;
    }
    bytes = g_ascii_strtoull(number + 1, &end, 10);
    if (*end == 'k' || *end == 'M') {
        bytes *= *end++ == 'k' ? 1024 : 1024 * 1024;
    }
    return *end || bytes > UINT32_MAX ? 0 : bytes;
}

/* Find the name in a cache that kmalloc() uses for @size bytes. */
static bool find_kmalloc_name(Witness *w, uint32_t size)
{
    for (unsigned at = 0; at < KT_CACHE_BYTES; at += 8) {
        uint64_t va;
        uint32_t bytes;

        memcpy(&va, &w->bytes[at], sizeof(va));
        va = gs_untag(w->tag_bits, GUINT64_FROM_LE(va));
        if (va < KERNEL_HALF || !read_name(w, va)) {
            continue;
        }
        bytes = bytes_by_name(w->name);
        if (bytes >= size && (bytes <= KMALLOC_SMALL || bytes / 2 < size)) {
            w->object_size = bytes;
            return true;
        }
    }
    return false;
}

void kt_cache_witnesses_kmalloc(KtCacheWitnesses *w, uint64_t cache,
                                uint32_t size)
{
    Witness now = { .view = w->view, .tag_bits = w->tag_bits };

    if (w->learned || cache == w->last_kmalloc ||
        !kt_view_read(w->view, cache, now.bytes, sizeof(now.bytes))) {
        return;
    }
    w->last_kmalloc = cache;
    if (find_kmalloc_name(&now, size)) {
        vote(w, &now);
    }
}

/* Let two live objects of @cache vote for its size. */
static void pair(KtCacheWitnesses *w, uint64_t cache, uint64_t a, uint64_t b)
{
    Witness now = { .view = w->view, .distance = a > b ? a - b : b - a };

    if (now.distance && a >> w->page_shift == b >> w->page_shift &&
        w->size.seen &&
        kt_view_read(w->view, cache, now.bytes, sizeof(now.bytes))) {
        kt_votes_cast(&w->size, may_be_size, &now, KT_CACHE_BYTES, 4);
        w->pairs++;
        check_learned(w);
    }
}

void kt_cache_witnesses_object(KtCacheWitnesses *w, uint64_t cache,
                               uint64_t object)
{
    unsigned i = (cache >> 6 ^ cache >> 12) % KT_PAIRED_CACHES;

    w->fresh[w->clock++ % KT_FRESH_OBJECTS] = object;
    if (w->learned) {
        return;
    }
    if (w->last[i].cache == cache && w->last[i].object) {
        pair(w, cache, w->last[i].object, object);
    }
    w->last[i].cache = cache;
    w->last[i].object = object;
}

void kt_cache_witnesses_freed(KtCacheWitnesses *w, uint64_t object)
{
    for (unsigned i = 0; i < KT_PAIRED_CACHES; i++) {
        if (w->last[i].object == object) {
            w->last[i].object = 0;
        }
    }
}
