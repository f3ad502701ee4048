/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the tables of exported symbols, see symtab.h. kernel-open.c calls it
 * while a kernel is opened, in that thread; no state.
 *
 * include/asm-generic/vmlinux.lds.h places the tables side by side: __ksymtab,
 * __ksymtab_gpl and, until 5.12, tables of unused symbols. An entry is a struct
 * kernel_symbol of include/linux/export-internal.h:
 *
 *     { value, name, namespace }   each a 32-bit distance from itself
 *                                  (HAVE_ARCH_PREL32_RELOCATIONS), or an
 *                                  address of 64 bits
 *
 * The kernel finds a symbol by binary search, so a table is sorted by name. The
 * search is for a run of entries whose names are names and ascend. The linker
 * lets a string be the end of another one, so the strings have no order, and
 * not each has a NUL before it.
 */
#include "guest-symbols/symbols/symtab.h"
#include "guest-symbols/base/bytes.h"

#include <string.h>

#define KNOWN           "kfree" /* is in every kernel's tables */
#define ENTRIES_MIN     32      /* of the first table */
#define TABLES_MAX      8
#define TABLE_GAP       64      /* most bytes between two tables */
#define NAME_MAX_LEN    512     /* KSYM_NAME_LEN */
/* All strings of the tables are so near to the tables. */
#define STRINGS_WITHIN  (16u << 20)
/* Below are offsets of per-CPU variables, see gs_symbol_slides(). */
#define PERCPU_MAX      (16u << 20)
/* Steps for one image, besides one for each of its bytes: a step is a place
 * that is tried or a character of a name. Real kernels need 1 M. */
#define STEPS_MAX       (64u << 20)

/* How entries are written: @size bytes, each field a third of it. */
typedef struct Form {
    unsigned size, word;
    bool relative;
} Form;

static const Form forms[] = {
    { 12, 4, true },
    { 24, 8, false },
};

/* The search in the image @s; @steps are left */
typedef struct Tables {
    const GsSection *s;
    const Form *form;
    uint64_t steps;
} Tables;

typedef struct Entry {
    uint64_t value;
    const char *name;
    size_t len;
} Entry;

/* Entries [@start, @end) of one table. */
typedef struct Part {
    size_t start, end;
} Part;

/* ---- entries ------------------------------------------------------------ */

static uint64_t field(const Tables *t, size_t pos)
{
    const uint8_t *at = t->s->data + pos;

    return t->form->relative ?
           t->s->va + pos + (int64_t)(int32_t)gs_u32_at(at) : gs_u64_at(at);
}

/* A field of 0 is no pointer; as a distance it is that to itself. */
static bool is_null(const Tables *t, size_t pos)
{
    return field(t, pos) == (t->form->relative ? t->s->va + pos : 0);
}

static bool is_name_char(char c)
{
    return g_ascii_isalnum(c) || c == '_' || c == '.' || c == '$';
}

/* Return the length of the string at @va, if it is near the table at @pos and
 * consists of characters of a name; else 0. */
static size_t string_at(Tables *t, size_t pos, uint64_t va, const char **text)
{
    uint64_t at = va - t->s->va;
    size_t n = 0, most;

    if (at >= t->s->len || at - pos + STRINGS_WITHIN > 2ull * STRINGS_WITHIN) {
        return 0;
    }
    *text = (const char *)t->s->data + at;
    most = MIN(NAME_MAX_LEN, t->s->len - at);
    while (n < most && is_name_char((*text)[n])) {
        n++;
    }
    t->steps -= MIN(t->steps, n);
    return n < most && !(*text)[n] ? n : 0;
}

/* A namespace is a name, or several words, or empty, or missing. */
static bool has_namespace(const Tables *t, size_t pos)
{
    uint64_t at = field(t, pos) - t->s->va;

    return is_null(t, pos) || at < t->s->len;
}

static bool is_value(const Tables *t, uint64_t va)
{
    return va - t->s->va < t->s->len || va < PERCPU_MAX;
}

