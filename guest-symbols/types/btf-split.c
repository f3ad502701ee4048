/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Relocation of a module's types, see types-internal.h.
 *
 * find_all() searches the kernel's types once, with a table of the names of the
 * small base. Then each id and each name in the module's records is rewritten:
 *
 *     id        of the small base: the kernel's; else + the kernel's types, and
 *               - those of the small base
 *     name      + the kernel's names: the names of the small base are put in
 *               front of the module's own
 */
#include "guest-symbols/types/types-internal.h"
#include "guest-symbols/base/name-hash.h"

#define SMALL_MAX   (1u << 16)      /* types of a small base */
#define CHAIN_MAX   4               /* of them with one name */

/* @found: for each id of the small base: the kernel's, 0 none
 * @again: the kernel has another one of that name and size
 * @next: the id before this one that has the same name, 0 none */
typedef struct Search {
    const GsBtfRecords *small, *base;
    uint32_t *found, *next;
    uint8_t *again;
    GHashTable *names;              /* -> the last id with that name */
} Search;

static bool fail(GError **errp, const char *what, const char *name)
{
    g_autofree char *shown = g_strndup(name, 64);

    for (char *c = shown; *c; c++) {
        *c = g_ascii_isgraph(*c) ? *c : '?';
    }
    return gs_fail(errp, GS_ERROR_FORMAT, "BTF of a module: %s %s", what,
                   shown);
}

static bool is_same_kind(unsigned small, unsigned base)
{
    return small == base || (small == GS_BTF_ENUM && base == GS_BTF_ENUM64);
}

/* Is @t, of the kernel, what @s of the small base stands for? A struct of the
 * small base has no members, only a size; one that is only pointed at has
 * none, and is a forward declaration. */
static bool fits(const GsBtfType *s, const GsBtfType *t)
{
    if (s->kind == GS_BTF_FWD) {
        return t->kind == (s->flag ? GS_BTF_UNION : GS_BTF_STRUCT) ||
               (t->kind == GS_BTF_FWD && t->flag == s->flag);
    }
    if (!is_same_kind(s->kind, t->kind) || s->word != t->word) {
        return false;
    }
    return s->kind != GS_BTF_INT || gs_btf_word(s, 0) == gs_btf_word(t, 0);
}

/* A forward declaration gives way to the struct. */
static void note(Search *s, uint32_t small, uint32_t id, const GsBtfType *t)
{
    GsBtfType other;

    if (!s->found[small] ||
        (gs_btf_type(s->base, s->found[small], &other) &&
         other.kind == GS_BTF_FWD)) {
        s->found[small] = id;
    } else if (gs_btf_is_composite(t)) {
        s->again[small] = 1;
    }
}

static void search_type(Search *s, uint32_t id)
{
    GsBtfType t, small;
    gpointer last;

    if (!gs_btf_type(s->base, id, &t) || !t.name) {
        return;
    }
    last = g_hash_table_lookup(s->names, gs_btf_name(s->base, t.name));
    for (uint32_t i = GPOINTER_TO_UINT(last); i; i = s->next[i]) {
        if (gs_btf_type(s->small, i, &small) && fits(&small, &t)) {
            note(s, i, id, &t);
        }
    }
}

/* How many types of the small base have the same name as @id. */
static unsigned chain_length(const Search *s, uint32_t id)
{
    unsigned n = 0;

    for (; id && n <= CHAIN_MAX; id = s->next[id]) {
        n++;
    }
    return n;
}

static bool is_allowed(const GsBtfType *t)
{
    return t->kind == GS_BTF_INT || t->kind == GS_BTF_FLOAT ||
           t->kind == GS_BTF_FWD || gs_btf_is_composite(t) ||
           gs_btf_is_enum(t);
}

static bool index_small(Search *s, GError **errp)
{
    for (uint32_t id = 1; id < s->small->n; id++) {
        const char *name;
        GsBtfType t;

        if (!gs_btf_type(s->small, id, &t)) {
            return fail(errp, "no such type", "");
        }
        name = gs_btf_name(s->small, t.name);
        s->next[id] = GPOINTER_TO_UINT(g_hash_table_lookup(s->names, name));
        if (!*name || !is_allowed(&t) || chain_length(s, id) > CHAIN_MAX) {
            return fail(errp, "its base has a senseless type", name);
        }
        g_hash_table_insert(s->names, (char *)name, GUINT_TO_POINTER(id));
    }
    return true;
}

