/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Derefs: what arguments and results of watched calls point to. The user names
 * expressions; their values are read at the call and are part of its record.
 *
 *     "file->f_inode->i_ino,pathname->name,ret->f_flags"
 *
 * Values of arguments are read at the entry, those of results at the return. An
 * expression is compiled for each function by its types (gs_deref_new()); a
 * function that does not have it, has no value.
 */
#ifndef KT_API_DEREFS_H
#define KT_API_DEREFS_H

#include "kalloc-tracer/api/kt-calls.h"
#include <glib.h>
#include <stdbool.h>

/* Expressions of a request, at most. */
#define KT_DEREFS_MAX 8u
/* Bytes of a value, and of a text that a pointer leads to, at most. */
#define KT_DEREF_VALUE_MAX 128u
#define KT_DEREF_TEXT_MAX 64u

/** kt_derefs_check() - Is @text a list of expressions, joined by ","? Whether a
 *  function has them is another question. @errp: one line, with the column */
bool kt_derefs_check(const char *text, GError **errp);

/** What is known of a value. */
typedef enum KtDerefState {
    KT_DEREF_KNOWN,
    KT_DEREF_NULL,          /* the pointer to a text is NULL */
    KT_DEREF_UNREADABLE,    /* an address on the way is not mapped */
} KtDerefState;

/**
 * struct KtCallDeref - a value in a record, borrowed for the call
 * @expr: how it is printed, by gs_deref_print()
 * @of_result: the expression is about the result
 * @bytes, @len: the value if it is known
 */
typedef struct KtCallDeref {
    const GsDeref *expr;
    bool of_result;
    KtDerefState state;
    const uint8_t *bytes;
    size_t len;
} KtCallDeref;

typedef void (*KtCallDerefFn)(void *opaque, const KtCallDeref *value);
/** kt_call_foreach_deref() - Call @fn for each value in a record of @t, those
 *  of arguments first. */
void kt_call_foreach_deref(KtTracer *t, const KtCallView *view,
                           KtCallDerefFn fn, void *opaque);

/* ---- conditions ---------------------------------------------------------- */
/* Conditions about calls (--if), as far as commands see them. */

/**
 * kt_condition_check() - Check a condition before its function is known
 * @errp: one line: the column, what is wrong, what was expected
 *
 * Each name in lower case is accepted: it may be an argument. Any thread.
 *
 * Returns: false if no function can have this condition.
 */
bool kt_condition_check(const char *text, GError **errp);
/** kt_condition_waits() - (owned, nullable) List the modules that stack(),
 *  caller() and mod() of a condition name and that are not loaded, with ", "
 *  between them; NULL: none. Any thread. */
char *kt_condition_waits(const char *text, const GsKernel *k);

#endif /* KT_API_DEREFS_H */
