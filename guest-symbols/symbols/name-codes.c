/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names in pieces. symtab.c keeps its names so, with a kernel's own pieces
 * where it comes with some (kallsyms), else with pieces learned here: as
 * often as there is a code to spare, the pair of codes that is the most
 * frequent in a sample gets one.
 */
#include "guest-symbols/symbols/name-codes.h"

#include <string.h>

#define WORTH_MIN   8       /* times that a pair has to occur */

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

/* ---- learning ----------------------------------------------------------- */

static unsigned pair_at(const uint8_t *text)
{
    return text[0] << 8 | text[1];
}

/* Counts pairs of codes whose text would be short enough. Returns: the most
 * frequent, first code in the high byte. */
static unsigned best_pair(const GsNameCodes *c, const uint8_t *text, size_t n,
                          uint32_t *count)
{
    unsigned best = 0;

    memset(count, 0, 65536 * sizeof(*count));
    for (size_t i = 1; i < n; i++) {
        unsigned pair = pair_at(text + i - 1);

        if (!text[i - 1] || !text[i] ||
            c->len[text[i - 1]] + c->len[text[i]] > GS_CODES_WORD) {
            continue;
        }
        count[pair]++;
        if (count[pair] > count[best]) {
            best = pair;
        }
    }
    return best;
}

/* Writes @code for each @pair. Returns: what is left of @n. */
static size_t replace_pair(uint8_t *text, size_t n, unsigned pair,
                           uint8_t code)
{
    size_t to = 0;

    for (size_t i = 0; i < n; i++) {
        if (i + 1 < n && pair_at(text + i) == pair) {
            text[to++] = code;
            i++;
        } else {
            text[to++] = text[i];
        }
    }
    return to;
}

static void set_pair(GsNameCodes *c, uint8_t code, unsigned pair)
{
    char text[GS_CODES_WORD];
    size_t a = c->len[pair >> 8], b = c->len[pair & 0xff];

    memcpy(text, c->word[pair >> 8], a);
    memcpy(text + a, c->word[pair & 0xff], b);
    gs_codes_set(c, code, text, a + b);
}

GsNameCodes *gs_codes_learn(const GByteArray *sample)
{
    g_autofree uint32_t *count = g_new(uint32_t, 65536);
    g_autofree uint8_t *text = g_memdup2(sample->data, sample->len);
    GsNameCodes *c = gs_codes_new();
    size_t n = sample->len;

    for (unsigned code = 1; code < 256; code++) {
        char self = code;

        if (g_ascii_isgraph(code)) {
            gs_codes_set(c, code, &self, 1);
        }
    }
    for (unsigned code = 1; code < 256; code++) {
        unsigned pair;

        if (c->len[code]) {
            continue;
        }
        pair = best_pair(c, text, n, count);
        if (count[pair] < WORTH_MIN) {
            break;
        }
        set_pair(c, code, pair);
        n = replace_pair(text, n, pair, code);
    }
    return c;
}

/* ---- writing ------------------------------------------------------------ */

void gs_encoder_init(GsEncoder *e, const GsNameCodes *codes)
{
    uint16_t next[256], n[256] = { 0 };

    e->codes = codes;
    for (unsigned code = 0; code < 256; code++) {
        n[codes->word[code][0]] += codes->len[code] > 0;
    }
    e->first[0] = 0;
    for (unsigned ch = 0; ch < 256; ch++) {
        next[ch] = e->first[ch];
        e->first[ch + 1] = e->first[ch] + n[ch];
    }
    for (unsigned len = GS_CODES_WORD; len > 0; len--) {
        for (unsigned code = 0; code < 256; code++) {
            if (codes->len[code] == len) {
                e->order[next[codes->word[code][0]]++] = code;
            }
        }
    }
}

static uint8_t longest(const GsEncoder *e, const char *text, size_t left)
{
    const GsNameCodes *c = e->codes;
    unsigned ch = (uint8_t)*text;
    unsigned i = e->first[ch];

    while (i + 1 < e->first[ch + 1] &&
           (c->len[e->order[i]] > left ||
            memcmp(c->word[e->order[i]], text, c->len[e->order[i]]))) {
        i++;
    }
    return e->order[i];
}

size_t gs_encoder_put(const GsEncoder *e, const char *text, size_t len,
                      uint8_t *out)
{
    size_t n = 0;

    for (size_t at = 0; at < len; at += e->codes->len[out[n++]]) {
        out[n] = longest(e, text + at, len - at);
    }
    return n;
}
