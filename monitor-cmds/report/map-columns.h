/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The heap map of a page, as columns: the cells and blocks of ka map. Numbers
 * of pages (4 KiB) have 52 bits, which JavaScript's numbers hold; addresses
 * have not. One thread.
 */
#ifndef MC_MAP_COLUMNS_H
#define MC_MAP_COLUMNS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* Most cells and blocks that are taken from an answer. */
#define MC_COLUMN_CELLS     32768u
#define MC_COLUMN_BLOCKS    20000u

/** struct McCellColumn - a cell; @cache, @caller: in the table of strings;
 *  @oldest_us: -1: nothing is live */
typedef struct McCellColumn {
    uint64_t va;
    unsigned space, cache, caller;
    int64_t live, pages, freed, blocks, oldest_us;
    bool listed;
} McCellColumn;

/** struct McBlockColumn - a block; @cell: the number of the cell in which it
 *  begins; @state: 0 live, 1 queued by kfree_rcu(), 2 freed */
typedef struct McBlockColumn {
    uint64_t va;
    unsigned cell, cache, caller, state;
    int64_t asked, size, us;
    bool pages;
} McBlockColumn;

/**
 * struct McMapColumns - all of it
 * @cell: McCellColumn, by space, then by address
 * @block: McBlockColumn, by address
 * @cell_bytes: size of a cell; 0: there is no map
 * @live, @blocks: sums of all live blocks
 */
typedef struct McMapColumns {
    GArray *cell, *block;
    int64_t cell_bytes, live, blocks;
} McMapColumns;

McMapColumns *mc_map_columns_new(void);
void mc_map_columns_free(McMapColumns *m);
/** mc_map_columns_find() - find the cell of an address. Return false if there
 *  is none. */
bool mc_map_columns_find(const McMapColumns *m, unsigned space, uint64_t va,
                         unsigned *out);
/** mc_put_map() - append the member "map". */
void mc_put_map(GString *to, const McMapColumns *m);

#endif /* MC_MAP_COLUMNS_H */
