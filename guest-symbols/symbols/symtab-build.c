/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Makes a table of symbols: collects them in a draft, sorts them, writes their
 * names and builds the index of names.
 *
 * kallsyms.c, systemmap.c, kernel-elf.c and symtab-store.c fill it while a
 * kernel is opened, in one thread; nothing here runs afterwards. kallsyms is
 * sorted by address, and its names are kept in their codes: a name is expanded
 * once, to be checked and hashed.
 */
#include "guest-symbols/symbols/symtab-internal.h"
#include "guest-symbols/base/name-hash.h"
#include "guest-symbols/base/source-name.h"

#include <stdlib.h>
#include <string.h>

#define IS_TWIN         (1u << 31)      /* in Draft rows' @at */
#define BUCKET_ROWS     8

G_STATIC_ASSERT(GS_SYMBOLS_MAX <= 1u << 24);
/* two bytes of length and the type each, at most */
G_STATIC_ASSERT(GS_SYMBOL_NAMES_MAX + 3ull * GS_SYMBOLS_MAX < IS_TWIN);

typedef struct Row {
    uint64_t va;
    uint32_t at;            /* of its name, and IS_TWIN if that begins so */
    uint32_t hash;
} Row;

/**
 * struct GsSymtabDraft - symbols in the order in which they were added
 * @names: (borrowed) their names, or NULL if these are in @own
 * @text: bytes of all names, expanded
 * @entries: bytes of all names as they are written, with their lengths
 */
struct GsSymtabDraft {
    GArray *rows;           /* of Row */
    const uint8_t *names;
    GByteArray *own;
    size_t text;
    size_t entries;
};

static const uint8_t *draft_entry(const GsSymtabDraft *d, const Row *row)
{
    return (d->own ? d->own->data : d->names) + (row->at & ~IS_TWIN);
}

/* Type letter and name. */
static size_t draft_text(const GsSymtab *tab, const Row *row,
                         char buf[GS_CODES_ROOM])
{
    const uint8_t *entry = draft_entry(tab->draft, row), *codes;
    size_t n = gs_codes_take(&entry, &codes);

    return gs_codes_expand(tab->codes, codes, n, buf);
}

static Row *row_at(const GsSymtabDraft *d, size_t i)
{
    return &g_array_index(d->rows, Row, i);
}

/* ---- collecting --------------------------------------------------------- */

GsSymtab *gs_symtab_new_coded(GsNameCodes *codes, const uint8_t *names)
{
    GsSymtab *tab = g_new0(GsSymtab, 1);

    tab->codes = codes;
    tab->draft = g_new0(GsSymtabDraft, 1);
    tab->draft->rows = g_array_new(FALSE, FALSE, sizeof(Row));
    tab->draft->names = names;
    tab->draft->own = names ? NULL : g_byte_array_new();
    tab->spans = g_array_new(FALSE, FALSE, sizeof(GsSymtabSpan));
    tab->ends = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    return tab;
}

GsSymtab *gs_symtab_new(void)
{
    return gs_symtab_new_coded(gs_codes_new_plain(), NULL);
}

void gs_symtab_draft_free(GsSymtabDraft *d)
{
    if (d) {
        g_array_free(d->rows, TRUE);
        if (d->own) {
            g_byte_array_free(d->own, TRUE);
        }
        g_free(d);
    }
}

/* @text: type letter and name. */
static bool add(GsSymtab *tab, uint64_t va, size_t at, const char *text,
                size_t len, size_t n_codes)
{
    GsSymtabDraft *d = tab->draft;
    unsigned n = d->rows->len;
    Row row = { .va = va, .at = at };

    if (len < 2 || n >= GS_SYMBOLS_MAX || at >= IS_TWIN ||
        d->text + len > GS_SYMBOL_NAMES_MAX) {
        return false;
    }
    if (n && row_at(d, n - 1)->va > va) {
        tab->n_unsorted++;
    }
    if (len > 1 + GS_TWIN_LEN && !memcmp(text + 1, GS_TWIN, GS_TWIN_LEN)) {
        row.at |= IS_TWIN;
    }
    row.hash = gs_name_hash(text + 1, gs_source_name_len(text + 1, len - 1));
    d->text += len;
    d->entries += n_codes + 2;
    g_array_append_val(d->rows, row);
    return true;
}

