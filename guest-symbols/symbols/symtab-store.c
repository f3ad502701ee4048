/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A symbol table as bytes, and back: for the journal, which is read after the
 * kernel is gone. Called by kernel-store.c.
 *
 *     u64  low, percpu_start, percpu_end
 *     u64  number of ends, then each as u64
 *     u64  number of rows
 *     varint per row: distance from the row before
 *     string per row: type letter and name, NUL
 *
 * The ends go with the rows, because they come from the image, which is not
 * stored.
 */
#include "guest-symbols/symbols/symtab.h"
#include "guest-symbols/symbols/symtab-internal.h"

#include <string.h>

#define ENDS_MAX 65536

/* ---- writing ---- */

typedef struct Rows {
    GsOut *deltas;
    GByteArray *names;
    uint64_t last;
} Rows;

static void add_row(uint64_t va, const char *text, size_t len, void *opaque)
{
    Rows *r = opaque;

    gs_out_varint(r->deltas, va - r->last);
    r->last = va;
    g_byte_array_append(r->names, (const uint8_t *)text, len + 1);
}

void gs_symtab_save(const GsSymtab *tab, GsOut *out)
{
    g_autoptr(GByteArray) names = g_byte_array_new();
    Rows rows = { .deltas = out, .names = names };

    gs_out_u64(out, tab->low);
    gs_out_u64(out, tab->percpu_start);
    gs_out_u64(out, tab->percpu_end);
    gs_out_u64(out, tab->ends->len);
    for (guint i = 0; i < tab->ends->len; i++) {
        gs_out_u64(out, g_array_index(tab->ends, uint64_t, i));
    }
    gs_out_u64(out, tab->n);
    gs_symtab_foreach(tab, add_row, &rows);
    gs_out_bytes(out, names->data, names->len);
}

/* ---- reading ---- */

/* Sorted, as searches need them. */
static bool take_ends(GsBytes *c, GArray *ends)
{
    uint64_t n = gs_bytes_u64(c);
    uint64_t last = 0;

    if (n > ENDS_MAX || n > gs_bytes_left(c) / sizeof(uint64_t)) {
        return false;
    }
    for (uint64_t i = 0; i < n; i++) {
        uint64_t va = gs_bytes_u64(c);

        if (va < last) {
            return false;
        }
        last = va;
        g_array_append_val(ends, va);
    }
    return true;
}

static bool take_rows(GsBytes *c, GsSymtab *tab)
{
    uint64_t n = gs_bytes_u64(c);
    g_autofree uint64_t *vas = NULL;
    uint64_t va = 0;

    if (n > GS_SYMBOLS_MAX || n > gs_bytes_left(c)) {
        return false;
    }
    vas = g_new(uint64_t, MAX(n, 1));
    for (uint64_t i = 0; i < n; i++) {
        vas[i] = va += gs_bytes_varint(c, UINT64_MAX);
    }
    for (uint64_t i = 0; i < n && !c->failed; i++) {
        size_t len;
        const char *text = gs_bytes_str(c, SIZE_MAX, &len);

        if (!text || len < 2 || len - 1 > GS_SYMBOL_NAME_MAX ||
            !gs_symtab_add(tab, vas[i], text[0], text + 1, len - 1)) {
            return false;
        }
    }
    return true;
}

GsSymtab *gs_symtab_load(GsBytes *c, GError **errp)
{
    g_autoptr(GsSymtab) tab = gs_symtab_new();
    g_autoptr(GArray) ends = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    uint64_t low = gs_bytes_u64(c);
    uint64_t percpu_start = gs_bytes_u64(c);
    uint64_t percpu_end = gs_bytes_u64(c);

    if (!take_ends(c, ends) || !take_rows(c, tab)) {
        return gs_fail(errp, GS_ERROR_FORMAT, "%s: its symbols make no sense",
                       c->what);
    }
    if (!gs_bytes_check(c, errp)) {
        return NULL;
    }
    gs_symtab_seal(tab, NULL);
    g_array_free(tab->ends, TRUE);
    tab->ends = g_steal_pointer(&ends);
    tab->percpu_start = percpu_start;
    tab->percpu_end = percpu_end;
    tab->low = low;
    return g_steal_pointer(&tab);
}
