/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the parts of a kallsyms table in an image. For kallsyms.c only; no
 * state, one thread.
 */
#ifndef GS_KALLSYMS_FIND_H
#define GS_KALLSYMS_FIND_H

#include "guest-symbols/gs.h"

#define GS_KALLSYMS_TOKENS  256

/**
 * struct GsKallsymsLayout - how names, markers and tokens are arranged
 * @since: the release and commit that introduced it
 * @word: bytes of each marker and of num_syms
 * @seqs_first: the by-name order lies between markers and tokens
 * @align: of each part; num_syms takes so many bytes
 */
typedef struct GsKallsymsLayout {
    const char *since;
    unsigned word;
    bool seqs_first;
    unsigned align;
} GsKallsymsLayout;

/**
 * struct GsArea - (borrowed) the run of image bytes that is searched
 * @steps: (borrowed) how many steps the search of this image may still take:
 *         a bound for images full of things that look like a table
 */
typedef struct GsArea {
    const uint8_t *data;
    size_t len;
    uint64_t va;
    uint64_t *steps;
} GsArea;

/** gs_kallsyms_spend() - take @n steps. Returns: false if fewer are left; then
 *  none is left any more. */
static inline bool gs_kallsyms_spend(const GsArea *area, uint64_t n)
{
    bool enough = n <= *area->steps;

    *area->steps = enough ? *area->steps - n : 0;
    return enough;
}

/* So many bytes that are only searched count as one step. */
#define GS_KALLSYMS_STEP_BYTES  64

/**
 * struct GsKallsymsParts - positions in a GsArea
 * @tokens: token table, @token: position and @token_len: length of each token
 * @tokens_end: behind the token index
 * @markers: offsets of every 256th name, @n_markers of them
 * @names: compressed names, @n of them; all lengths are checked
 * @num_syms: the word that holds @n
 */
typedef struct GsKallsymsParts {
    const GsKallsymsLayout *layout;
    size_t tokens;
    size_t tokens_end;
    uint32_t token[GS_KALLSYMS_TOKENS];
    uint32_t token_len[GS_KALLSYMS_TOKENS];
    size_t markers;
    uint32_t n_markers;
    size_t names;
    uint32_t n;
    size_t num_syms;
} GsKallsymsParts;

/**
 * gs_kallsyms_find() - find the next table at or behind *@from
 * @from: (in, out) where to search; behind the found tokens afterwards
 * @layout_known: (out) false if tokens were found, but what is around them
 *                follows no known layout
 * Returns: false if there are no more tokens, or no more steps.
 */
bool gs_kallsyms_find(const GsArea *area, size_t *from,
                      GsKallsymsParts *parts, bool *layout_known);

/** gs_kallsyms_mark() - (static) return bytes that are in the tokens of every
 *  table. */
const char *gs_kallsyms_mark(size_t *len);

/**
 * gs_kallsyms_name() - find where a compressed name is and how long
 * @pos: (in, out) its length byte(s); behind it afterwards
 * @data: (out) its first token code
 * Returns: its token count, 0 past the end.
 */
unsigned gs_kallsyms_name(const GsArea *area, size_t *pos, size_t *data);

#endif /* GS_KALLSYMS_FIND_H */
