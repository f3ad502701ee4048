/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The functions of a .BTF section by name, see types-internal.h. */
#include "guest-symbols/types/types-internal.h"

#include <stdlib.h>

struct GsBtfFunctions {
    const GsBtfRecords *rec;
    uint32_t *ids;
    unsigned n;
};

static const char *name_of(const GsBtfRecords *r, uint32_t id)
{
    GsBtfType t;

    return gs_btf_type(r, id, &t) ? gs_btf_name(r, t.name) : "";
}

/* The sort compares names often: each is read once. */
typedef struct Entry {
    const char *name;
    uint32_t id;
} Entry;

static int by_name(const void *pa, const void *pb)
{
    const Entry *a = pa, *b = pb;
    int order = strcmp(a->name, b->name);

    return order ? order : a->id < b->id ? -1 : a->id > b->id;
}

static GArray *list_functions(const GsBtfRecords *r)
{
    GArray *list = g_array_new(FALSE, FALSE, sizeof(Entry));
    GsBtfType t;

    for (uint32_t id = MAX(r->first, 1); id < r->n; id++) {
        if (gs_btf_type(r, id, &t) && t.kind == GS_BTF_FUNC) {
            const Entry e = { gs_btf_name(r, t.name), id };

            g_array_append_val(list, e);
        }
    }
    return list;
}

GsBtfFunctions *gs_btf_functions_new(const GsBtfRecords *r)
{
    GsBtfFunctions *f = g_new0(GsBtfFunctions, 1);
    g_autoptr(GArray) list = list_functions(r);

    f->rec = r;
    f->n = list->len;
    f->ids = g_new(uint32_t, f->n);
    if (f->n) {
        qsort(list->data, list->len, sizeof(Entry), by_name);
    }
    for (unsigned i = 0; i < f->n; i++) {
        f->ids[i] = g_array_index(list, Entry, i).id;
    }
    return f;
}

void gs_btf_functions_free(GsBtfFunctions *f)
{
    if (f) {
        g_free(f->ids);
        g_free(f);
    }
}

/* Return how many functions have a name below @name. */
static unsigned n_below(const GsBtfFunctions *f, const char *name)
{
    unsigned lo = 0, hi = f->n;

    while (lo < hi) {
        unsigned mid = lo + (hi - lo) / 2;

        if (strcmp(name_of(f->rec, f->ids[mid]), name) < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

const uint32_t *gs_btf_functions_find(const GsBtfFunctions *f,
                                      const char *name, unsigned *n)
{
    unsigned first = n_below(f, name), end = first;

    while (end < f->n && !strcmp(name_of(f->rec, f->ids[end]), name)) {
        end++;
    }
    *n = end - first;
    return *n ? f->ids + first : NULL;
}
