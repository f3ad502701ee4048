/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Values of arguments, results and members as text, in the style of ftrace: one
 * line, printable ASCII, of at most GS_VALUE_TEXT_MAX bytes.
 *
 *     signed, unsigned   -1   4096         unsigned long, flags, masks and
 *                                          addresses: 0xffff888004a1c000
 *     errno, capability  -12 ENOMEM   21 CAP_SYS_ADMIN
 *     gfp_t              0xdc0 GFP_KERNEL|ZERO
 *     enum               MIGRATE_MOVABLE(1)
 *     bool               true
 *     pointer            0xffff888004a1c000, an error pointer -ENOMEM
 *     char array         "name"
 *     struct, array      {.next=0x0,.prev=0x0}   {1,2,3}
 *     not copied         ?
 *
 * The bytes are copies: nothing here reads guest memory. Types and bytes are
 * untrusted. Any thread.
 */
#ifndef GS_API_VALUES_H
#define GS_API_VALUES_H

#include "guest-symbols/api/gs-prototypes.h"

#define GS_VALUE_TEXT_MAX 256

/**
 * gs_param_print() - append a value
 * @p: the prototype that @param is from
 * @bytes, @len: copy of the value; what is missing of it is printed as "?"
 */
void gs_param_print(GString *to, const GsPrototype *p, const GsParam *param,
                    const void *bytes, size_t len);
/**
 * gs_value_print_text() - append a string in quotes, escaped
 * @bytes, @len: copy of it; the string ends at the first NUL; if there is none,
 *               "..." is added behind the quotes
 */
void gs_value_print_text(GString *to, const void *bytes, size_t len);
/** gs_number_name() - (static, nullable) return the name of an error number
 *  ("ENOMEM" for 12) or of a capability. */
const char *gs_number_name(GsNumberNames names, int64_t number);
/** gs_number_find() - find the error number or the capability of a name.
 *  Returns: false if there is none. */
bool gs_number_find(const char *name, int64_t *number);
/** gs_number_nth() - (static) return name @i of the error numbers and
 *  capabilities, from 0; NULL behind the last. */
const char *gs_number_nth(unsigned i);

/* ---- members that an argument leads to ---------------------------------- */

#define GS_DEREF_MAX 4
/* Bytes of an expression, at most. */
#define GS_DEREF_EXPR_MAX 128
/* GsDerefAt.param of what a result leads to. */
#define GS_DEREF_RESULT UINT32_MAX

typedef struct GsDeref GsDeref;

/**
 * struct GsDerefAt - where the bytes of a dereference are
 * @param: index of the argument, or GS_DEREF_RESULT
 * @n: how many pointers are followed, the argument included; 0: the value is
 *     the argument itself, a pointer to a text
 * @offset: what is added to each of them
 *
 * The address of the value of a->b->c: read the pointer at
 * argument + @offset[0], and add @offset[1].
 */
typedef struct GsDerefAt {
    uint32_t param;
    unsigned n;
    uint32_t offset[GS_DEREF_MAX];
} GsDerefAt;

/**
 * gs_deref_new() - compile an expression about an argument, or the result
 * @p: (kept) the prototype
 * @expr: "page->flags", "dentry->d_name.name", "file->f_inode->i_ino", "*len",
 *        "ret->f_flags"; of a pointer to a text the text: "s", or "*s". A
 *        parameter of the name "ret" comes before the result
 * @errp: one line: what is wrong, and what would be right
 *
 * Returns: (owned) or NULL.
 */
GsDeref *gs_deref_new(GsPrototype *p, const char *expr, GError **errp);
void gs_deref_free(GsDeref *d);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GsDeref, gs_deref_free)
/** gs_deref_at() - (borrowed) return where its value is. */
const GsDerefAt *gs_deref_at(const GsDeref *d);
/** gs_deref_value() - (borrowed) return its value: @name is the expression,
 *  "*s" for "s"; @size the bytes to copy; there is no place. With @is_text the
 *  value is a pointer to char or unsigned char, and the text that it points to
 *  is meant. */
const GsParam *gs_deref_value(const GsDeref *d);
/** gs_deref_print() - append a value. @bytes, @len: a copy of the value; for a
 *  text, a copy of its characters, not of the pointer to it */
void gs_deref_print(GString *to, const GsDeref *d, const void *bytes,
                    size_t len);

/** gs_deref_pack() - append what prints the same values elsewhere. Returns:
 *  false if that has more than GS_DEREF_PACKED_MAX bytes; then nothing is
 *  appended. */
bool gs_deref_pack(const GsDeref *d, GByteArray *to);
#define GS_DEREF_PACKED_MAX GS_PROTOTYPE_MAX
/** gs_deref_unpack() - (owned, nullable) make what gs_deref_pack() stored; only
 *  @param of its place is known, as 0 or GS_DEREF_RESULT. The bytes are
 *  untrusted: NULL if they make no sense. */
GsDeref *gs_deref_unpack(const void *bytes, size_t len);

#endif /* GS_API_VALUES_H */
