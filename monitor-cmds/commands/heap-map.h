/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Heap map: how full each piece of the address space is. Owned by ka map; one
 * thread.
 *
 * The addresses that have blocks are cut into cells of one size, a power of two
 * and at least a page. If there would be too many cells, their size is doubled:
 *
 *     cells of 4 KiB   | 1000 | 2000 |      | 4000 |
 *     cells of 8 KiB   | 0000        |  2000       | 4000 ...
 *
 * Objects lie in slabs, whose pages may be blocks of the page allocator, too
 * (pages=on). Bytes of these are counted apart.
 */
#ifndef MC_HEAP_MAP_H
#define MC_HEAP_MAP_H

#include "kalloc-tracer/kt.h"

/* Most cells of a map, and most blocks that are listed one by one. */
#define MC_MAP_CELLS    32768u
#define MC_MAP_BLOCKS   20000u
/* log2 of the least size of a cell. */
#define MC_MAP_SHIFT    12u

/** The parts of the address space; cells are ordered by these. */
typedef enum McSpace {
    MC_SPACE_DIRECT,    /* the direct map: slabs and pages */
    MC_SPACE_VMALLOC,
    MC_SPACE_PERCPU,
    MC_SPACE__COUNT
} McSpace;
/** mc_space_name() - return (static) "direct" and so on. */
const char *mc_space_name(McSpace space);

/** struct McMost - what most bytes of a cell are of, if more than half of them
 *  are; else one of many. @key: compared; @id: of the cache, 0: the key is a
 *  layer; or of a stack; @weight: bytes of it less bytes of others */
typedef struct McMost {
    uint64_t key, weight;
    uint32_t id;
} McMost;

/**
 * struct McMapCell - a cell
 * @va: its first address
 * @live, @pages, @freed: bytes of live objects, of live blocks of pages, of
 *                        freed blocks
 * @blocks: live blocks that begin here; @begin: all that do
 * @oldest_us: the oldest of the live ones that lie here, UINT64_MAX: none
 * @cache, @caller: of live objects; of pages, or of freed blocks, if there are
 *                  none
 * @listed: its blocks are listed one by one
 */
typedef struct McMapCell {
    uint64_t va;
    uint64_t live, pages, freed;
    uint64_t blocks, begin;
    uint64_t oldest_us;
    unsigned rank;      /* of what @cache and @caller are */
    McMost cache, caller;
    bool listed;
} McMapCell;

/**
 * struct McHeapMap - all cells
 * @cell: McMapCell, by address, for each part of the address space
 * @shift: log2 of the size of a cell
 * @live, @blocks: sums of all live blocks, pages included
 */
typedef struct McHeapMap {
    GArray *cell[MC_SPACE__COUNT];
    unsigned shift;
    unsigned max;
    uint64_t live, blocks;
} McHeapMap;

/** mc_heap_map_new() - (owned) begin a map. @max: most cells */
McHeapMap *mc_heap_map_new(unsigned max);
void mc_heap_map_free(McHeapMap *m);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(McHeapMap, mc_heap_map_free)

/** mc_heap_map_add() - add a block. Add blocks by address. @caller: a number
 *  that identifies its caller */
void mc_heap_map_add(McHeapMap *m, const KtBlock *b, uint64_t caller);
/** mc_heap_map_at() - return (borrowed) the cell in which a block begins, NULL
 *  if there is none. */
McMapCell *mc_heap_map_at(const McHeapMap *m, McSpace space, uint64_t va);
/** mc_heap_map_choose() - choose the cells whose blocks are listed: those that
 *  were chosen before, then those with most unused bytes, until there are @max
 *  blocks. */
void mc_heap_map_choose(McHeapMap *m, uint64_t max);
/** mc_heap_map_cells() - return the number of cells. */
unsigned mc_heap_map_cells(const McHeapMap *m);
/** mc_space_of() - return where blocks of a layer lie. */
McSpace mc_space_of(KtLayer layer);

#endif /* MC_HEAP_MAP_H */
