/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Answers from a sealed table of symbols: by address and by name. kernel.c
 * asks, from any thread; nothing changes after sealing, so there are no locks.
 *
 * The table of a distribution kernel (150,000 to 200,000 symbols) must fit in
 * 4 MiB. So a row is four bytes of address, three in the index of names, and a
 * name of some ten codes. A row's name is found by skipping entries from the
 * marker below. The layout is drawn in symtab-internal.h.
 */
#include "guest-symbols/symbols/symtab-internal.h"
#include "guest-symbols/base/name-hash.h"
#include "guest-symbols/base/sorted.h"
#include "guest-symbols/base/source-name.h"
#include "guest-symbols/base/suggest.h"

#include <string.h>

#define NO_ROW  UINT32_MAX

/* A row's type letter and name. */
typedef struct Name {
    char text[GS_TWIN_LEN + GS_CODES_ROOM];     /* the letter, the name, NUL */
    size_t len;                 /* of the name */
} Name;

/* Labels that the linker script (include/asm-generic/vmlinux.lds.h and
 * arch/.../vmlinux.lds.S) puts at the end of a section. */
static const char *const end_labels[] = {
    "_etext", "_einittext", "_edata", "_end", "__bss_stop", "__brk_limit",
    "__end_rodata", "__end_of_kernel_reserve", "__init_end", "__per_cpu_end",
    "__entry_text_end", "__irqentry_text_end", "__softirqentry_text_end",
    "__noinstr_text_end",
};

void gs_symtab_free(GsSymtab *tab)
{
    if (!tab) {
        return;
    }
    gs_symtab_draft_free(tab->draft);
    gs_codes_free(tab->codes);
    g_free(tab->names);
    g_free(tab->marker);
    g_free(tab->offset);
    g_array_free(tab->spans, TRUE);
    g_free(tab->bucket);
    g_free(tab->row);
    g_array_free(tab->ends, TRUE);
    g_free(tab);
}

/* ---- rows ---- */

/* Reads the row at *@entry, and leaves that at the next. */
static void take_name(const GsSymtab *tab, const uint8_t **entry, Name *name)
{
    const uint8_t *codes, *next;
    size_t n = gs_codes_take(entry, &codes);
    char *text = name->text;

    if (n) {
        name->len = gs_codes_expand(tab->codes, codes, n, text) - 1;
    } else {
        next = *entry;
        n = gs_codes_take(&next, &codes);
        text += GS_TWIN_LEN;
        name->len = gs_codes_expand(tab->codes, codes, n, text) - 1 +
                    GS_TWIN_LEN;
        name->text[0] = text[0];
        memcpy(name->text + 1, GS_TWIN, GS_TWIN_LEN);
    }
    name->text[1 + name->len] = 0;
}

static const uint8_t *entry_of(const GsSymtab *tab, uint32_t row)
{
    const uint8_t *entry = tab->names + tab->marker[row >> GS_MARKER_SHIFT];
    const uint8_t *codes;

    for (row &= (1u << GS_MARKER_SHIFT) - 1; row; row--) {
        gs_codes_take(&entry, &codes);
    }
    return entry;
}

static void read_name(const GsSymtab *tab, uint32_t row, Name *name)
{
    const uint8_t *entry = entry_of(tab, row);

    take_name(tab, &entry, name);
}

static const GsSymtabSpan *nth_span(const GsSymtab *tab, size_t i)
{
    return &g_array_index(tab->spans, GsSymtabSpan, i);
}

static uint64_t row_va(const GsSymtab *tab, uint32_t row)
{
    size_t lo = 0, hi = tab->spans->len - 1;

    while (lo < hi) {
        size_t mid = lo + (hi - lo + 1) / 2;

        if (nth_span(tab, mid)->first <= row) {
            lo = mid;
        } else {
            hi = mid - 1;
        }
    }
    return nth_span(tab, lo)->base + tab->offset[row];
}

