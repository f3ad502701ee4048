/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of numbers: error numbers, capabilities, and the bits of gfp_t. The
 * tables are in number-names.def. Any thread.
 */
#ifndef GS_NUMBER_NAMES_H
#define GS_NUMBER_NAMES_H

#include "guest-symbols/api/gs-values.h"
#include "guest-symbols/types/btf-records.h"

/** struct GsGfpNames - names of the bits of gfp_t in one kernel; "" if a bit
 *  has none */
typedef struct GsGfpNames {
    char bit[32][24];
} GsGfpNames;

/** gs_gfp_names_new() - read enum ___GFP_*_BIT (6.10 and later), or use the
 *  table. Returns: (owned, g_free) */
GsGfpNames *gs_gfp_names_new(const GsBtfRecords *r);
/** gs_gfp_print() - append the names of flags: "GFP_KERNEL|ZERO|0x80000000";
 *  nothing for 0. */
void gs_gfp_print(GString *to, const GsGfpNames *names, uint32_t flags);

#endif /* GS_NUMBER_NAMES_H */
