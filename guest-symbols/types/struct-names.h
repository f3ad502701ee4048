/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Structs and unions by name: all definitions of one name, similar names, names
 * that match a pattern. A kernel has some 20 names with several definitions, of
 * which btf.h finds the first. Any thread.
 */
#ifndef GS_STRUCT_NAMES_H
#define GS_STRUCT_NAMES_H

#include "guest-symbols/api/gs-structs.h"
#include "guest-symbols/types/btf-records.h"

typedef struct GsBtf GsBtf;

/** gs_struct_definitions() - (owned) return the ids of the structs and unions
 *  of that name, in the order of the section; of a typedef what it stands for.
 *  Of a module's types those of the module, if it has any. */
GArray *gs_struct_definitions(const GsBtf *btf, const char *name);
/** gs_struct_near() - (owned) return similar names, ", " between them; "" if
 *  there are none. */
char *gs_struct_near(const GsBtf *btf, const char *name);
/** gs_struct_member_near() - (owned) the same for the members of type @id. */
char *gs_struct_member_near(const GsBtf *btf, uint32_t id, const char *name);
/** gs_struct_foreach_name() - call @fn for the names that a pattern matches, in
 *  their order. @own: only those of a module */
void gs_struct_foreach_name(const GsBtf *btf, const char *pattern, bool own,
                            GsStructNameFn fn, void *opaque);

#endif /* GS_STRUCT_NAMES_H */
