/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Search: call a function for every word of a live set, with the place of the
 * word: registers, then regions, then blocks. refs.c compares the words with
 * one range of addresses, holders.c with many blocks.
 *
 * Runs in the thread of the monitor command, while the VM is stopped. No locks.
 */
#ifndef KT_SEARCH_H
#define KT_SEARCH_H

#include "kalloc-tracer/leak/live-set.h"

/**
 * struct KtSearch - state of a search; the first member of its user's struct
 * @w: (borrowed) its marker is sealed
 * @whole: also call @compare for words that a leak scan skips
 * @compare: called for the words; @opaque is the KtSearch
 * @here: place and owner of the words that are compared now. Of an owner only
 *        the address is set
 * @block: number of the block that has these words, or KT_MARKER_NONE
 * @free_objects: private: address of the array of a sheaf
 */
typedef struct KtSearch {
    KtLiveSet *w;
    bool whole;
    KtSpanFn *compare;
    KtRef here;
    uint32_t block;
    KtReader reader;
    uint64_t free_objects;
} KtSearch;

/** kt_search_run() - search all memory of @s->w. Returns: false if the search
 *  had to end: see kt_live_set_fail(). */
bool kt_search_run(KtSearch *s);

#endif /* KT_SEARCH_H */