/* First row above @va. */
static uint32_t upper_bound(const GsSymtab *tab, uint64_t va)
{
    size_t n = gs_sorted_up_to(tab->spans->data, tab->spans->len,
                               sizeof(GsSymtabSpan), va);
    uint32_t lo, hi;

    if (!n) {
        return 0;
    }
    lo = nth_span(tab, n - 1)->first;
    hi = n < tab->spans->len ? nth_span(tab, n)->first : tab->n;
    va -= nth_span(tab, n - 1)->base;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;

        if (tab->offset[mid] <= va) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/* ---- names ---- */

/* Goes over the rows of one name, in address order. Those that have it only in
 * the sources have the same hash, see source-name.h. */
typedef struct Search {
    const char *name;
    size_t len;
    uint32_t at, end;       /* what is left of its bucket */
    Name found;
} Search;

static void search_init(Search *s, const GsSymtab *tab, const char *name)
{
    s->name = name;
    s->len = strlen(name);
    s->at = s->end = 0;
    if (tab->bucket) {
        uint32_t hash = gs_name_hash(name, gs_source_name_len(name, s->len));
        uint32_t b = hash & tab->hash_mask;

        s->at = tab->bucket[b];
        s->end = tab->bucket[b + 1];
    }
}

static bool is_found(const Search *s)
{
    const char *name = s->found.text + 1;

    return s->found.len >= s->len && !memcmp(name, s->name, s->len) &&
           (s->found.len == s->len ||
            gs_source_name_len(name, s->found.len) == s->len);
}

static uint32_t search_next(Search *s, const GsSymtab *tab)
{
    while (s->at < s->end) {
        const uint8_t *bytes = tab->row[s->at++];
        uint32_t row = bytes[0] | bytes[1] << 8 | (uint32_t)bytes[2] << 16;

        read_name(tab, row, &s->found);
        if (is_found(s)) {
            return row;
        }
    }
    return NO_ROW;
}

/* ---- extents ---- */

static bool named_va(const GsSymtab *tab, const char *name, uint64_t *va)
{
    Search s;
    uint32_t row;

    search_init(&s, tab, name);
    row = search_next(&s, tab);
    if (row == NO_ROW) {
        return false;
    }
    *va = row_va(tab, row);
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
    for (size_t i = 0; img && i < img->sections->len; i++) {
        const GsSection *sec = gs_image_nth_section(img, i);

        va = sec->va + sec->len;
        g_array_append_val(tab->ends, va);
    }
    g_array_sort(tab->ends, gs_sorted_compare);
    if (!named_va(tab, "__per_cpu_start", &tab->percpu_start) ||
        !named_va(tab, "__per_cpu_end", &tab->percpu_end)) {
        tab->percpu_start = tab->percpu_end = 0;
    }
}

/* The least section end at or above @va, or UINT64_MAX. */
static uint64_t end_from(const GsSymtab *tab, uint64_t va)
{
    size_t i = gs_sorted_below(tab->ends->data, tab->ends->len,
                               sizeof(uint64_t), va);

    return i < tab->ends->len ? g_array_index(tab->ends, uint64_t, i)
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
static uint64_t extent(const GsSymtab *tab, uint64_t va, uint32_t above)
{
    uint64_t end = tab->exact ? UINT64_MAX : end_from(tab, va + 1);

    if (!tab->exact && above < tab->n) {
        end = MIN(end, row_va(tab, above));
    }
    return end == UINT64_MAX ? 0 : end - va;
}

static void fill_symbol(const GsSymtab *tab, uint64_t va, uint32_t above,
                        const Name *name, GsSymbol *out)
{
    out->va = va;
    out->size = is_end_label(name->text + 1) ? 0 : extent(tab, va, above);
    out->module = NULL;
    out->load = 0;
    out->type = name->text[0];
    memcpy(out->name, name->text + 1, name->len + 1);
}

static void row_symbol(const GsSymtab *tab, uint32_t row, GsSymbol *out)
{
    uint64_t va = row_va(tab, row);
    Name name;

    read_name(tab, row, &name);
    fill_symbol(tab, va, upper_bound(tab, va), &name, out);
}

/* ---- queries ---- */

void gs_symtab_seal(GsSymtab *tab, const GsImage *img)
{
    gs_symtab_build(tab);
    collect_ends(tab, img);
}

size_t gs_symtab_n(const GsSymtab *tab)
{
    return tab->n;
}

size_t gs_symtab_bytes(const GsSymtab *tab)
{
    return sizeof(*tab) + gs_codes_bytes(tab->codes) + tab->names_len + 1 +
           gs_symtab_n_markers(tab) * sizeof(*tab->marker) +
           tab->n * (sizeof(*tab->offset) + sizeof(*tab->row)) +
           (tab->hash_mask + 2ull) * sizeof(*tab->bucket) +
           tab->spans->len * sizeof(GsSymtabSpan) +
           tab->ends->len * sizeof(uint64_t);
}

size_t gs_symtab_n_unsorted(const GsSymtab *tab)
{
    return tab->n_unsorted;
}

bool gs_symtab_lookup(const GsSymtab *tab, const char *name, GsSymbol *out)
{
    uint32_t row, best = NO_ROW;
    unsigned best_rank = 0;
    Search s;

    search_init(&s, tab, name);
    while ((row = search_next(&s, tab)) != NO_ROW) {
        unsigned rank = 1 + (g_ascii_isupper(s.found.text[0]) ? 1 : 0) +
                        (s.found.len == s.len ? 2 : 0);

        if (rank > best_rank) {
            best = row;
            best_rank = rank;
        }
    }
    if (best == NO_ROW) {
        return false;
    }
    row_symbol(tab, best, out);
    return true;
}

unsigned gs_symtab_foreach_named(const GsSymtab *tab, const char *name,
                                 GsSymbolFn fn, void *opaque)
{
    unsigned n = 0;
    uint32_t row;
    Search s;

    search_init(&s, tab, name);
    while ((row = search_next(&s, tab)) != NO_ROW) {
        GsSymbol sym;

        row_symbol(tab, row, &sym);
        n++;
        if (!fn(&sym, opaque)) {
            break;
        }
    }
    return n;
}

void gs_symtab_foreach(const GsSymtab *tab, GsSymtabFn fn, void *opaque)
{
    const uint8_t *entry = tab->names;
    Name name;

    for (uint32_t i = 0; i < tab->n; i++) {
        take_name(tab, &entry, &name);
        fn(row_va(tab, i), name.text, name.len + 1, opaque);
    }
}

typedef struct Filter {
    GsSymtab *to;
    GsSymtabKeepFn keep;
    void *opaque;
} Filter;

static void add_kept(uint64_t va, const char *text, size_t len, void *opaque)
{
    const Filter *f = opaque;

    if (f->keep(va, text + 1, f->opaque)) {
        gs_symtab_add(f->to, va, text[0], text + 1, len - 1);
    }
}

GsSymtab *gs_symtab_filter(const GsSymtab *tab, GsSymtabKeepFn keep,
                           void *opaque)
{
    Filter f = { gs_symtab_new(), keep, opaque };

    gs_symtab_foreach(tab, add_kept, &f);
    gs_symtab_build(f.to);
    g_array_append_vals(f.to->ends, tab->ends->data, tab->ends->len);
    f.to->percpu_start = tab->percpu_start;
    f.to->percpu_end = tab->percpu_end;
    f.to->low = tab->low;
    f.to->exact = tab->exact;
    return f.to;
}

void gs_symtab_set_low(GsSymtab *tab, uint64_t va)
{
    tab->low = va;
}

void gs_symtab_set_exact(GsSymtab *tab)
{
    tab->exact = true;
}

bool gs_symtab_is_exact(const GsSymtab *tab)
{
    return tab->exact;
}

/* Names of addresses of code or data, so of what can cover one. */
bool gs_symtab_covers(const char *text)
{
    return text[0] != 'A' && text[0] != 'a' && !is_end_label(text + 1);
}

/* The first name at @va, where there is one: if any there covers, it does. */
static bool covering_name(const GsSymtab *tab, uint64_t va, Name *name)
{
    read_name(tab, va ? upper_bound(tab, va - 1) : 0, name);
    return gs_symtab_covers(name->text);
}

bool gs_symtab_symbolize(const GsSymtab *tab, uint64_t va, GsSymbol *out)
{
    uint32_t above = upper_bound(tab, va);
    uint64_t start;
    Name name;

    if (!above || (!gs_symbol_slides(va) && (!tab->low || va < tab->low)) ||
        (va >= tab->percpu_start && va < tab->percpu_end)) {
        return false;
    }
    start = row_va(tab, above - 1);
    if (va - start >= MAX(extent(tab, start, above), 1) ||
        !covering_name(tab, start, &name)) {
        return false;
    }
    fill_symbol(tab, start, above, &name, out);
    return true;
}

char **gs_symtab_suggest(const GsSymtab *tab, const char *name, unsigned max)
{
    GsSuggest *s = gs_suggest_new(name, max);
    const uint8_t *entry = tab->names;
    Name candidate;

    for (uint32_t i = 0; i < tab->n; i++) {
        take_name(tab, &entry, &candidate);
        if (!g_str_has_prefix(candidate.text + 1, GS_TWIN)) {
            gs_suggest_offer(s, candidate.text + 1);
        }
    }
    return gs_suggest_finish(s);
}
