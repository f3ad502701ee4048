/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The layout of a sealed GsSymtab: for symtab.c, which answers, and
 * symtab-build.c, which makes it.
 *
 *     row            0        1        2        3    ...   by address
 *     offset[]       u32      u32      u32      u32        from a span's base
 *     names          03 'T'.. 00       05 't'.. 04 't'..   variable length
 *                    ^ twin of the next row: only a 0
 *     marker[]       position in names of every (1 << GS_MARKER_SHIFT)-th row
 *     bucket[hash]   --> row[]: three bytes each, the rows with that hash
 *
 * From address to name: binary search in offset[], then skip from the marker
 * below to the entry. From name to address: hash, then compare the names of
 * the bucket's rows.
 */
#ifndef GS_SYMTAB_INTERNAL_H
#define GS_SYMTAB_INTERNAL_H

#include "guest-symbols/symbols/symtab.h"
#include "guest-symbols/gs.h"

#define GS_MARKER_SHIFT 4
#define GS_TWIN         "__pfx_"        /* begins the name of a function's
                                         * padding, since Linux 6.4 */
#define GS_TWIN_LEN     (sizeof(GS_TWIN) - 1)

typedef struct GsSymtabDraft GsSymtabDraft;

/** struct GsSymtabSpan - the offsets from row @first on are relative to
 *  @base. */
typedef struct GsSymtabSpan {
    uint64_t base;
    uint32_t first;
} GsSymtabSpan;

/**
 * struct GsSymtab - a table; rows are symbols by address, and of one address
 *                   those first that can cover the bytes behind it
 * @draft: the symbols until the table is sealed; then NULL
 * @codes: codes of the names
 * @names: type letter and name of each row, as gs_codes_take() reads them; an
 *         entry without codes is the next row's with GS_TWIN in front
 * @marker: position in @names of each (1 << GS_MARKER_SHIFT)-th row
 * @offset: each row's address, relative to its span in @spans
 * @bucket: where in @row the rows of a hash begin; one more is the end
 * @row: three bytes each, ascending in a bucket
 * @ends: of uint64_t, sorted: no symbol's size crosses one
 * @percpu_start, @percpu_end: link-time range of the percpu template
 * @low: 0, or see gs_symtab_set_low()
 * @exact: see gs_symtab_set_exact()
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
    bool exact;
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

/* ---- kallsyms-find.c ----------------------------------------------------- */

/*
 * Finds the parts of a kallsyms table in an image. For kallsyms.c only; no
 * state, one thread.
 */

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

/** gs_kallsyms_word() - read the word of @size bytes at @pos; UINT64_MAX if it
 *  is outside the area. */
static inline uint64_t gs_kallsyms_word(const GsArea *area, size_t pos,
                                        unsigned size)
{
    uint64_t v = 0;

    if (pos > area->len || size > area->len - pos) {
        return UINT64_MAX;
    }
    memcpy(&v, area->data + pos, size);
    return GUINT64_FROM_LE(v);
}

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

/* ---- names in codes ------------------------------------------------------ */

/*
 * Names as kallsyms writes them: each byte is a code that stands for a piece
 * of text. A kernel's name takes about half its length. For the files of
 * symbols/ only; a GsNameCodes does not change once it is shared: any thread.
 *
 * Example: if code 0x02 is "kmem_", 0x8f "_alloc" and the letters stand for
 * themselves, then T kmem_cache_alloc is
 *
 *     length  codes
 *     08      'T' 02 'c' 'a' 'c' 'h' 'e' 8f
 *
 * (a piece may have any length; the type letter is coded with the name).
 */

/* The longest text of an entry: a type letter and a name. */
#define GS_CODES_TEXT_MAX   (1 + GS_SYMBOL_NAME_MAX)
/* Pieces are copied in whole words, so up to a word beyond their end. */
#define GS_CODES_WORD       16
#define GS_CODES_ROOM       (GS_CODES_TEXT_MAX + GS_CODES_WORD)

/**
 * struct GsNameCodes - what the 256 codes stand for
 * @len: bytes of each piece
 * @word: the piece, or its first bytes
 * @at: where it begins in @text, if it is longer than a @word
 * @hidden: it has something else in it than visible ASCII characters
 */
typedef struct GsNameCodes {
    uint16_t len[256];
    uint8_t word[256][GS_CODES_WORD];
    uint32_t at[256];
    bool hidden[256];
    GByteArray *text;
} GsNameCodes;

/** gs_codes_new() - (owned) make codes without text. */
GsNameCodes *gs_codes_new(void);
/** gs_codes_new_plain() - (owned) make codes that stand for themselves as
 *  characters. */
GsNameCodes *gs_codes_new_plain(void);
void gs_codes_free(GsNameCodes *c);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GsNameCodes, gs_codes_free)

/** gs_codes_set() - set the piece of @code, before the codes are shared. */
void gs_codes_set(GsNameCodes *c, uint8_t code, const char *text, size_t len);

/** gs_codes_bytes() - return the host memory of the codes. */
size_t gs_codes_bytes(const GsNameCodes *c);

/**
 * gs_codes_expand() - write the text of @n codes
 * @buf: (out) not terminated
 * Returns: its length; 0 if it is longer than GS_CODES_TEXT_MAX or has a
 * character that is not visible ASCII.
 */
size_t gs_codes_expand(const GsNameCodes *c, const uint8_t *codes, size_t n,
                       char buf[GS_CODES_ROOM]);

/* An entry of a table: one byte of length, or two when the first has bit 7
 * set; then so many codes. */
static inline size_t gs_codes_take(const uint8_t **entry, const uint8_t **codes)
{
    const uint8_t *p = *entry;
    size_t n = *p++;

    if (n & 0x80) {
        n = (n & 0x7f) | (size_t)*p++ << 7;
    }
    *codes = p;
    *entry = p + n;
    return n;
}

static inline uint8_t *gs_codes_put_length(uint8_t *out, size_t n)
{
    if (n < 0x80) {
        *out++ = n;
    } else {
        *out++ = (n & 0x7f) | 0x80;
        *out++ = n >> 7;
    }
    return out;
}

#endif /* GS_SYMTAB_INTERNAL_H */
