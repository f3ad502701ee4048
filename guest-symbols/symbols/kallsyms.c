/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decodes a kernel's own symbol table, whose parts kallsyms-find.c finds.
 * kernel-open.c calls it while a kernel is opened, in that thread.
 *
 * How the addresses are encoded is a configuration choice that the tables do
 * not contain. So every encoding that a layout allows is tried, and the one
 * that yields ascending addresses is used.
 */
#include "guest-symbols/symbols/symtab.h"
#include "guest-symbols/symbols/symtab-internal.h"

#include <string.h>

/* In guest memory: bytes to search before a table's tokens and behind their
 * start, and how many places to try. */
#define AROUND_BEFORE   (8u << 20)
#define AROUND_BEHIND   (4u << 20)
#define AROUND_MAX      4

/* Steps for one image: real kernels take 2 M, most of them for reading the
 * symbols. */
#define STEPS_MAX       (64u << 20)
#define SYMBOL_STEPS    8

/* One search of an image; @steps are left. */
typedef struct Look {
    GsImage *img;
    uint64_t steps;
} Look;

/* An encoding of addresses: @at returns the @i-th one. */
typedef struct Encoding {
    const char *since;
    unsigned size;          /* bytes of an entry */
    bool has_base;          /* a relative_base lies behind the entries */
    uint64_t (*at)(uint64_t entry, uint64_t base, uint64_t entry_va);
} Encoding;

typedef struct Decoder {
    GsImage *img;
    GsArea area;
    GsKallsymsParts parts;
    const Encoding *enc;
    size_t entries;         /* position of the addresses */
    uint64_t base;
    uint64_t linked_at;     /* of a raw image, 0: not known */
    uint64_t least;         /* where the kernel is linked: least and greatest */
    uint64_t greatest;      /* address in the upper half */
} Decoder;

static uint64_t at_unsigned(uint64_t entry, uint64_t base, uint64_t va)
{
    return base + entry;
}

/* Not negative: an absolute (percpu) value. Negative: below the base. */
static uint64_t at_percpu(uint64_t entry, uint64_t base, uint64_t va)
{
    int32_t off = (uint32_t)entry;

    return off >= 0 ? (uint64_t)off : base - 1 - (int64_t)off;
}

static uint64_t at_absolute(uint64_t entry, uint64_t base, uint64_t va)
{
    return entry;
}

static uint64_t at_place(uint64_t entry, uint64_t base, uint64_t va)
{
    return va + (int64_t)(int32_t)entry;
}

static const Encoding encodings[] = {
    { "4.6, 2213e9a66bb8, ABSOLUTE_PERCPU until 6.14", 4, true, at_percpu },
    { "4.6, 2213e9a66bb8, BASE_RELATIVE", 4, true, at_unsigned },
    { "7.0, a081b5789255, relative to the entry", 4, false, at_place },
    { "before 6.11, without BASE_RELATIVE", 8, false, at_absolute },
};

/* ---- where the addresses are ---- */

static size_t align(const Decoder *d, size_t pos)
{
    return pos + (-(d->area.va + pos) & (d->parts.layout->align - 1));
}

/*
 * A relocatable arm64 Image leaves the base to a relocation, which looks
 * like {place, R_AARCH64_RELATIVE, value}. The image is linked at a multiple
 * of 64 KiB, the place is that plus the position of the base in the file, and
 * the value is the first symbol's address, near the start. If several entries
 * fit, the one nearest to the start is right. Sets @d->linked_at to the link
 * address of the image.
 */
static uint64_t relocated_base(Decoder *d, size_t pos)
{
    const uint64_t r_aarch64_relative = 1027;
    uint64_t nearest = 2u << 20, base = 0;
    const GsArea *a = &d->area;

    if (!d->img->raw ||
        !gs_kallsyms_spend(a, a->len / GS_KALLSYMS_STEP_BYTES)) {
        return 0;
    }
    for (size_t i = 0; i + 24 <= a->len; i += 8) {
        uint64_t start = gs_kallsyms_word(a, i, 8) - pos;
        uint64_t value = gs_kallsyms_word(a, i + 16, 8);

        if (gs_kallsyms_word(a, i + 8, 8) == r_aarch64_relative &&
            !(start & 0xffff) && value - start < nearest) {
            nearest = value - start;
            base = value;
            d->linked_at = start;
        }
    }
    return base;
}

/* Is @va in a section, bss included? @code: of code */
static bool in_image(const GsImage *img, uint64_t va, bool code)
{
    for (size_t i = 0; i < img->sections->len; i++) {
        const GsSection *s = gs_image_nth_section(img, i);

        if ((s->exec || !code) && va >= s->va && va - s->va < s->len) {
            return true;
        }
    }
    return false;
}

