/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A kernel's symbols, sorted by address and hashed by name.
 *
 * kallsyms.c and systemmap.c fill it, kernel.c asks it. Rows are 16 bytes,
 * names lie one after the other in one buffer, the hash maps a name to the
 * first row of that name and rows of one name are chained. After sealing
 * nothing changes, so there are no locks.
 */
#include "symtab.h"
#include "suggest.h"

#include <stdlib.h>
#include <string.h>

#define NO_ROW  UINT32_MAX

typedef struct Row {
    uint64_t va;
    uint32_t name;          /* offset in GsSymtab.names */
    char type;
} Row;

struct GsSymtab {
    GArray *rows;           /* of Row, by address once sealed */
    GByteArray *names;
    size_t n_unsorted;
    uint32_t *hash;         /* row or NO_ROW; a power of two of slots */
    uint32_t hash_mask;
    uint32_t hash_seed;
    uint32_t *next;         /* per row: the next higher one of that name */
    GArray *ends;           /* of uint64_t, sorted: no extent crosses one */
    uint64_t percpu_start;  /* link-time range of the percpu template */
    uint64_t percpu_end;
    uint64_t low;           /* 0, or see gs_symtab_set_low() */
};

/* Labels that the linker script (include/asm-generic/vmlinux.lds.h and
 * arch/.../vmlinux.lds.S) puts at the end of a section. */
static const char *const end_labels[] = {
    "_etext", "_einittext", "_edata", "_end", "__bss_stop", "__brk_limit",
    "__end_rodata", "__end_of_kernel_reserve", "__init_end", "__per_cpu_end",
    "__entry_text_end", "__irqentry_text_end", "__softirqentry_text_end",
    "__noinstr_text_end",
};

static const Row *row_at(const GsSymtab *tab, size_t i)
{
    return &g_array_index(tab->rows, Row, i);
}

static const char *row_name(const GsSymtab *tab, const Row *row)
{
    return (const char *)tab->names->data + row->name;
}

GsSymtab *gs_symtab_new(void)
{
    GsSymtab *tab = g_new0(GsSymtab, 1);

    tab->rows = g_array_new(FALSE, FALSE, sizeof(Row));
    tab->names = g_byte_array_new();
    tab->ends = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    return tab;
}

void gs_symtab_free(GsSymtab *tab)
{
    if (!tab) {
        return;
    }
    g_array_free(tab->rows, TRUE);
    g_byte_array_free(tab->names, TRUE);
    g_array_free(tab->ends, TRUE);
    g_free(tab->hash);
    g_free(tab->next);
    g_free(tab);
}

/* Names end up on terminals: nothing but visible characters. */
static bool visible(const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!g_ascii_isgraph(name[i])) {
            return false;
        }
    }
    return true;
}

bool gs_symtab_add(GsSymtab *tab, uint64_t va, char type, const char *name,
                   size_t len)
{
    Row row = { .va = va, .name = tab->names->len, .type = type };
    unsigned n = tab->rows->len;

    if (n >= GS_SYMBOLS_MAX || len > GS_SYMBOL_NAME_MAX ||
        tab->names->len + len + 1 > GS_SYMBOL_NAMES_MAX ||
        !visible(name, len)) {
        return false;
    }
    if (n && row_at(tab, n - 1)->va > va) {
        tab->n_unsorted++;
    }
    g_byte_array_append(tab->names, (const uint8_t *)name, len);
    g_byte_array_append(tab->names, (const uint8_t *)"", 1);
    g_array_append_val(tab->rows, row);
    return true;
}

/* ---- order ---- */

/*
 * Of several names of one address the first should be the one that people
 * know. Same preferences as scripts/kallsyms.c: linker-made labels last, weak
 * ones late, few leading underscores first. Smaller is better.
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

static int by_address(const void *a, const void *b, void *opaque)
{
    const Row *x = a, *y = b;
    const GsSymtab *tab = opaque;
    unsigned rx, ry;

    if (x->va != y->va) {
        return x->va < y->va ? -1 : 1;
    }
    rx = name_rank(row_name(tab, x), x->type);
    ry = name_rank(row_name(tab, y), y->type);
    if (rx != ry) {
        return rx < ry ? -1 : 1;
    }
    /* names were added in file order: this keeps the sort stable */
    return x->name < y->name ? -1 : x->name > y->name;
}

