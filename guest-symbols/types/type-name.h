/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of types as C writes them: "const char *", "struct page *[4]". Any
 * thread.
 */
#ifndef GS_TYPE_NAME_H
#define GS_TYPE_NAME_H

#include "guest-symbols/types/btf-records.h"

#define GS_TYPE_NAME_MAX 128    /* bytes, with the NUL */

/**
 * gs_type_declare() - append the declaration of @name with type @id: "char
 * buf[16]"
 * @name: (nullable) NULL: only the type
 *
 * The parameters of functions that a pointer leads to are not printed: "int
 * (*fn)(...)". Text that is not printable becomes '?'; the type is cut at
 * GS_TYPE_NAME_MAX. A chain of types that does not end becomes "?".
 */
void gs_type_declare(GString *to, const GsBtfRecords *r, uint32_t id,
                     const char *name);

#endif /* GS_TYPE_NAME_H */