/* Before 6.4: addresses, base, then num_syms. */
static bool before_names(Decoder *d, size_t *base_at)
{
    size_t bytes = ((size_t)d->parts.n * d->enc->size + 7) & ~(size_t)7;
    size_t back = bytes + (d->enc->has_base ? 8 : 0);

    if (d->parts.num_syms < back) {
        return false;
    }
    d->entries = d->parts.num_syms - back;
    *base_at = d->entries + bytes;
    return true;
}

/* Since 6.4: token index, then addresses and base. */
static bool after_tokens(Decoder *d, size_t *base_at)
{
    const GsArea *a = &d->area;
    size_t bytes = (size_t)d->parts.n * d->enc->size;

    d->entries = align(d, d->parts.tokens_end);
    *base_at = align(d, d->entries + bytes);
    return *base_at <= a->len && (!d->enc->has_base || a->len - *base_at >= 8);
}

static bool (*const places[])(Decoder *d, size_t *base_at) = {
    after_tokens,
    before_names,
};

/* Sets the decoder up to read one encoding at one place. */
static bool set_up(Decoder *d, const Encoding *enc, unsigned place)
{
    size_t base_at;

    d->enc = enc;
    d->base = 0;
    d->linked_at = 0;
    if (!places[place](d, &base_at)) {
        return false;
    }
    if (!enc->has_base) {
        return true;
    }
    d->base = gs_kallsyms_word(&d->area, base_at, 8);
    if (!d->base) {
        d->base = relocated_base(d, base_at);
    }
    return gs_symbol_slides(d->base) &&
           (d->img->raw || in_image(d->img, d->base, false));
}

static uint64_t address(const Decoder *d, uint32_t i)
{
    size_t pos = d->entries + (size_t)i * d->enc->size;

    return d->enc->at(gs_kallsyms_word(&d->area, pos, d->enc->size), d->base,
                      d->area.va + pos);
}

/* The link address of a raw image is not known yet. */
static void find_span(Decoder *d)
{
    d->least = UINT64_MAX;
    d->greatest = 0;
    for (size_t i = 0; i < d->img->sections->len; i++) {
        const GsSection *s = gs_image_nth_section(d->img, i);

        if (gs_symbol_slides(s->va)) {
            d->least = MIN(d->least, s->va);
            d->greatest = MAX(d->greatest, s->va + s->len);
        }
    }
    if (d->img->raw) {
        d->least = 1ull << 63;
        d->greatest = UINT64_MAX;
    }
}

/*
 * Returns how many symbols are out of order; UINT32_MAX, without reading the
 * rest, once there are @limit or most are outside the kernel.
 */
static uint32_t disorder(const Decoder *d, uint32_t limit)
{
    uint32_t n = 0, outside = 0, most = (d->parts.n - 1) / 2;
    uint64_t before = 0;

    for (uint32_t i = 0; i < d->parts.n; i++) {
        uint64_t va = address(d, i);

        n += va < before;
        outside += va < d->least || va > d->greatest;
        if (n >= limit || outside > most || !gs_kallsyms_spend(&d->area, 1)) {
            return UINT32_MAX;
        }
        before = va;
    }
    return n;
}

/* Sets @d up for the encoding and the place that fit best. */
static bool choose_encoding(Decoder *d, GError **errp)
{
    uint32_t best = d->parts.n / 100 + 1;
    bool found = false;
    Decoder chosen;

    find_span(d);
    chosen = *d;
    for (size_t i = 0; i < G_N_ELEMENTS(encodings) * 2; i++) {
        uint32_t n;

        if (!set_up(d, &encodings[i / 2], i % 2)) {
            continue;
        }
        n = disorder(d, best);
        if (n < best) {
            best = n;
            chosen = *d;
            found = true;
        }
    }
    *d = chosen;
    if (!found) {
        return gs_fail(errp, GS_ERROR_FORMAT,
                       "kallsyms: %u symbols (as in Linux %s), but their "
                       "addresses follow no known encoding", d->parts.n,
                       d->parts.layout->since);
    }
    return true;
}

/* ---- names ---- */

static GsNameCodes *read_codes(const Decoder *d)
{
    GsNameCodes *codes = gs_codes_new();

    for (unsigned i = 0; i < GS_KALLSYMS_TOKENS; i++) {
        gs_codes_set(codes, i,
                     (const char *)d->area.data + d->parts.token[i],
                     d->parts.token_len[i]);
    }
    return codes;
}

static GsSymtab *read_symbols(const Decoder *d, GError **errp)
{
    g_autoptr(GsSymtab) tab = gs_symtab_new_coded(read_codes(d),
        d->area.data + d->parts.names);
    size_t pos = d->parts.names, data;

    for (uint32_t i = 0; i < d->parts.n; i++) {
        size_t at = pos - d->parts.names;

        if (!gs_kallsyms_spend(&d->area, SYMBOL_STEPS) ||
            !gs_kallsyms_name(&d->area, &pos, &data) ||
            !gs_symtab_add_coded(tab, address(d, i), at)) {
            return gs_fail(errp, GS_ERROR_FORMAT,
                           "kallsyms: symbol %u of %u has no sensible name", i,
                           d->parts.n);
        }
    }
    gs_symtab_seal(tab, d->img);
    return g_steal_pointer(&tab);
}

