/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The records of a .BTF section, by type id. btf.c asks by name.
 *
 *     header   24 bytes, or 32 with the place of the layout table
 *     types    record 1, record 2, ...
 *     layout   (32-byte header) for each kind: how long its records are
 *     names    NUL-terminated, one behind the other
 *
 *     record   { name, info, size or type } and what its kind adds:
 *              info   31        30..24   23..0
 *                     kind_flag kind     vlen: number of members, parameters...
 *
 * A record of a kind that is not known here is skipped by the layout table. If
 * the table does not have the kind, nobody knows where the next record begins:
 * the types before it are used.
 *
 * The bytes are untrusted: all offsets are checked, no id is believed. So
 * libbpf does not read them: before 1.3 it believes both, and any version
 * refuses a section that has a kind which it does not know. Nothing changes
 * once made: any thread, no lock.
 */
#ifndef GS_BTF_RECORDS_H
#define GS_BTF_RECORDS_H

#include "guest-symbols/gs.h"

#include <string.h>

/** enum GsBtfKind - BTF_KIND_* of include/uapi/linux/btf.h */
typedef enum GsBtfKind {
    GS_BTF_VOID,
    GS_BTF_INT,
    GS_BTF_PTR,
    GS_BTF_ARRAY,
    GS_BTF_STRUCT,
    GS_BTF_UNION,
    GS_BTF_ENUM,
    GS_BTF_FWD,
    GS_BTF_TYPEDEF,
    GS_BTF_VOLATILE,
    GS_BTF_CONST,
    GS_BTF_RESTRICT,
    GS_BTF_FUNC,
    GS_BTF_FUNC_PROTO,
    GS_BTF_VAR,
    GS_BTF_DATASEC,
    GS_BTF_FLOAT,
    GS_BTF_DECL_TAG,
    GS_BTF_TYPE_TAG,
    GS_BTF_ENUM64,
    GS_BTF_KINDS,
} GsBtfKind;

/**
 * struct GsBtfShape - what the record of a kind has
 * @refers: its third word is the id of a type
 * @once: words that follow; @each: words of each of its vlen elements
 * @names, @ids: bits of the words (of an element, or of all that follow) that
 *               are names or ids of types
 */
typedef struct GsBtfShape {
    bool refers;
    uint8_t once, each, names, ids;
} GsBtfShape;

extern const GsBtfShape gs_btf_shapes[GS_BTF_KINDS];

#define GS_BTF_MAGIC    0xeb9f
#define GS_BTF_HEADER   24      /* bytes of a header without layout */

/** gs_btf_info() - return the second word of a record. */
static inline uint32_t gs_btf_info(GsBtfKind kind, uint32_t vlen, bool flag)
{
    return (uint32_t)flag << 31 | (uint32_t)kind << 24 | vlen;
}

/**
 * struct GsBtfType - one record
 * @kind: a GsBtfKind, or a number above for kinds that are not known
 * @flag: kind_flag
 * @vlen: elements at @more
 * @name: offset of its name
 * @word: its size in bytes, or the id of a type, as @kind says
 * @more: (borrowed) what follows; all of it is there
 */
typedef struct GsBtfType {
    unsigned kind;
    bool flag;
    uint32_t vlen;
    uint32_t name;
    uint32_t word;
    const uint32_t *more;
} GsBtfType;

/** struct GsBtfMember - one member of a struct or union; @bits is 0 if it is no
 *  bit field by its record (an old one may be by its type) */
typedef struct GsBtfMember {
    uint32_t name;
    uint32_t type;
    uint32_t bit;
    uint32_t bits;
} GsBtfMember;

/**
 * struct GsBtfRecords - a parsed section
 * @data: (owned) its types and names
 * @bytes: of host memory, all names included
 * @types, @names: in @data
 * @at: (owned) for each id of its own: index of its record in words; if it has
 *      no @base, [0] is void
 * @n: ids, with void and those of @base
 * @base: (borrowed, nullable) the types that these continue, see btf-split.c
 * @first, @first_name: id of the first type of its own, offset of the first
 *                      name; 0 without @base
 * @joined: (owned, nullable) @names, if they are not in @data
 */
