/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copied values as text by their types, see gs-values.h for the forms. A value
 * with parts is read by a GsTypeWalk, so nothing recurses. Any thread.
 */
#ifndef GS_VALUE_H
#define GS_VALUE_H

#include "guest-symbols/api/gs-prototypes.h"
#include "guest-symbols/api/gs-values.h"

typedef struct GsBtf GsBtf;

/**
 * struct GsLeaf - a value without parts
 * @type: its type; @name: (borrowed) of the member or parameter, "" if unknown
 * @bit: where it begins in the copy; @bits: a bit field, else 0
 * @size: its bytes
 * @names: what numbers have names
 * @hex: numbers in hex
 */
typedef struct GsLeaf {
    uint32_t type;
    const char *name;
    uint64_t bit;
    uint32_t bits;
    uint32_t size;
    GsNumberNames names;
    bool hex;
} GsLeaf;

/** gs_value_leaf() - return the leaf of a parameter. @name: its name */
static inline GsLeaf gs_value_leaf(const GsParam *p, const char *name)
{
    return (GsLeaf) {
        .type = p->id, .name = name, .bit = p->bit, .bits = p->bits,
        .size = p->size, .names = p->names,
    };
}

/** gs_value_print_leaf() - append a leaf of a copy of @len bytes. */
void gs_value_print_leaf(GString *to, const GsBtf *btf, const GsLeaf *leaf,
                         const uint8_t *bytes, size_t len);
/** gs_value_number() - read a leaf of a copy of @len bytes: a number, enum,
 *  bool or pointer of at most 64 bits. Its sign is extended. Returns: false if
 *  it is something else, or is not there. */
bool gs_value_number(const GsBtf *btf, const GsLeaf *leaf,
                     const uint8_t *bytes, size_t len, uint64_t *value);
/** gs_value_print() - append a value of any type, which @bytes begin with. */
void gs_value_print(GString *to, const GsBtf *btf, const GsLeaf *value,
                    const uint8_t *bytes, size_t len);
/** gs_value_is_char() - is it the type char? */
bool gs_value_is_char(const GsBtf *btf, uint32_t id);
/** gs_value_is_signed() - may a value of the type, of kind @kind, be
 *  negative? */
bool gs_value_is_signed(const GsBtf *btf, uint32_t id, GsValueKind kind);
/** gs_value_kind() - return how a value of a type is read. */
GsValueKind gs_value_kind(const GsBtf *btf, uint32_t id);
/** gs_value_names() - return what numbers of a type have names: of gfp_t. */
GsNumberNames gs_value_names(const GsBtf *btf, uint32_t id);

#endif /* GS_VALUE_H */