/* Already sorted tables are the rule: then only aliases need a look. */
static void sort_rows(GsSymtab *tab)
{
    unsigned n = tab->rows->len;

    if (tab->n_unsorted) {
        g_array_sort_with_data(tab->rows, by_address, tab);
        return;
    }
    for (unsigned i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && row_at(tab, j)->va == row_at(tab, i)->va;) {
            j++;
        }
        if (j - i > 1) {
            qsort_r(&g_array_index(tab->rows, Row, i), j - i, sizeof(Row),
                    by_address, tab);
        }
    }
}

/* ---- names ---- */

static uint32_t name_hash(const GsSymtab *tab, const char *name)
{
    uint64_t h = tab->hash_seed | 1ull << 40;

    for (; *name; name++) {
        h = (h ^ (uint8_t)*name) * 0x9e3779b97f4a7c15ull;
        h ^= h >> 32;
    }
    return h;
}

/* The slot of @name, or the empty one where it would go. */
static uint32_t *name_slot(const GsSymtab *tab, const char *name)
{
    uint32_t i = name_hash(tab, name) & tab->hash_mask;

    while (tab->hash[i] != NO_ROW &&
           strcmp(row_name(tab, row_at(tab, tab->hash[i])), name)) {
        i = (i + 1) & tab->hash_mask;
    }
    return &tab->hash[i];
}

/* Highest row first, so that chains come out in address order. */
static void index_names(GsSymtab *tab)
{
    uint32_t n = tab->rows->len;
    uint32_t slots = 16;

    while (slots < n + n / 2) {
        slots *= 2;
    }
    tab->hash_seed = g_random_int();
    tab->hash_mask = slots - 1;
    tab->hash = g_new(uint32_t, slots);
    memset(tab->hash, 0xff, slots * sizeof(*tab->hash));
    tab->next = g_new(uint32_t, MAX(n, 1));
    for (uint32_t i = n; i-- > 0;) {
        uint32_t *slot = name_slot(tab, row_name(tab, row_at(tab, i)));

        tab->next[i] = *slot;
        *slot = i;
    }
}

static uint32_t first_named(const GsSymtab *tab, const char *name)
{
    return tab->hash ? *name_slot(tab, name) : NO_ROW;
}

/* ---- extents ---- */

