/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Structs and unions by name, see struct-place.h. */
#include "guest-symbols/types/struct-place.h"
#include "guest-symbols/base/suggest.h"
#include "guest-symbols/types/btf.h"

#define NEAR_MAX        3
#define NAMES_MAX       (1u << 16)      /* that a pattern matches */
#define MEMBERS_MAX     4096            /* that are compared */
#define NESTING_MAX     16              /* structs without a name */

/* Read type @id if it is a struct or union, or with @alias a typedef of one. */
static bool composite(const GsBtfRecords *r, uint32_t id, bool alias,
                      GsBtfType *t)
{
    if (!gs_btf_type(r, id, t)) {
        return false;
    }
    return gs_btf_is_composite(t) ||
           (alias && t->kind == GS_BTF_TYPEDEF);
}

/* Add the ids in [@first, @end) that have the name. */
static void add_named(const GsBtfRecords *r, const char *name, uint32_t first,
                      uint32_t end, GArray *ids)
{
    GsBtfType t;

    for (uint32_t id = MAX(first, 1); id < end; id++) {
        if (composite(r, id, false, &t) &&
            !strcmp(gs_btf_name(r, t.name), name)) {
            g_array_append_val(ids, id);
        }
    }
}

/* Add what the first typedef of that name stands for. */
static void add_alias(const GsBtfRecords *r, const char *name, GArray *ids)
{
    GsBtfType t, real;

    for (uint32_t id = 1; id < r->n; id++) {
        uint32_t to = id;

        if (gs_btf_type(r, id, &t) && t.kind == GS_BTF_TYPEDEF &&
            !strcmp(gs_btf_name(r, t.name), name) &&
            gs_btf_real(r, &to, &real) && gs_btf_is_composite(&real)) {
            g_array_append_val(ids, to);
            return;
        }
    }
}

GArray *gs_struct_definitions(const GsBtf *btf, const char *name)
{
    const GsBtfRecords *r = gs_btf_records(btf);
    GArray *ids = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    uint32_t size;

    if (!*name || !gs_btf_type_size(btf, name, &size)) {
        return ids;
    }
    add_named(r, name, r->first, r->n, ids);
    if (!ids->len) {
        add_named(r, name, 0, r->first, ids);
    }
    if (!ids->len) {
        add_alias(r, name, ids);
    }
    return ids;
}

static char *finish(GsSuggest *s)
{
    g_auto(GStrv) names = gs_suggest_finish(s);

    return g_strjoinv(", ", names);
}

char *gs_struct_near(const GsBtf *btf, const char *name)
{
    const GsBtfRecords *r = gs_btf_records(btf);
    GsSuggest *s = gs_suggest_new(name, NEAR_MAX);
    GsBtfType t;

    for (uint32_t id = 1; id < r->n; id++) {
        if (composite(r, id, false, &t)) {
            gs_suggest_offer(s, gs_btf_name(r, t.name));
        }
    }
    return finish(s);
}

char *gs_struct_member_near(const GsBtf *btf, uint32_t id, const char *name)
{
    const GsBtfRecords *r = gs_btf_records(btf);
    GsSuggest *s = gs_suggest_new(name, NEAR_MAX);
    uint32_t todo[NESTING_MAX] = { id };
    unsigned n_todo = 1, left = MEMBERS_MAX;
    GsBtfType t;

    while (n_todo) {
        uint32_t in = todo[--n_todo];
        bool ok = gs_btf_real(r, &in, &t) && gs_btf_is_composite(&t);

        for (uint32_t i = 0; ok && i < t.vlen && left; i++, left--) {
            GsBtfMember m = gs_btf_nth_member(&t, i);
            const char *member = gs_btf_name(r, m.name);

            if (*member) {
                gs_suggest_offer(s, member);
            } else if (n_todo < NESTING_MAX) {
                todo[n_todo++] = m.type;
            }
        }
    }
    return finish(s);
}

/* ---- patterns ----------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const GsStructName *)a)->name,
                  ((const GsStructName *)b)->name);
}

/* Names of anonymous structs are those of their typedefs. */
static bool is_name(const GsBtfRecords *r, uint32_t id, GsStructName *out)
{
    GsBtfType t, real;
    uint32_t to = id;

    if (!composite(r, id, true, &t) || !gs_btf_real(r, &to, &real) ||
        !gs_btf_is_composite(&real) ||
        (to != id && *gs_btf_name(r, real.name))) {
        return false;
    }
    *out = (GsStructName) {
        .name = gs_btf_name(r, t.name), .size = real.word, .n = 1,
    };
    return *out->name;
}

void gs_struct_foreach_name(const GsBtf *btf, const char *pattern, bool own,
                            GsStructNameFn fn, void *opaque)
{
    g_autoptr(GPatternSpec) spec = g_pattern_spec_new(pattern);
    g_autoptr(GArray) names = g_array_new(FALSE, FALSE, sizeof(GsStructName));
    const GsBtfRecords *r = gs_btf_records(btf);
    GsStructName *at, name;

    for (uint32_t id = MAX(own ? r->first : 0, 1);
         id < r->n && names->len < NAMES_MAX; id++) {
        if (is_name(r, id, &name) &&
            g_pattern_spec_match_string(spec, name.name)) {
            g_array_append_val(names, name);
        }
    }
    g_array_sort(names, by_name);
    at = (GsStructName *)names->data;
    for (guint i = 0; i < names->len; i += at[i].n) {
        while (i + at[i].n < names->len &&
               !strcmp(at[i].name, at[i + at[i].n].name)) {
            at[i].n++;
        }
        fn(&at[i], opaque);
    }
}
