/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The inside of a GsSymtab: for symtab.c, which asks it, and symtab-build.c,
 * which makes it.
 */
#ifndef GS_SYMTAB_INSIDE_H
#define GS_SYMTAB_INSIDE_H

#include "guest-symbols/symbols/symtab.h"

#define GS_MARKER_SHIFT 4
#define GS_TWIN         "__pfx_"        /* begins the name of a function's
                                         * padding, since Linux 6.4 */
#define GS_TWIN_LEN     (sizeof(GS_TWIN) - 1)

typedef struct GsSymtabDraft GsSymtabDraft;

/** struct GsSymtabSpan - from row @first on addresses are counted from
 *  @base. */
typedef struct GsSymtabSpan {
    uint64_t base;
    uint32_t first;
} GsSymtabSpan;

/**
 * struct GsSymtab - rows are symbols by address, of one address those first
 *                   that can cover what is behind it
 * @draft: until it is sealed, when all else is yet to come
 * @codes: that names are written in
 * @names: type letter and name of each row, as gs_codes_take() reads them;
 *         without codes it is what the next row's is, with GS_TWIN in front
 * @marker: where in @names each (1 << GS_MARKER_SHIFT)-th row is
 * @offset: each row's address, from that of its span in @spans
 * @bucket: where in @row those of a hash begin; one more is the end
 * @row: three bytes each, ascending in a bucket
 * @ends: of uint64_t, sorted: no extent crosses one
 * @percpu_start, @percpu_end: link-time range of the percpu template
 * @low: 0, or see gs_symtab_set_low()
 */
struct GsSymtab {
    GsSymtabDraft *draft;
    uint32_t n;
    size_t n_unsorted;
    GsNameCodes *codes;
    uint8_t *names;
    size_t names_len;
    uint32_t *marker;
    uint32_t *offset;
    GArray *spans;
    uint32_t hash_mask;
    uint32_t *bucket;
    uint8_t (*row)[3];
    GArray *ends;
    uint64_t percpu_start;
    uint64_t percpu_end;
    uint64_t low;
};

static inline size_t gs_symtab_n_markers(const GsSymtab *tab)
{
    return ((size_t)tab->n + (1u << GS_MARKER_SHIFT) - 1) >> GS_MARKER_SHIFT;
}

/** gs_symtab_covers() - can a symbol cover addresses behind its own? @text:
 *  type letter and name. */
bool gs_symtab_covers(const char *text);

/** gs_symtab_build() - all of it but @ends and the percpu range, from the
 *  draft, which is freed. */
void gs_symtab_build(GsSymtab *tab);
void gs_symtab_draft_free(GsSymtabDraft *d);

#endif /* GS_SYMTAB_INSIDE_H */
