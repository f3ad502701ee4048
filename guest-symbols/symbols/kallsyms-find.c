/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the parts of a kallsyms table in read-only data. Called by
 * kallsyms.c; stateless.
 *
 * The table is written by the kernel's scripts/kallsyms.c. Names are strings
 * of byte codes; each code stands for a token, a NUL-terminated piece of
 * text. The codes of '0' to '9' always stand for themselves, because digits are
 * frequent in names: their ten tokens are 20 bytes, which are searched for.
 * From there:
 *
 *  - the token table begins 48 strings earlier, where the 256 offsets of the
 *    token index, which follows the table, agree with the 256 strings;
 *  - the markers end before the tokens (or before the by-name order, whose
 *    length gives their count) and ascend from 0;
 *  - the names end before the markers. They begin where the word in front of
 *    them is a count that fits the markers, and every 256th name is where its
 *    marker says.
 *
 *    | num_syms | names ... | markers | (by-name order) | tokens | index |
 *
 * Each part confirms the others, so a chance match is rejected.
 */
#include "guest-symbols/symbols/symtab-internal.h"
#include "guest-symbols/symbols/symtab.h"

#include <string.h>

#define TOKENS_MAX      65536u      /* the index has 16-bit offsets */
#define CODES_MAX       514u        /* bytes of one name, its length included */
#define PER_MARKER      256u

/* Layouts also differ in where the addresses are: kallsyms.c tries both places.
 * Layouts that are checked in few steps come first. */
static const GsKallsymsLayout layouts[] = {
    { "4.20 (80ffbaa5b1bd) to 6.1, and since 6.4 (404bad70fcf7)", 4, false, 8 },
    { "4.6 (2213e9a66bb8) to 4.19", 8, false, 8 },
    { "7.0 (a081b5789255)", 4, false, 4 },
    { "6.2 (60443c88f3a8) and 6.3", 4, true, 8 },
};

static const char digits[] = "0\0" "1\0" "2\0" "3\0" "4\0"
                             "5\0" "6\0" "7\0" "8\0" "9";

const char *gs_kallsyms_mark(size_t *len)
{
    *len = sizeof(digits);
    return digits;
}

/* Parts are aligned by address (".balign 8", or 4). */
static size_t align_up(const GsArea *area, size_t pos, unsigned align)
{
    return pos + (-(area->va + pos) & (align - 1));
}

static bool all_zero(const GsArea *area, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        if (area->data[i]) {
            return false;
        }
    }
    return true;
}

/* ---- tokens ---- */

static bool is_index(const GsArea *area, size_t pos,
                     const GsKallsymsParts *parts)
{
    for (unsigned i = 0; i < GS_KALLSYMS_TOKENS; i++) {
        if (gs_kallsyms_word(area, pos + 2 * i, 2) !=
            parts->token[i] - parts->token[0]) {
            return false;
        }
    }
    return true;
}

/* Do 256 strings start at @start, and does their index follow? */
static bool check_tokens(const GsArea *area, size_t start,
                         GsKallsymsParts *parts)
{
    size_t pos = start;

    if (!gs_kallsyms_spend(area, GS_KALLSYMS_TOKENS)) {
        return false;
    }
    for (unsigned i = 0; i < GS_KALLSYMS_TOKENS; i++) {
        const uint8_t *nul = memchr(area->data + pos, 0,
                                    MIN(area->len - pos, TOKENS_MAX));

        if (!nul || pos - start >= TOKENS_MAX) {
            return false;
        }
        parts->token[i] = pos;
        parts->token_len[i] = nul - area->data - pos;
        pos = nul - area->data + 1;
    }
    pos = align_up(area, pos, 4);
    if (!is_index(area, pos, parts)) {
        pos = align_up(area, pos, 8);
        if (!is_index(area, pos, parts)) {
            return false;
        }
    }
    parts->tokens = start;
    parts->tokens_end = pos + 2 * GS_KALLSYMS_TOKENS;
    return true;
}

/* Steps back over 48 strings from the token of '0'. */
static bool tokens_around(const GsArea *area, size_t zero,
                          GsKallsymsParts *parts)
{
    size_t least = zero > TOKENS_MAX ? zero - TOKENS_MAX : 0;
    unsigned ends = 0;

    for (size_t pos = zero; pos-- > least && gs_kallsyms_spend(area, 1);) {
        uint8_t byte = area->data[pos];

        if (!byte && ++ends > '0') {
            return ((area->va + pos + 1) & 3) == 0 &&
                   check_tokens(area, pos + 1, parts);
        }
        if (ends == '0' && ((area->va + pos) & 3) == 0 &&
            check_tokens(area, pos, parts)) {
            return true;
        }
        if (byte && !g_ascii_isprint(byte)) {
            return false;
        }
    }
    return false;
}

static bool next_tokens(const GsArea *area, size_t *from,
                        GsKallsymsParts *parts)
{
    while (*from < area->len) {
        const uint8_t *begin = area->data + *from;
        const uint8_t *hit = memmem(begin, area->len - *from, digits,
                                    sizeof(digits));
        size_t searched = hit ? (size_t)(hit - begin) : area->len - *from;

        if (!gs_kallsyms_spend(area, searched / GS_KALLSYMS_STEP_BYTES + 1) ||
            !hit) {
            return false;
        }
        *from = hit - area->data + sizeof(digits);
        if (tokens_around(area, hit - area->data, parts)) {
            *from = parts->tokens_end;
            return true;
        }
    }
    return false;
}

