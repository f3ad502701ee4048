/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A part of a struct: its type, and the way to it, see gs-structs.h. Made from
 * a type and a path; does not change once made: any thread.
 */
#ifndef GS_STRUCT_PLACE_H
#define GS_STRUCT_PLACE_H

#include "guest-symbols/api/gs-structs.h"
#include "guest-symbols/types/btf-records.h"

typedef struct GsBtf GsBtf;

/**
 * struct GsStruct - a part of a struct
 * @btf: (owned) the types
 * @at: the way to it; @bit: its first bit there, 0 to 7; @bits: a bit field
 * @id: its type; @name: of the member, "" if the path is empty; @path: (owned)
 *      behind the last pointer; @pointer: (owned) the expressions of those
 * @size: its bytes
 */
struct GsStruct {
    GsBtf *btf;
    GsStructAt at;
    uint8_t bit, bits;
    uint32_t id;
    char *name, *path;
    char *pointer[GS_STRUCT_POINTERS];
    uint32_t size;
    char *type;
    char *source;
};

/**
 * gs_struct_new() - follow a path
 * @btf: (kept)
 * @root: the type where the path begins; @word: its name, for errors
 * @path: "a.b[3].c", or ""
 * @source: what gs_struct_source() returns
 * Returns: (owned) or NULL.
 */
GsStruct *gs_struct_new(GsBtf *btf, uint32_t root, const char *word,
                        const char *path, const char *source, GError **errp);

/* ---- structs by name ----------------------------------------------------- */

/*
 * Structs and unions by name: all definitions of one name, similar names, names
 * that match a pattern. A kernel has some 20 names with several definitions, of
 * which btf.h finds the first. Any thread.
 */

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

#endif /* GS_STRUCT_PLACE_H */
