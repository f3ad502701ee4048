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

#endif /* GS_STRUCT_PLACE_H */
