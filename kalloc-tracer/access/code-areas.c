/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Code areas: see code-areas.h. */
#include "kalloc-tracer/access/code-areas.h"

#include "guest-symbols/base/sorted.h"

typedef struct Area {
    uint64_t start, end;
} Area;

static Area *area_at(const KtCodeAreas *a, unsigned i)
{
    return &g_array_index(a->area, Area, i);
}

KtCodeAreas *kt_code_areas_new(void)
{
    KtCodeAreas *a = g_new0(KtCodeAreas, 1);

    a->area = g_array_new(FALSE, FALSE, sizeof(Area));
    return a;
}

void kt_code_areas_free(KtCodeAreas *a)
{
    if (a) {
        g_array_unref(a->area);
        g_free(a);
    }
}

/* Count the areas that start at or below @va. */
static unsigned n_up_to(const KtCodeAreas *a, uint64_t va)
{
    return gs_sorted_up_to(a->area->data, a->area->len, sizeof(Area), va);
}

/* Areas that touch or overlap the new one become a part of it. */
void kt_code_areas_add(KtCodeAreas *a, uint64_t start, uint64_t end)
{
    Area area = { start, end };
    unsigned from, to;

    if (start >= end) {
        return;
    }
    to = n_up_to(a, end);
    for (from = to; from && area_at(a, from - 1)->end >= start; from--) {
        area.start = MIN(area.start, area_at(a, from - 1)->start);
        area.end = MAX(area.end, area_at(a, from - 1)->end);
    }
    g_array_remove_range(a->area, from, to - from);
    g_array_insert_val(a->area, from, area);
    a->lo = area_at(a, 0)->start;
    a->len = area_at(a, a->area->len - 1)->end - a->lo;
}

bool kt_code_areas_find(const KtCodeAreas *a, uint64_t va)
{
    unsigned n = n_up_to(a, va);

    return n && va < area_at(a, n - 1)->end;
}