/* Several structs of one name and size cannot be told apart, except where only
 * a pointer leads to them. */
static bool check_found(const Search *s, GError **errp)
{
    for (uint32_t id = 1; id < s->small->n; id++) {
        GsBtfType t = { 0 };

        gs_btf_type(s->small, id, &t);
        if (!s->found[id] || (s->again[id] && t.kind != GS_BTF_FWD)) {
            return fail(errp, s->found[id] ?
                        "the kernel has several types" :
                        "the kernel has no type of that size:",
                        gs_btf_name(s->small, t.name));
        }
    }
    return true;
}

static bool find_all(Search *s, GError **errp)
{
    if (!index_small(s, errp)) {
        return false;
    }
    for (uint32_t id = 1; id < s->base->n; id++) {
        search_type(s, id);
    }
    return check_found(s, errp);
}

/* ---- rewriting ---- */

static void move_id(const Search *s, uint32_t *at)
{
    uint32_t id = GUINT32_FROM_LE(*at);

    /* An id that was too large stays too large. */
    if (id < s->small->n) {
        id = s->found[id];
    } else if (id <= UINT32_MAX - s->base->n) {
        id = id - s->small->n + s->base->n;
    }
    *at = GUINT32_TO_LE(id);
}

static void move_name(const Search *s, uint32_t *at)
{
    uint32_t off = GUINT32_FROM_LE(*at);

    if (off && off <= UINT32_MAX - s->base->names_len) {
        *at = GUINT32_TO_LE(off + s->base->names_len);
    }
}

/* @record: in the copy of the section; the index says that all of it is
 * there */
static void move_record(const Search *s, uint32_t *record, const GsBtfType *t)
{
    const GsBtfShape *shape;
    size_t n;

    move_name(s, &record[0]);
    if (t->kind >= GS_BTF_KINDS) {
        return;
    }
    shape = &gs_btf_shapes[t->kind];
    if (shape->refers) {
        move_id(s, &record[2]);
    }
    n = shape->names | shape->ids ? gs_btf_words(t) : 0;
    for (size_t i = 0; i < n; i++) {
        unsigned bit = 1u << (shape->each ? i % shape->each : i);

        if (shape->names & bit) {
            move_name(s, &record[3 + i]);
        } else if (shape->ids & bit) {
            move_id(s, &record[3 + i]);
        }
    }
}

static void move_all(GsBtfRecords *r, const Search *s)
{
    uint32_t n = r->n - r->first;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t *record = r->types + r->at[i];
        GsBtfType t;

        if (gs_btf_type(r, r->first + i, &t)) {
            move_record(s, record, &t);
        }
    }
}

/* Put the small base's names in front of the module's. */
static void join_names(GsBtfRecords *r, const GsBtfRecords *small)
{
    char *names = g_malloc((size_t)small->names_len + r->names_len);

    memcpy(names, small->names, small->names_len);
    memcpy(names + small->names_len, r->names, r->names_len);
    r->joined = names;
    r->names = names;
    r->names_len += small->names_len;
    r->bytes += r->names_len;
}

static void rebase(GsBtfRecords *r, const Search *s)
{
    move_all(r, s);
    join_names(r, s->small);
    r->n = r->n - r->first + s->base->n;
    r->first = s->base->n;
    r->first_name = s->base->names_len;
    r->base = s->base;
}

bool gs_btf_relocate(GsBtfRecords *split, const GsBtfRecords *small,
                     const GsBtfRecords *base, GError **errp)
{
    g_autoptr(GHashTable) names = g_hash_table_new(gs_name_hash_str,
                                                   g_str_equal);
    g_autofree uint32_t *found = g_new0(uint32_t, small->n);
    g_autofree uint32_t *next = g_new0(uint32_t, small->n);
    g_autofree uint8_t *again = g_new0(uint8_t, small->n);
    Search s = {
        .small = small, .base = base, .found = found, .next = next,
        .again = again, .names = names,
    };

    if (small->n > SMALL_MAX) {
        return fail(errp, "its base has too many types", "");
    }
    if (!find_all(&s, errp)) {
        return false;
    }
    rebase(split, &s);
    return true;
}
