/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The functions of a .BTF section by name: the ids of its FUNC records, sorted
 * by name. A kernel has some 47,000; several may have one name. If the types
 * continue others, only those of their own are here.
 *
 * Does not change once made: any thread, no lock.
 */
#ifndef GS_BTF_FUNCTIONS_H
#define GS_BTF_FUNCTIONS_H

#include "guest-symbols/types/btf-records.h"

typedef struct GsBtfFunctions GsBtfFunctions;

/** gs_btf_functions_new() - sort the functions of @r (borrowed while the index
 *  is used). */
GsBtfFunctions *gs_btf_functions_new(const GsBtfRecords *r);
void gs_btf_functions_free(GsBtfFunctions *f);
/** gs_btf_functions_find() - (borrowed) return the ids of the @n functions with
 *  that name, in the order of the section; NULL if there is none. */
const uint32_t *gs_btf_functions_find(const GsBtfFunctions *f,
                                      const char *name, unsigned *n);

#endif /* GS_BTF_FUNCTIONS_H */
