/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Structs and unions: where their members are, and the values of a copied
 * object. An expression names the struct, and a part of it:
 *
 *     file                        a struct or union, or a typedef of one
 *     console:2                   the second of several of that name
 *     ext4:ext4_inode_info        in the types of a module
 *     task_struct.se.run_node     a member
 *     task_struct.files.fdt       "." also goes through a pointer
 *     fdtable.fd[3]               an element of an array, or behind a pointer
 *
 * Nothing here reads guest memory: the caller follows pointers and copies the
 * object. Types and bytes are untrusted: a walk has at most GS_STRUCT_MEMBERS
 * rows. Any thread, but one thread at a time for each GsStruct.
 */
#ifndef GS_API_STRUCTS_H
#define GS_API_STRUCTS_H

#include "guest-symbols/api/gs-kernel.h"

typedef struct GsStruct GsStruct;

#define GS_STRUCT_POINTERS  8
#define GS_STRUCT_MEMBERS   4096
/* Bytes of an object that are copied, at most. */
#define GS_STRUCT_BYTES     (64u << 10)
/* Reads of an object are by pages of this size, or larger ones. */
#define GS_STRUCT_PAGE      4096u

/**
 * struct GsStructAt - the way from an object to the part that is meant
 * @n: how many pointers are read
 * @pointer: where each of them is: the first one in the object, each other one
 *           in what the one before leads to
 * @offset: where the part begins in the last object
 */
typedef struct GsStructAt {
    unsigned n;
    uint32_t pointer[GS_STRUCT_POINTERS];
    uint32_t offset;
} GsStructAt;

/**
 * gs_kernel_struct() - find what an expression names
 * @errp: an error text of one line. If a name is unknown, the text lists
 *        similar names
 *
 * Without the name of a module, the kernel's types come first, then those of
 * the loaded modules. Returns: (owned) or NULL.
 */
GsStruct *gs_kernel_struct(const GsKernel *k, const char *expr,
                           GError **errp);
void gs_struct_free(GsStruct *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GsStruct, gs_struct_free)

/** gs_struct_at() - (borrowed) return the way to the part. */
const GsStructAt *gs_struct_at(const GsStruct *s);
/** gs_struct_pointer() - (borrowed) return the expression of pointer @i of that
 *  way: "task_struct.files". */
const char *gs_struct_pointer(const GsStruct *s, unsigned i);
/** gs_struct_type() - (borrowed) return its type in C; printable. */
const char *gs_struct_type(const GsStruct *s);
/** gs_struct_source() - (borrowed) say where the types are from: "BTF", "file"
 *  or "BTF of ext4". */
const char *gs_struct_source(const GsStruct *s);
/** gs_struct_size() - return its bytes; of a bit field those that it is in. */
uint32_t gs_struct_size(const GsStruct *s);
/** gs_struct_is_open() - does it end with an array of unknown length? */
bool gs_struct_is_open(const GsStruct *s);

/**
 * struct GsObject - a copy of the part
 * @bytes, @len: (borrowed) at most GS_STRUCT_BYTES. If this is less than the
 *               type has, the object ends before; if it is more, an array at
 *               the end has elements
 * @va: its address
 * @missing: bit i: the bytes on its i-th page could not be read
 */
typedef struct GsObject {
    const uint8_t *bytes;
    size_t len;
    uint64_t va;
    uint32_t missing;
} GsObject;

/** enum GsMemberKind - GS_MEMBER_OPEN: a struct, union or array of them, whose
 *  members follow up to GS_MEMBER_CLOSE. Only definitions have these two. */
typedef enum GsMemberKind {
    GS_MEMBER_VALUE,
    GS_MEMBER_OPEN,
    GS_MEMBER_CLOSE,
} GsMemberKind;

/**
 * struct GsMember - a member; all borrowed for the call
 * @path: "se.run_node", "node[3].next", "node[1..1023]": equal elements
 * @name: its last name, "" if it has none
 * @type: in C; with @declare of the plan the declaration: "char comm[16]"
 * @offset: in the last object, see GsStructAt
 * @bit, @bits: a bit field of so many bits, from this bit of the byte @offset
 *              on; 0, 0: none
 * @size: bytes of the type; of equal elements those of one
 * @overlaps: it is in a union
 * @level: how many structs without a name it is in
 * @value: its text, NULL in a definition
 * @known: its bytes could be read
 * @has_number, @number: the value of a number, with its sign extended
 * @n_words, @word: words that may be addresses
 */
typedef struct GsMember {
    GsMemberKind kind;
    const char *path, *name, *type;
    uint32_t offset;
    uint8_t bit, bits;
    uint32_t size;
    bool overlaps;
    unsigned level;
    const char *value;
    bool known;
    bool has_number;
    uint64_t number;
    unsigned n_words;
    uint64_t word[2];
} GsMember;

/**
 * struct GsStructPlan - what to print
 * @depth: levels of members that have members; 0: all
 * @object: (nullable) NULL: the definition
 * @zeros: also values that are zero
 * @hex: numbers in hex
 * @declare: see @type of struct GsMember
 */
typedef struct GsStructPlan {
    unsigned depth;
    const GsObject *object;
    bool zeros, hex, declare;
} GsStructPlan;

/** struct GsStructSum - what a walk found. @zeros: left out; @unknown: shown
 *  without a value; @behind: not shown, the object ends before; @cut: there are
 *  more than GS_STRUCT_MEMBERS */
typedef struct GsStructSum {
    unsigned shown, zeros, unknown, behind;
    bool cut;
} GsStructSum;

typedef void (*GsMemberFn)(const GsMember *m, void *opaque);
/** gs_struct_walk() - call @fn for the members, in the order of their
 *  declaration. */
GsStructSum gs_struct_walk(const GsStruct *s, const GsStructPlan *plan,
                           GsMemberFn fn, void *opaque);

/** gs_kernel_n_types() - count the types of the kernel proper. */
unsigned gs_kernel_n_types(const GsKernel *k);
/** gs_kernel_n_typed_modules() - count the loaded modules that have types. */
unsigned gs_kernel_n_typed_modules(const GsKernel *k);

/** struct GsStructName - a name of structs or unions; @n: how many */
typedef struct GsStructName {
    const char *name;
    uint32_t size;
    unsigned n;
} GsStructName;
typedef void (*GsStructNameFn)(const GsStructName *name, void *opaque);
/** gs_kernel_struct_names() - call @fn for the structs and unions that a
 *  pattern with * and ? matches, by name. @pattern: "M:PATTERN" for those of a
 *  module. Returns: false if there are no types: @errp says why. */
bool gs_kernel_struct_names(const GsKernel *k, const char *pattern,
                            GsStructNameFn fn, void *opaque, GError **errp);

#endif /* GS_API_STRUCTS_H */
