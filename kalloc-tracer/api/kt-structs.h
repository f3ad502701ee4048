/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copies of kernel objects, for `ka struct`. Implemented in objects/. All
 * functions may be called on any thread, and take the tracer's lock themselves.
 * The guest may run meanwhile: the bytes of a copy are then of moments that lie
 * close together.
 */
#ifndef KT_API_STRUCTS_H
#define KT_API_STRUCTS_H

#include "kalloc-tracer/api/kt-objects.h"
#include "kalloc-tracer/api/kt-types.h"

/**
 * kt_struct_follow() - follow the pointers of a path
 * @at: the way, see gs_struct_at()
 * @va: (in, out) in: the object where the path begins; out: the object that the
 *      last pointer leads to, or if false the value that leads to none
 * @failed: (out) if false: the number of that pointer
 *
 * Returns: false if a pointer is NULL or cannot be read.
 */
bool kt_struct_follow(const KtObjects *o, const GsStructAt *at, uint64_t *va,
                      unsigned *failed);

/**
 * struct KtStructCopy - a copy of an object
 * @object: what gs_struct_walk() needs
 * @tail, @tail_len: (borrowed from @object) what follows in the block, if the
 *                   object is at its start
 * @has_block: @block contains its first byte
 * @unreadable: bytes of the object that could not be read
 */
typedef struct KtStructCopy {
    GsObject object;
    const uint8_t *tail;
    size_t tail_len;
    bool has_block;
    KtBlock block;
    size_t unreadable;
} KtStructCopy;

/**
 * kt_struct_copy() - copy an object, page by page
 * @s: its type
 * @va: its address
 *
 * If the address is in a block, the object ends at the last requested byte of
 * the block: before the end of its type, or behind it if an array of unknown
 * length is at the end.
 */
void kt_struct_copy(const KtObjects *o, const GsStruct *s, uint64_t va,
                    KtStructCopy *copy);
void kt_struct_copy_clear(KtStructCopy *copy);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(KtStructCopy, kt_struct_copy_clear)

/* ---- names of objects ---------------------------------------------------- */

#define KT_OBJECT_NAME_MAX 255u

/**
 * kt_object_name() - read the name of an object, such as of a dentry
 * @type: its struct, with or without "struct "
 * @va: its address
 * @name: of KT_OBJECT_NAME_MAX + 1 bytes; untrusted
 *
 * Returns: false if such objects have no name (objects/object-names.def), or it
 * is empty or cannot be read.
 */
bool kt_object_name(const KtObjects *o, const char *type, uint64_t va,
                    char *name);
/**
 * kt_pointer_name() - read the name of the object that a pointer leads to; of a
 *                     pointer to char, the text, if all of it can be printed
 * @ctype: its type in C: "struct dentry *", "const char *"
 * @va: its value
 */
bool kt_pointer_name(const KtObjects *o, const char *ctype, uint64_t va,
                     char *name);

/* ---- members that ka reads ----------------------------------------------- */
/* Which members of the kernel's structs ka reads, and where this kernel has
 * them. The rows are in layout/members.def. */

/**
 * struct KtMemberRow - a member that ka reads
 * @names: "struct.member", with other versions' names behind "|"
 * @purpose: what it is read for
 * @without: what is done in a kernel that lacks it
 * @found: this kernel has it, @at bytes from the begin of the struct
 */
typedef struct KtMemberRow {
    const char *names, *purpose, *without;
    bool found;
    uint32_t at;
} KtMemberRow;

/** kt_member_row() - Get row number @i, from 0. @k: (nullable) Returns: false
 *  after the last row. Any thread. */
bool kt_member_row(const GsKernel *k, unsigned i, KtMemberRow *out);

#endif /* KT_API_STRUCTS_H */
