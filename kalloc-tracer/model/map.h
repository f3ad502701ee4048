/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Map: an ordered map from 64-bit addresses to 32-bit values other than 0.
 *
 * A B+tree of 512-byte nodes. A leaf holds a 64-bit base with 32-bit deltas,
 * so an entry costs 8 bytes; leaves share with their neighbours before they
 * split, which keeps them about 80 % full. No locking.
 *
 * The model keeps blocks in it by their start. Blocks do not overlap, so the
 * block that contains an address is the one that begins at or before it.
 */
#ifndef KT_MAP_H
#define KT_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "kalloc-tracer/base/pool.h"

typedef struct KtMap {
    KtPool nodes;
    uint32_t root;          /* 0: empty, and nothing was ever inserted */
    unsigned height;        /* levels above the leaves */
    uint32_t version;       /* counts changes of which leaf a key is in */
    uint64_t n;
} KtMap;

/** struct KtMapEntry - an entry, by value; @val is 0 when there is none */
typedef struct KtMapEntry {
    uint64_t key;
    uint32_t val;
} KtMapEntry;

/** struct KtMapIter - a place between entries, good until the next change */
typedef struct KtMapIter {
    uint32_t leaf;
    uint32_t i;
} KtMapIter;

void kt_map_init(KtMap *m);
void kt_map_deinit(KtMap *m);

/** kt_map_charge() - as kt_pool_charge(). */
void kt_map_charge(KtMap *m, KtBudget *b, KtMemoryPart part);

/** kt_map_insert() - set @key to @val, whether it is there or not.
 *  Returns: false when there is no memory; nothing is changed then. */
bool kt_map_insert(KtMap *m, uint64_t key, uint32_t val);
/** kt_map_remove() - false when @key was not there. */
bool kt_map_remove(KtMap *m, uint64_t key);

/** kt_map_floor() - the entry with the greatest key <= @key. */
KtMapEntry kt_map_floor(const KtMap *m, uint64_t key);
/** kt_map_above() - the entry with the least key > @key. */
KtMapEntry kt_map_above(const KtMap *m, uint64_t key);
/** kt_map_around() - both of these by one search. */
void kt_map_around(const KtMap *m, uint64_t key, KtMapEntry *floor,
                   KtMapEntry *above);

/** kt_map_seek() - the place before the first key >= @key. */
KtMapIter kt_map_seek(const KtMap *m, uint64_t key);
/** kt_map_next() - the entry after the place, which moves past it. */
KtMapEntry kt_map_next(const KtMap *m, KtMapIter *it);

/**
 * struct KtMapHint - a search that is spread over time
 * @map, @key: what is searched for, set by the caller
 * @leaf, @version: where it got to; used only while nothing moved
 *
 * Several searches at once, each step starting to load what the next one
 * reads, cost little more than one: most of a search is waiting for memory.
 */
typedef struct KtMapHint {
    KtMap *map;
    uint64_t key;
    uint32_t leaf;
    uint32_t version;
} KtMapHint;

/** kt_map_touch() - first step of @n searches: find their leaves and start
 *  to load them. Changes of the map make hints slow, never wrong. */
void kt_map_touch(KtMapHint *h, unsigned n);
/** kt_map_peek() - second step: the value of the floor of the key if it lies
 *  in the same leaf, else 0. Before any change of the map. */
uint32_t kt_map_peek(const KtMapHint *h);
/** kt_map_around_hint(), kt_map_insert_hint() - last step: as those without
 *  a hint, at any time. */
void kt_map_around_hint(const KtMapHint *h, KtMapEntry *floor,
                        KtMapEntry *above);
bool kt_map_insert_hint(const KtMapHint *h, uint32_t val);

/** kt_map_bytes() - host memory. */
uint64_t kt_map_bytes(const KtMap *m);

#endif /* KT_MAP_H */
