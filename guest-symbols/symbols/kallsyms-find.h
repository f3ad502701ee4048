/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where the parts of a kallsyms table lie in an image. Internal to
 * kallsyms.c and kallsyms-find.c.
 */
#ifndef GS_KALLSYMS_FIND_H
#define GS_KALLSYMS_FIND_H

#include "guest-symbols/gs.h"

#define GS_KALLSYMS_TOKENS  256

/**
 * struct GsKallsymsLayout - how names, markers and tokens lie
 * @since: releases and commit that made it
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
 * @steps: (borrowed) how much may yet be done, of one look at an image, however
 *         much of it looks like a table
 */
typedef struct GsArea {
    const uint8_t *data;
    size_t len;
    uint64_t va;
    uint64_t *steps;
} GsArea;

/** gs_kallsyms_spend() - @n steps. Returns: false when there are not as many,
 *  and then none any more. */
static inline bool gs_kallsyms_spend(const GsArea *area, uint64_t n)
{
    bool enough = n <= *area->steps;

    *area->steps = enough ? *area->steps - n : 0;
    return enough;
}

/* Of bytes that are only searched, so many are a step. */
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
 * gs_kallsyms_find() - the next table at or behind *@from
 * @from: (in, out) where to search; behind the found tokens afterwards
 * @layout_known: (out) false when there are tokens whose surroundings follow
 *                no known layout
 * Returns: false when there are no more tokens, or steps.
 */
bool gs_kallsyms_find(const GsArea *area, size_t *from,
                      GsKallsymsParts *parts, bool *layout_known);

/** gs_kallsyms_mark() - (static) bytes that each table has in its tokens. */
const char *gs_kallsyms_mark(size_t *len);

/**
 * gs_kallsyms_name() - position and length of a compressed name
 * @pos: (in, out) its length byte(s); behind it afterwards
 * @data: (out) its first token code
 * Returns: its token count, 0 past the end.
 */
unsigned gs_kallsyms_name(const GsArea *area, size_t *pos, size_t *data);

#endif /* GS_KALLSYMS_FIND_H */
