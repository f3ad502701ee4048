/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names in pieces: symtab.c keeps its names so. The pieces are the tokens of
 * the kernel's kallsyms; names of other origin (System.map, ELF, a journal)
 * are kept plain, with one code for each character.
 */
#include "guest-symbols/symbols/symtab-internal.h"

#include <string.h>

GsNameCodes *gs_codes_new(void)
{
    GsNameCodes *c = g_new0(GsNameCodes, 1);

    c->text = g_byte_array_new();
    return c;
}

void gs_codes_free(GsNameCodes *c)
{
    if (c) {
        g_byte_array_free(c->text, TRUE);
        g_free(c);
    }
}

void gs_codes_set(GsNameCodes *c, uint8_t code, const char *text, size_t len)
{
    /* one that is longer than any name is never written out */
    len = MIN(len, GS_CODES_TEXT_MAX + 1);
    c->len[code] = len;
    c->hidden[code] = false;
    for (size_t i = 0; i < len; i++) {
        c->hidden[code] |= !g_ascii_isgraph(text[i]);
    }
    memset(c->word[code], 0, GS_CODES_WORD);
    memcpy(c->word[code], text, MIN(len, GS_CODES_WORD));
    if (len > GS_CODES_WORD) {
        c->at[code] = c->text->len;
        g_byte_array_append(c->text, (const uint8_t *)text, len);
    }
}

GsNameCodes *gs_codes_new_plain(void)
{
    GsNameCodes *c = gs_codes_new();

    for (unsigned code = 0; code < 256; code++) {
        char self = code;

        gs_codes_set(c, code, &self, 1);
    }
    return c;
}

size_t gs_codes_bytes(const GsNameCodes *c)
{
    return sizeof(*c) + c->text->len;
}

size_t gs_codes_expand(const GsNameCodes *c, const uint8_t *codes, size_t n,
                       char buf[GS_CODES_ROOM])
{
    size_t len = 0;
    bool hidden = false;

    for (size_t i = 0; i < n; i++) {
        uint8_t code = codes[i];
        size_t more = c->len[code];

        if (more > GS_CODES_TEXT_MAX - len) {
            return 0;
        }
        if (more > GS_CODES_WORD) {
            memcpy(buf + len, c->text->data + c->at[code], more);
        } else {
            memcpy(buf + len, c->word[code], GS_CODES_WORD);
        }
        hidden |= c->hidden[code];
        len += more;
    }
    return hidden ? 0 : len;
}