/* ---- markers ---- */

/* How many markers end at @end; *@start is the first. 0: none do. */
static uint32_t markers_before(const GsArea *area, size_t end, unsigned word,
                               uint32_t max, size_t *start)
{
    uint64_t above = 0;
    uint32_t n = 0;

    while (end >= word && n < max && gs_kallsyms_spend(area, 1)) {
        uint64_t v = gs_kallsyms_word(area, end - word, word);

        if (n && (v >= above || above - v > PER_MARKER * CODES_MAX ||
                  above - v < PER_MARKER * 2)) {
            return 0;
        }
        above = v;
        end -= word;
        n++;
        if (!v) {
            *start = end;
            return n;
        }
    }
    return 0;
}

/* ---- names ---- */

/*
 * One byte of length, or two when the first has bit 7 set (since 6.1,
 * 73bbb94466fd; no earlier name was as long).
 */
unsigned gs_kallsyms_name(const GsArea *area, size_t *pos, size_t *data)
{
    size_t at = *pos;
    unsigned len;

    if (at >= area->len) {
        return 0;
    }
    len = area->data[at++];
    if (len & 0x80) {
        if (at >= area->len) {
            return 0;
        }
        len = (len & 0x7f) | (unsigned)area->data[at++] << 7;
    }
    if (len > area->len - at) {
        return 0;
    }
    *data = at;
    *pos = at + len;
    return len;
}

/* Do @n names from @names agree with the markers, and end before them? */
static bool check_names(const GsArea *area, const GsKallsymsParts *parts,
                        size_t names, uint32_t n)
{
    unsigned word = parts->layout->word;
    size_t pos = names, data;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t m = i / PER_MARKER;

        if (i % PER_MARKER == 0 &&
            gs_kallsyms_word(area, parts->markers + (size_t)m * word, word) !=
            pos - names) {
            return false;
        }
        if (!gs_kallsyms_spend(area, 1) ||
            !gs_kallsyms_name(area, &pos, &data) || pos > parts->markers) {
            return false;
        }
    }
    return parts->markers - pos < 16 && all_zero(area, pos, parts->markers);
}

/* Tries every start of the names from which the last marker fits. */
static bool find_names(const GsArea *area, GsKallsymsParts *parts)
{
    unsigned word = parts->layout->word, align = parts->layout->align;
    uint64_t last = gs_kallsyms_word(area, parts->markers +
                            (size_t)(parts->n_markers - 1) * word, word);
    size_t hi, lo;

    if (last > parts->markers) {
        return false;
    }
    hi = parts->markers - last;
    lo = hi > PER_MARKER * CODES_MAX ? hi - PER_MARKER * CODES_MAX : 8;
    for (hi -= (area->va + hi) & (align - 1);
         hi >= lo && hi >= align && gs_kallsyms_spend(area, 1); hi -= align) {
        uint64_t n = gs_kallsyms_word(area, hi - align, word);

        if (n > (uint64_t)(parts->n_markers - 1) * PER_MARKER &&
            n <= (uint64_t)parts->n_markers * PER_MARKER &&
            check_names(area, parts, hi, n)) {
            parts->names = hi;
            parts->n = n;
            parts->num_syms = hi - align;
            return true;
        }
    }
    return false;
}

static bool try_end(const GsArea *area, size_t end, uint32_t expect,
                    GsKallsymsParts *parts)
{
    uint32_t max = expect ? expect : GS_SYMBOLS_MAX / PER_MARKER;

    parts->n_markers = markers_before(area, end, parts->layout->word, max,
                                      &parts->markers);
    return parts->n_markers && (!expect || parts->n_markers == expect) &&
           find_names(area, parts);
}

/* Finds markers that end right before the tokens, up to alignment. */
static bool find_adjacent(const GsArea *area, GsKallsymsParts *parts)
{
    return try_end(area, parts->tokens, 0, parts) ||
           (parts->layout->word == 4 && parts->tokens >= 4 &&
            try_end(area, parts->tokens - 4, 0, parts));
}

/*
 * Finds markers in front of the by-name order, which has three bytes a symbol:
 * each possible length of it fits one count of markers.
 */
static bool find_behind_seqs(const GsArea *area, GsKallsymsParts *parts)
{
    size_t far = MIN(parts->tokens, 3ull * GS_SYMBOLS_MAX);

    for (size_t gap = 8; gap <= far && *area->steps; gap += 8) {
        size_t end = parts->tokens - gap;
        uint32_t n = gap / 3;
        uint32_t expect = (n + PER_MARKER - 1) / PER_MARKER;
        uint32_t fewer = (n > 2 ? n - 2 : 1) / PER_MARKER + 1;

        if (try_end(area, end, expect, parts) ||
            try_end(area, end - MIN(end, 4), expect, parts)) {
            return true;
        }
        if (fewer < expect &&
            (try_end(area, end, fewer, parts) ||
             try_end(area, end - MIN(end, 4), fewer, parts))) {
            return true;
        }
    }
    return false;
}

bool gs_kallsyms_find(const GsArea *area, size_t *from,
                      GsKallsymsParts *parts, bool *layout_known)
{
    if (!next_tokens(area, from, parts)) {
        return false;
    }
    *layout_known = false;
    for (size_t i = 0; i < G_N_ELEMENTS(layouts) && !*layout_known; i++) {
        parts->layout = &layouts[i];
        *layout_known = parts->layout->seqs_first
                        ? find_behind_seqs(area, parts)
                        : find_adjacent(area, parts);
    }
    return true;
}
