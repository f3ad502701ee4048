/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names written as kallsyms writes them: each byte stands for a piece of
 * text, which takes about half the room. Internal to guest-symbols; a
 * GsNameCodes does not change once made.
 */
#ifndef GS_NAME_CODES_H
#define GS_NAME_CODES_H

#include "guest-symbols/gs.h"

/* A symbol's type letter and name, as they are written. */
#define GS_CODES_TEXT_MAX   (1 + GS_SYMBOL_NAME_MAX)
/* Pieces are copied in whole words, so somewhat beyond their end. */
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

/** gs_codes_new() - (owned) codes that stand for nothing. */
GsNameCodes *gs_codes_new(void);
/** gs_codes_new_plain() - (owned) each code is the character itself. */
GsNameCodes *gs_codes_new_plain(void);
void gs_codes_free(GsNameCodes *c);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GsNameCodes, gs_codes_free)

/** gs_codes_set() - what @code stands for, before it is shared. */
void gs_codes_set(GsNameCodes *c, uint8_t code, const char *text, size_t len);

/** gs_codes_bytes() - host memory they take. */
size_t gs_codes_bytes(const GsNameCodes *c);

/**
 * gs_codes_expand() - what @n codes stand for
 * @buf: (out) not terminated
 * Returns: its length; 0 if it is longer than GS_CODES_TEXT_MAX or has
 * something else in it than visible characters.
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
