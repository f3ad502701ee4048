/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads System.map files. kernel-open.c calls it while a kernel is opened, in
 * that thread; no state. A line that cannot be parsed is an error and is not
 * skipped: with half a symbol table, addresses get wrong names.
 */
#include "guest-symbols/symbols/symtab.h"

#include <string.h>

#define LINE_MAX_LEN    (GS_SYMBOL_NAME_MAX + 32)

typedef struct Line {
    uint64_t va;
    char type;
    const char *name;
    size_t len;
} Line;

static bool hex_address(const char *s, size_t len, uint64_t *va)
{
    *va = 0;
    if (len < 8 || len > 16) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        int digit = g_ascii_xdigit_value(s[i]);

        if (digit < 0) {
            return false;
        }
        *va = *va << 4 | (unsigned)digit;
    }
    return true;
}

/* Splits "<address> <type> <name>"; the name may hold blanks. */
static bool parse_line(const char *s, size_t len, Line *line)
{
    const char *blank = memchr(s, ' ', len);
    size_t digits = blank ? blank - s : 0;

    if (!blank || len < digits + 4 || !g_ascii_isprint(s[digits + 1]) ||
        s[digits + 2] != ' ' || !hex_address(s, digits, &line->va)) {
        return false;
    }
    line->type = s[digits + 1];
    line->name = s + digits + 3;
    line->len = len - digits - 3;
    return true;
}

static size_t line_length(const uint8_t *data, size_t len)
{
    const uint8_t *nl = memchr(data, '\n', len);

    return nl ? (size_t)(nl - data) : len;
}

bool gs_systemmap_is(const uint8_t *data, size_t len)
{
    size_t n = len ? line_length(data, MIN(len, LINE_MAX_LEN)) : 0;
    Line line;

    return n && parse_line((const char *)data, n, &line);
}

static bool add_line(GsSymtab *tab, const Line *line, unsigned number,
                     GError **errp)
{
    if (memchr(line->name, ' ', line->len)) {
        g_autofree char *says = g_strndup(line->name, MIN(line->len, 120));
        g_autofree char *safe = g_strescape(says, NULL);

        return gs_fail(errp, GS_ERROR_NO_SYMBOLS,
                       "not the real System.map, it only says: \"%s\"", safe);
    }
    if (!gs_symtab_add(tab, line->va, line->type, line->name, line->len)) {
        return gs_fail(errp, GS_ERROR_FORMAT,
                       "System.map line %u: a name too long or not readable, "
                       "or too many symbols", number);
    }
    return true;
}

static bool plausible(const GsSymtab *tab, GError **errp)
{
    GsSymbol start, end;

    if (gs_symtab_n_unsorted(tab) > gs_symtab_n(tab) / 100) {
        return gs_fail(errp, GS_ERROR_FORMAT,
                       "System.map: not sorted by address");
    }
    if (!gs_symtab_lookup(tab, "_stext", &start) ||
        !gs_symtab_lookup(tab, "_etext", &end) || start.va >= end.va ||
        !gs_symbol_slides(start.va)) {
        return gs_fail(errp, GS_ERROR_FORMAT,
                       "System.map: _stext and _etext of a 64-bit kernel are "
                       "missing or reversed");
    }
    return true;
}

GsSymtab *gs_systemmap_decode(const uint8_t *data, size_t len, GError **errp)
{
    g_autoptr(GsSymtab) tab = gs_symtab_new();
    unsigned number = 0;

    for (size_t pos = 0; pos < len;) {
        size_t n = line_length(data + pos, len - pos);
        Line line;

        number++;
        if (n && !parse_line((const char *)data + pos, n, &line)) {
            return gs_fail(errp, GS_ERROR_FORMAT,
                           "System.map line %u: not \"<address> <type> "
                           "<name>\"", number);
        }
        if (n && !add_line(tab, &line, number, errp)) {
            return NULL;
        }
        pos += n + 1;
    }
    gs_symtab_seal(tab, NULL);
    return plausible(tab, errp) ? g_steal_pointer(&tab) : NULL;
}