bool gs_symtab_add_coded(GsSymtab *tab, uint64_t va, size_t at)
{
    const uint8_t *entry = tab->draft->names + at, *codes;
    size_t n = gs_codes_take(&entry, &codes), len;
    char text[GS_CODES_ROOM];

    len = gs_codes_expand(tab->codes, codes, n, text);
    return add(tab, va, at, text, len, n);
}

bool gs_symtab_add(GsSymtab *tab, uint64_t va, char type, const char *name,
                   size_t len)
{
    GByteArray *own = tab->draft->own;
    uint8_t entry[2 + GS_CODES_TEXT_MAX], *to;
    char text[GS_CODES_ROOM];
    size_t at = own->len;

    if (len > GS_SYMBOL_NAME_MAX) {
        return false;
    }
    to = gs_codes_put_length(entry, 1 + len);
    to[0] = type;
    memcpy(to + 1, name, len);
    if (!add(tab, va, at, text,
             gs_codes_expand(tab->codes, to, 1 + len, text), 1 + len)) {
        return false;
    }
    g_byte_array_append(own, entry, to + 1 + len - entry);
    return true;
}

/* ---- order -------------------------------------------------------------- */

/*
 * Ranks names of one address, smaller is better: the best known name should
 * come first. The order is that of scripts/kallsyms.c: few leading underscores
 * first, weak symbols later, labels of the linker last.
 */
static unsigned name_rank(const char *name, char type)
{
    unsigned underscores = strspn(name, "_");
    bool linker = g_str_has_prefix(name, "__start_") ||
                  g_str_has_prefix(name, "__stop_") ||
                  g_str_has_prefix(name, "__end_") ||
                  g_str_has_suffix(name, "_start") ||
                  g_str_has_suffix(name, "_end");
    bool weak = type == 'w' || type == 'W';

    return linker * 4096u + weak * 2048u + MIN(underscores, 2047u);
}

static unsigned row_rank(const GsSymtab *tab, const Row *row)
{
    char text[GS_CODES_ROOM];

    text[draft_text(tab, row, text)] = 0;
    return !gs_symtab_covers(text) * 8192u + name_rank(text + 1, text[0]);
}

/* Names come in file order: this keeps the sorts stable. */
static int by_entry(const Row *x, const Row *y)
{
    uint32_t ax = x->at & ~IS_TWIN, ay = y->at & ~IS_TWIN;

    return ax < ay ? -1 : ax > ay;
}

static int by_address(const void *a, const void *b)
{
    const Row *x = a, *y = b;

    return x->va < y->va ? -1 : x->va > y->va ? 1 : by_entry(x, y);
}

/* One of several rows of an address. */
typedef struct Alias {
    Row row;
    unsigned rank;
} Alias;

static int by_rank(const void *a, const void *b)
{
    const Alias *x = a, *y = b;

    return x->rank < y->rank ? -1 : x->rank > y->rank ? 1 :
           by_entry(&x->row, &y->row);
}

static void sort_aliases(const GsSymtab *tab, Row *rows, unsigned n)
{
    g_autofree Alias *alias = g_new(Alias, n);

    for (unsigned i = 0; i < n; i++) {
        alias[i] = (Alias) { rows[i], row_rank(tab, &rows[i]) };
    }
    qsort(alias, n, sizeof(*alias), by_rank);
    for (unsigned i = 0; i < n; i++) {
        rows[i] = alias[i].row;
    }
}

/* Most tables are sorted already: then only the aliases are sorted. */
static void sort_rows(GsSymtab *tab)
{
    const GsSymtabDraft *d = tab->draft;

    if (tab->n_unsorted) {
        g_array_sort(d->rows, by_address);
    }
    for (unsigned i = 0, j; i < tab->n; i = j) {
        for (j = i + 1; j < tab->n && row_at(d, j)->va == row_at(d, i)->va;) {
            j++;
        }
        if (j - i > 1) {
            sort_aliases(tab, row_at(d, i), j - i);
        }
    }
}