static bool entry_at(Tables *t, size_t pos, Entry *e)
{
    unsigned word = t->form->word;

    if (pos >= t->s->len || t->s->len - pos < t->form->size || !t->steps) {
        return false;
    }
    t->steps--;
    e->value = field(t, pos);
    if (!is_value(t, e->value) || !has_namespace(t, pos + 2 * word)) {
        return false;
    }
    e->len = string_at(t, pos, field(t, pos + word), &e->name);
    return e->len > 0;
}

/* ---- one table ---------------------------------------------------------- */

static size_t n_entries(const Tables *t, const Part *p)
{
    return (p->end - p->start) / t->form->size;
}

/* Find the end of the table that begins at @start: as long as entries are valid
 * and sorted. Their names end with a NUL. */
static Part part_at(Tables *t, size_t start)
{
    Part p = { start, start };
    Entry last = { .name = "" }, e;

    while (entry_at(t, p.end, &e) && strcmp(last.name, e.name) < 0) {
        p.end += t->form->size;
        last = e;
    }
    return p;
}

/* Find the table that follows @before. */
static bool next_part(Tables *t, const Part *before, Part *p)
{
    for (size_t gap = 0; gap <= TABLE_GAP; gap += t->form->word) {
        *p = part_at(t, before->end + gap);
        if (n_entries(t, p) > 1) {
            return true;
        }
    }
    return false;
}

/* ---- the search --------------------------------------------------------- */

/* Find the next table with many entries, at or behind *@pos. */
static bool next_first(Tables *t, size_t *pos, Part *p)
{
    while (*pos < t->s->len && t->steps) {
        *p = part_at(t, *pos);
        if (n_entries(t, p) >= ENTRIES_MIN) {
            *pos = p->end;
            return true;
        }
        *pos += t->form->word;
    }
    return false;
}

/* ---- symbols ------------------------------------------------------------ */

/* All code is below the tables, which are in read-only data. Some data is, too;
 * its letter is wrong then. */
static char letter_of(const Tables *t, uint64_t va, uint64_t tables_va)
{
    return va >= t->s->va && va < tables_va ? 'T' : 'D';
}

static bool add_part(Tables *t, const Part *p, uint64_t tables_va,
                     GsSymtab *tab)
{
    for (size_t pos = p->start; pos < p->end; pos += t->form->size) {
        Entry e;

        if (!entry_at(t, pos, &e) ||
            !gs_symtab_add(tab, e.value, letter_of(t, e.value, tables_va),
                           e.name, e.len)) {
            return false;
        }
    }
    return true;
}

/* Make a table of symbols of the tables from @first on. */
static GsSymtab *read_tables(Tables *t, const Part *first)
{
    g_autoptr(GsSymtab) tab = gs_symtab_new();
    Part p = *first, next;
    GsSymbol sym;

    for (unsigned i = 0; i < TABLES_MAX; i++) {
        if (!add_part(t, &p, t->s->va + first->start, tab)) {
            return NULL;
        }
        if (!next_part(t, &p, &next)) {
            break;
        }
        p = next;
    }
    gs_symtab_seal(tab, NULL);
    gs_symtab_set_exact(tab);
    return gs_symtab_lookup(tab, KNOWN, &sym) ? g_steal_pointer(&tab) : NULL;
}

static GsSymtab *search(Tables *t, uint64_t *at)
{
    size_t pos = -t->s->va & (t->form->word - 1);
    Part p;

    while (next_first(t, &pos, &p)) {
        GsSymtab *tab = read_tables(t, &p);

        if (tab) {
            *at = t->s->va + p.start;
            return tab;
        }
    }
    return NULL;
}

GsSymtab *gs_exports_decode(const GsImage *img, uint64_t *at)
{
    Tables t = { 0 };
    GsSymtab *tab = NULL;

    if (!img->sections->len) {
        return NULL;
    }
    t.s = gs_image_nth_section(img, 0);
    t.steps = STEPS_MAX + t.s->len;
    gs_guest_copy_need(img->copy, t.s->va, t.s->len);
    for (unsigned i = 0; t.s->data && !tab && i < G_N_ELEMENTS(forms); i++) {
        t.form = &forms[i];
        tab = search(&t, at);
    }
    return tab;
}
