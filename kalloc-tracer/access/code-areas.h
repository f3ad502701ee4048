/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Code areas: the addresses of the modules whose code is checked.
 *
 * Made when checks begin and when a module is loaded or unloaded; asked when
 * code is translated, and at each call of memcpy() and the like. Constant once
 * published: any thread, no lock.
 */
#ifndef KT_CODE_AREAS_H
#define KT_CODE_AREAS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * struct KtCodeAreas - a set of addresses
 * @area: of Area, sorted, without overlaps
 * @lo, @len: all areas are in [@lo, @lo + @len); @len 0: there are none
 *
 * Visible for kt_code_areas_has() only.
 */
typedef struct KtCodeAreas {
    GArray *area;
    uint64_t lo, len;
} KtCodeAreas;

/** kt_code_areas_new() - (owned) Make an empty set. */
KtCodeAreas *kt_code_areas_new(void);
void kt_code_areas_free(KtCodeAreas *a);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtCodeAreas, kt_code_areas_free)

/** kt_code_areas_add() - Add [@start, @end). */
void kt_code_areas_add(KtCodeAreas *a, uint64_t start, uint64_t end);

bool kt_code_areas_find(const KtCodeAreas *a, uint64_t va);
/** kt_code_areas_has() - Return true if @va is in one of the areas. */
static inline bool kt_code_areas_has(const KtCodeAreas *a, uint64_t va)
{
    return va - a->lo < a->len && kt_code_areas_find(a, va);
}

#endif /* KT_CODE_AREAS_H */