/* Percpu variables of x86-64 are linked at 0 until Linux 6.14: kernels have
 * one or two spans. */
static void place_rows(GsSymtab *tab)
{
    GsSymtabSpan span = { 0 };

    tab->offset = g_new(uint32_t, tab->n);
    for (uint32_t i = 0; i < tab->n; i++) {
        uint64_t va = row_at(tab->draft, i)->va;

        if (!i || va - span.base > UINT32_MAX) {
            span = (GsSymtabSpan) { va, i };
            g_array_append_val(tab->spans, span);
        }
        tab->offset[i] = va - span.base;
    }
}

/* ---- names -------------------------------------------------------------- */

/* Is the name of row @i that of the next row with GS_TWIN in front? */
static bool is_twin(const GsSymtab *tab, uint32_t i)
{
    const GsSymtabDraft *d = tab->draft;
    char twin[GS_CODES_ROOM], text[GS_CODES_ROOM];
    size_t len, next;

    if (i + 1 >= tab->n || !(row_at(d, i)->at & IS_TWIN) ||
        row_at(d, i + 1)->at & IS_TWIN) {
        return false;
    }
    len = draft_text(tab, row_at(d, i), twin);
    next = draft_text(tab, row_at(d, i + 1), text);
    return len == next + GS_TWIN_LEN && twin[0] == text[0] &&
           !memcmp(twin + 1 + GS_TWIN_LEN, text + 1, next - 1);
}

static uint8_t *write_name(const GsSymtab *tab, uint32_t i, uint8_t *to)
{
    const uint8_t *entry = draft_entry(tab->draft, row_at(tab->draft, i));
    const uint8_t *codes;
    size_t n;

    if (is_twin(tab, i)) {
        return gs_codes_put_length(to, 0);
    }
    n = gs_codes_take(&entry, &codes);
    to = gs_codes_put_length(to, n);
    memcpy(to, codes, n);
    return to + n;
}

static void write_names(GsSymtab *tab)
{
    uint8_t *to = g_malloc(tab->draft->entries + 1);

    tab->names = to;
    tab->marker = g_new(uint32_t, gs_symtab_n_markers(tab));
    for (uint32_t i = 0; i < tab->n; i++) {
        if (!(i & ((1u << GS_MARKER_SHIFT) - 1))) {
            tab->marker[i >> GS_MARKER_SHIFT] = to - tab->names;
        }
        to = write_name(tab, i, to);
    }
    tab->names_len = to - tab->names;
    tab->names = g_realloc(tab->names, tab->names_len + 1);
}

/* From the last row down to the first, so that buckets fill from their ends
 * and come out ascending. */
static void index_names(GsSymtab *tab)
{
    const GsSymtabDraft *d = tab->draft;
    uint32_t n_buckets = 1, sum = 0;

    while (n_buckets < tab->n / BUCKET_ROWS) {
        n_buckets *= 2;
    }
    tab->hash_mask = n_buckets - 1;
    tab->bucket = g_new0(uint32_t, n_buckets + 1);
    tab->row = g_malloc_n(tab->n, sizeof(*tab->row));
    for (uint32_t i = 0; i < tab->n; i++) {
        tab->bucket[row_at(d, i)->hash & tab->hash_mask]++;
    }
    for (uint32_t b = 0; b <= n_buckets; b++) {
        sum += tab->bucket[b];
        tab->bucket[b] = sum;
    }
    for (uint32_t i = tab->n; i-- > 0;) {
        uint32_t at = --tab->bucket[row_at(d, i)->hash & tab->hash_mask];

        tab->row[at][0] = i;
        tab->row[at][1] = i >> 8;
        tab->row[at][2] = i >> 16;
    }
}

void gs_symtab_build(GsSymtab *tab)
{
    tab->n = tab->draft->rows->len;
    sort_rows(tab);
    place_rows(tab);
    write_names(tab);
    index_names(tab);
    g_clear_pointer(&tab->draft, gs_symtab_draft_free);
}
