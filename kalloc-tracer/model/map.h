/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Map: an ordered map from 64-bit addresses to 32-bit values other than 0.
 *
 * The model keeps the number of each block by the block's start. Blocks do not
 * overlap, so the block that contains an address is the one with the greatest
 * start that is not above it: kt_map_floor().
 *
 * A B+tree of nodes of 512 bytes, drawn in map-node.h. A leaf has a 64-bit base
 * and 32-bit differences from it, so an entry takes 8 bytes. A full leaf moves
 * entries to a neighbour before it is split, which keeps leaves about 80 %
 * full.
 *
 * No lock: the tracer's lock is held.
 */
#ifndef KT_MAP_H
#define KT_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "kalloc-tracer/base/pool.h"

/** struct KtMap - a map; private to map*.c and the self-check, except @n */
typedef struct KtMap {
    KtPool nodes;
    uint32_t root;          /* 0: empty, and nothing was ever inserted */
    unsigned height;        /* levels above the leaves */
    uint32_t version;       /* grows when keys move to other leaves */
    uint64_t n;             /* entries */
} KtMap;

/** struct KtMapEntry - an entry, by value; @val is 0 if there is none */
typedef struct KtMapEntry {
    uint64_t key;
    uint32_t val;
} KtMapEntry;

/** struct KtMapIter - a place between entries, valid until the map changes */
typedef struct KtMapIter {
    uint32_t leaf;
    uint32_t i;
} KtMapIter;

void kt_map_init(KtMap *m);
void kt_map_deinit(KtMap *m);

/** kt_map_charge() - charge the nodes to a budget, as kt_pool_charge(). */
void kt_map_charge(KtMap *m, KtBudget *b, KtMemoryPart part);

/** kt_map_insert() - add an entry, or change the value of @key. Return false,
 *  with nothing changed, if there is no memory. */
bool kt_map_insert(KtMap *m, uint64_t key, uint32_t val);
/** kt_map_remove() - remove an entry; return false if there is none. */
bool kt_map_remove(KtMap *m, uint64_t key);

/** kt_map_floor() - find the entry with the greatest key <= @key. */
KtMapEntry kt_map_floor(const KtMap *m, uint64_t key);
/** kt_map_above() - find the entry with the least key > @key. */
KtMapEntry kt_map_above(const KtMap *m, uint64_t key);
/** kt_map_around() - find both with one search. */
void kt_map_around(const KtMap *m, uint64_t key, KtMapEntry *floor,
                   KtMapEntry *above);

/** kt_map_seek() - return the place before the least key >= @key. */
KtMapIter kt_map_seek(const KtMap *m, uint64_t key);
/** kt_map_next() - return the entry after @it, and move @it behind it. */
KtMapEntry kt_map_next(const KtMap *m, KtMapIter *it);

/**
 * struct KtMapHint - a search in steps
 * @map, @key: set by the caller
 * @leaf, @version: result of the first step; valid while the map has this
 *                  version
 *
 * Most of a search is waiting for memory. So the model searches for several
 * events at once: each step prefetches what the next step reads. Several
 * searches take little longer than one.
 */
typedef struct KtMapHint {
    KtMap *map;
    uint64_t key;
    uint32_t leaf;
    uint32_t version;
} KtMapHint;

/** kt_map_touch() - first step of @n searches: find the leaves and prefetch
 *  them. If the map changes afterwards, a hint is ignored: the last step
 *  searches anew. */
void kt_map_touch(KtMapHint *h, unsigned n);
/** kt_map_peek() - second step: return the value of kt_map_floor() of the key
 *  if that entry is in the same leaf, else 0. The map must not have changed. */
uint32_t kt_map_peek(const KtMapHint *h);
/** kt_map_around_hint() - last step: as kt_map_around(). */
void kt_map_around_hint(const KtMapHint *h, KtMapEntry *floor,
                        KtMapEntry *above);
/** kt_map_insert_hint() - last step: as kt_map_insert(). */
bool kt_map_insert_hint(const KtMapHint *h, uint32_t val);

/** kt_map_bytes() - return the host memory of the nodes. */
uint64_t kt_map_bytes(const KtMap *m);

#endif /* KT_MAP_H */