static int by_value(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static bool named_va(const GsSymtab *tab, const char *name, uint64_t *va)
{
    uint32_t i = first_named(tab, name);

    if (i == NO_ROW) {
        return false;
    }
    *va = row_at(tab, i)->va;
    return true;
}

static void collect_ends(GsSymtab *tab, const GsImage *img)
{
    uint64_t va;

    for (size_t i = 0; i < G_N_ELEMENTS(end_labels); i++) {
        if (named_va(tab, end_labels[i], &va)) {
            g_array_append_val(tab->ends, va);
        }
    }
    for (size_t i = 0; img && i < gs_image_n_sections(img); i++) {
        const GsSection *sec = gs_image_nth_section(img, i);

        va = sec->va + sec->len;
        g_array_append_val(tab->ends, va);
    }
    g_array_sort(tab->ends, by_value);
    if (!named_va(tab, "__per_cpu_start", &tab->percpu_start) ||
        !named_va(tab, "__per_cpu_end", &tab->percpu_end)) {
        tab->percpu_start = tab->percpu_end = 0;
    }
}

/* First row above @va. */
static size_t upper_bound(const GsSymtab *tab, uint64_t va)
{
    size_t lo = 0, hi = tab->rows->len;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (row_at(tab, mid)->va <= va) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/* The least section end at or above @va, or UINT64_MAX. */
static uint64_t end_from(const GsSymtab *tab, uint64_t va)
{
    size_t lo = 0, hi = tab->ends->len;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (g_array_index(tab->ends, uint64_t, mid) < va) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < tab->ends->len ? g_array_index(tab->ends, uint64_t, lo)
                               : UINT64_MAX;
}

/*
 * A label at the end of one section may be the start of the next as well, so
 * an end that equals @va bounds the extent only when nothing else lives
 * there: such labels are told by their name.
 */
static bool is_end_label(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(end_labels); i++) {
        if (!strcmp(name, end_labels[i])) {
            return true;
        }
    }
    return false;
}

/* Bytes of the symbols at @va; @above is the first row beyond it. */
static uint64_t extent(const GsSymtab *tab, uint64_t va, size_t above)
{
    uint64_t end = end_from(tab, va + 1);

    if (above < tab->rows->len) {
        end = MIN(end, row_at(tab, above)->va);
    }
    return end == UINT64_MAX ? 0 : end - va;
}

static void fill_symbol(const GsSymtab *tab, size_t i, GsSymbol *out)
{
    const Row *row = row_at(tab, i);
    const char *name = row_name(tab, row);

    *out = (GsSymbol) {
        .va = row->va,
        .name = name,
        .type = row->type,
    };
    if (!is_end_label(name)) {
        out->size = extent(tab, row->va, upper_bound(tab, row->va));
    }
}

/* ---- queries ---- */

void gs_symtab_seal(GsSymtab *tab, const GsImage *img)
{
    sort_rows(tab);
    index_names(tab);
    collect_ends(tab, img);
}

size_t gs_symtab_n(const GsSymtab *tab)
{
    return tab->rows->len;
}

size_t gs_symtab_n_unsorted(const GsSymtab *tab)
{
    return tab->n_unsorted;
}

bool gs_symtab_lookup(const GsSymtab *tab, const char *name, GsSymbol *out)
{
    uint32_t best = first_named(tab, name);

    for (uint32_t i = best; i != NO_ROW; i = tab->next[i]) {
        if (g_ascii_isupper(row_at(tab, i)->type)) {
            best = i;
            break;
        }
    }
    if (best == NO_ROW) {
        return false;
    }
    fill_symbol(tab, best, out);
    return true;
}

unsigned gs_symtab_foreach_named(const GsSymtab *tab, const char *name,
                                 GsSymbolFn fn, void *opaque)
{
    unsigned n = 0;
    uint32_t i = first_named(tab, name);

    while (i != NO_ROW) {
        GsSymbol sym;

        fill_symbol(tab, i, &sym);
        n++;
        if (!fn(&sym, opaque)) {
            break;
        }
        i = tab->next[i];
    }
    return n;
}

void gs_symtab_set_low(GsSymtab *tab, uint64_t va)
{
    tab->low = va;
}

/* Rows that name addresses of code or data, so can cover one. */
static bool can_cover(const GsSymtab *tab, const Row *row)
{
    return row->type != 'A' && row->type != 'a' &&
           !is_end_label(row_name(tab, row));
}

bool gs_symtab_symbolize(const GsSymtab *tab, uint64_t va, GsSymbol *out)
{
    size_t above = upper_bound(tab, va);
    size_t best = above;
    uint64_t size;

    if (!above || (!gs_symbol_slides(va) && (!tab->low || va < tab->low)) ||
        (va >= tab->percpu_start && va < tab->percpu_end)) {
        return false;
    }
    for (size_t i = above; i-- > 0;) {
        if (row_at(tab, i)->va != row_at(tab, above - 1)->va) {
            break;
        }
        if (can_cover(tab, row_at(tab, i))) {
            best = i;
        }
    }
    if (best == above) {
        return false;
    }
    size = extent(tab, row_at(tab, best)->va, above);
    if (va - row_at(tab, best)->va >= MAX(size, 1)) {
        return false;
    }
    fill_symbol(tab, best, out);
    return true;
}

char **gs_symtab_suggest(const GsSymtab *tab, const char *name, unsigned max)
{
    GsSuggest *s = gs_suggest_new(name, max);

    for (size_t i = 0; i < tab->rows->len; i++) {
        const char *candidate = row_name(tab, row_at(tab, i));

        if (!g_str_has_prefix(candidate, "__pfx_")) {
            gs_suggest_offer(s, candidate);
        }
    }
    return gs_suggest_finish(s);
}