/* ---- is it this kernel's table? ---- */

static bool plausible(const GsImage *img, const GsSymtab *tab, GError **errp)
{
    GsSymbol start, end;

    if (!gs_symtab_lookup(tab, "_stext", &start) ||
        !gs_symtab_lookup(tab, "_etext", &end) || start.va >= end.va) {
        return gs_fail(errp, GS_ERROR_FORMAT,
                       "kallsyms: _stext and _etext are missing or reversed");
    }
    if (!in_image(img, start.va, true)) {
        return gs_fail(errp, GS_ERROR_FORMAT, "kallsyms: _stext 0x%"
                       G_GINT64_MODIFIER "x is not in the image's code",
                       start.va);
    }
    return true;
}

static GsSymtab *decode(Decoder *d, GError **errp)
{
    g_autoptr(GsSymtab) tab = NULL;
    GsSymbol text;

    if (!choose_encoding(d, errp)) {
        return NULL;
    }
    tab = read_symbols(d, errp);
    if (!tab) {
        return NULL;
    }
    if (d->linked_at) {
        gs_image_rebase(d->img, d->linked_at);
    } else if (gs_symtab_lookup(tab, "_text", &text)) {
        gs_image_rebase(d->img, text.va);
    }
    return plausible(d->img, tab, errp) ? g_steal_pointer(&tab) : NULL;
}

/* Tries every table in [@from, @to) of a section; returns the first valid
 * one. */
static GsSymtab *search_part(Look *look, const GsSection *sec, size_t from,
                             size_t to, GError **errp)
{
    Decoder d = {
        .img = look->img,
        .area = { .data = sec->data + from, .len = to - from,
                  .va = sec->va + from, .steps = &look->steps },
    };
    size_t pos = 0;
    bool known;

    gs_guest_copy_need(d.img->copy, d.area.va, d.area.len);
    while (gs_kallsyms_find(&d.area, &pos, &d.parts, &known)) {
        GsSymtab *tab;

        g_clear_error(errp);
        if (!known) {
            g_set_error(errp, GS_ERROR, GS_ERROR_FORMAT,
                        "kallsyms: token table at 0x%" G_GINT64_MODIFIER
                        "x, but nothing known around it",
                        d.area.va + d.parts.tokens);
            continue;
        }
        tab = decode(&d, errp);
        if (tab) {
            return tab;
        }
    }
    return NULL;
}

/*
 * Searches guest memory only around bytes that look like tokens, twice as far
 * as the table of a distribution kernel reaches. This only saves time: if it
 * finds nothing, the whole section is searched.
 */
static GsSymtab *search_around(Look *look, const GsSection *sec,
                               GError **errp)
{
    uint64_t va = sec->va;

    for (unsigned i = 0; i < AROUND_MAX; i++) {
        size_t len, at, from, to;
        const char *mark = gs_kallsyms_mark(&len);
        GsSymtab *tab;

        if (!gs_guest_copy_find(look->img->copy, mark, len, &va)) {
            return NULL;
        }
        at = va - sec->va;
        from = at > AROUND_BEFORE ? (at - AROUND_BEFORE) & ~(size_t)0xfff : 0;
        to = MIN(sec->len, at + AROUND_BEHIND);
        tab = search_part(look, sec, from, to, errp);
        if (tab) {
            return tab;
        }
        va = sec->va + to;
    }
    return NULL;
}

static GsSymtab *search_section(Look *look, const GsSection *sec,
                                GError **errp)
{
    GsSymtab *tab = search_around(look, sec, errp);

    return tab ? tab : search_part(look, sec, 0, sec->len, errp);
}

GsSymtab *gs_kallsyms_decode(GsImage *img, GError **errp)
{
    Look look = { .img = img, .steps = STEPS_MAX };
    g_autoptr(GError) err = NULL;

    /* the tables are in .rodata: look there before everywhere else */
    for (int elsewhere = 0; elsewhere < 2; elsewhere++) {
        for (size_t i = 0; i < img->sections->len; i++) {
            const GsSection *s = gs_image_nth_section(img, i);
            GsSymtab *tab;

            if (!s->data || (strcmp(s->name, ".rodata") != 0) != elsewhere) {
                continue;
            }
            tab = search_section(&look, s, &err);
            if (tab) {
                return tab;
            }
        }
    }
    if (!look.steps) {
        g_clear_error(&err);
        g_set_error(&err, GS_ERROR, GS_ERROR_FORMAT,
                    "kallsyms: too much in the image looks like a table that "
                    "is none: given up");
    }
    if (!err) {
        g_set_error(&err, GS_ERROR, GS_ERROR_NO_SYMBOLS,
                    "no kallsyms table: the kernel was built without "
                    "CONFIG_KALLSYMS, or is older than Linux 4.6");
    }
    g_propagate_error(errp, g_steal_pointer(&err));
    return NULL;
}
