/* SPDX-License-Identifier: GPL-2.0-or-later */
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
#ifndef GS_NAME_CODES_H
#define GS_NAME_CODES_H

#include "guest-symbols/gs.h"

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

#endif /* GS_NAME_CODES_H */
