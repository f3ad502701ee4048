/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The functions of a .BTF section by name, see btf-functions.h. */
#include "guest-symbols/types/btf-functions.h"

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

static int by_name(const void *pa, const void *pb, void *opaque)
{
    const uint32_t *a = pa, *b = pb;
    int order = strcmp(name_of(opaque, *a), name_of(opaque, *b));

    return order ? order : *a < *b ? -1 : *a > *b;
}

GsBtfFunctions *gs_btf_functions_new(const GsBtfRecords *r)
{
    GsBtfFunctions *f = g_new0(GsBtfFunctions, 1);
    g_autoptr(GArray) ids = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    GsBtfType t;

    for (uint32_t id = MAX(r->first, 1); id < r->n; id++) {
        if (gs_btf_type(r, id, &t) && t.kind == GS_BTF_FUNC) {
            g_array_append_val(ids, id);
        }
    }
    f->rec = r;
    f->n = ids->len;
    f->ids = (uint32_t *)g_array_free(g_steal_pointer(&ids), FALSE);
    if (f->n) {
        qsort_r(f->ids, f->n, sizeof(uint32_t), by_name, (void *)r);
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