typedef struct GsBtfRecords GsBtfRecords;
struct GsBtfRecords {
    uint32_t *data;
    size_t bytes;
    uint32_t *types;
    const char *names;
    uint32_t names_len;
    uint32_t *at;
    uint32_t n;
    const GsBtfRecords *base;
    uint32_t first, first_name;
    char *joined;
};

/**
 * gs_btf_header_check() - check a header
 * @used: (out) bytes from the header to the end of types, layout and names;
 *        what is behind them is ignored
 * Returns: false with GS_ERROR_FORMAT.
 */
bool gs_btf_header_check(const uint8_t *data, size_t len, size_t *used,
                         GError **errp);
/** gs_btf_records_init() - copy and index a section. @data: (borrowed for the
 *  call). Returns: false with GS_ERROR_FORMAT, and @r is empty. */
bool gs_btf_records_init(GsBtfRecords *r, const uint8_t *data, size_t len,
                         GError **errp);
/** gs_btf_records_init_split() - the same for types that continue @base
 *  (borrowed while @r is used), which continues no others. */
bool gs_btf_records_init_split(GsBtfRecords *r, const GsBtfRecords *base,
                               const uint8_t *data, size_t len,
                               GError **errp);
/** gs_btf_records_deinit() - free what @r owns. */
void gs_btf_records_deinit(GsBtfRecords *r);

/** gs_btf_type() - read record @id; false for void and for no id. */
bool gs_btf_type(const GsBtfRecords *r, uint32_t id, GsBtfType *out);
/** gs_btf_real() - the same, behind typedefs and qualifiers. @id: (in, out) */
bool gs_btf_real(const GsBtfRecords *r, uint32_t *id, GsBtfType *out);
/** gs_btf_size() - return the bytes of a value of a type; false if it has no
 *  size, or if no value is of this type (variables, sections, tags). */
bool gs_btf_size(const GsBtfRecords *r, uint32_t id, uint32_t *size);

/** gs_btf_name() - (borrowed) return the name at an offset, "" if it is
 *  outside of the names. */
static inline const char *gs_btf_name(const GsBtfRecords *r, uint32_t off)
{
    const GsBtfRecords *in = off < r->first_name ? r->base : r;

    off -= in->first_name;
    return off < in->names_len ? in->names + off : "";
}

/** gs_btf_word() - read word @i of what follows a record. */
static inline uint32_t gs_btf_word(const GsBtfType *t, size_t i)
{
    return GUINT32_FROM_LE(t->more[i]);
}

/** gs_btf_words() - count the words that follow a record of a known kind. */
static inline size_t gs_btf_words(const GsBtfType *t)
{
    const GsBtfShape *shape = &gs_btf_shapes[t->kind];

    return shape->once + (size_t)shape->each * t->vlen;
}

/** gs_btf_nth_member() - return member @i of a struct or union. */
static inline GsBtfMember gs_btf_nth_member(const GsBtfType *t, uint32_t i)
{
    uint32_t at = gs_btf_word(t, i * 3ul + 2);

    return (GsBtfMember) {
        .name = gs_btf_word(t, i * 3ul), .type = gs_btf_word(t, i * 3ul + 1),
        .bit = t->flag ? at & 0xffffff : at, .bits = t->flag ? at >> 24 : 0,
    };
}

/**
 * gs_btf_is_bit_field() - is a member a bit field?
 * @m: (in, out) of a bit field @bit and @bits are set, also of an old one,
 *     which has them in its type
 */
bool gs_btf_is_bit_field(const GsBtfRecords *r, GsBtfMember *m);

static inline bool gs_btf_is_composite(const GsBtfType *t)
{
    return t->kind == GS_BTF_STRUCT || t->kind == GS_BTF_UNION;
}

static inline bool gs_btf_is_enum(const GsBtfType *t)
{
    return t->kind == GS_BTF_ENUM || t->kind == GS_BTF_ENUM64;
}

#endif /* GS_BTF_RECORDS_H */
