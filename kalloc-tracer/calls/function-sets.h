/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Named sets of functions, "@mutex" in commands: the functions that KEDR knew,
 * in its groups. A function has several names, one for each range of kernels; a
 * caller that knows the kernel's symbols gets the name in that kernel.
 *
 * Read-only tables; any thread, no locks.
 */
#ifndef KT_FUNCTION_SETS_H
#define KT_FUNCTION_SETS_H

#include <stdbool.h>

/**
 * enum KtSetHow - what became of a function of KEDR's lists
 * @KT_SET_KEPT: a function, maybe with another name
 * @KT_SET_INNER: inlined; the function that it calls stands for it
 * @KT_SET_GONE: removed before 5.10; what replaced it stands for it
 */
typedef enum KtSetHow {
    KT_SET_KEPT,
    KT_SET_INNER,
    KT_SET_GONE
} KtSetHow;

/** struct KtFunctionSet - a set; strings are static */
typedef struct KtFunctionSet {
    const char *name;           /* without "@" */
    const char *other_name;     /* (nullable) as KEDR's files name it */
    const char *help;
} KtFunctionSet;

/** struct KtSetFunction - a function of a set; strings are static */
typedef struct KtSetFunction {
    const char *name;           /* as KEDR names it */
    KtSetHow how;
    const char *names;          /* symbols, the best one first */
} KtSetFunction;

/** KtHasFunction - Return true if the kernel has a function @name. */
typedef bool (*KtHasFunction)(void *opaque, const char *name);

/** kt_function_set_nth() - Return set number @i from 0, NULL after the last. */
const KtFunctionSet *kt_function_set_nth(unsigned i);
/** kt_function_set_find() - Return the set @name, with "@" or without; NULL if
 *  there is none. */
const KtFunctionSet *kt_function_set_find(const char *name);
/** kt_function_set_names() - Return (owned) "@common_mm, @ioremap, ..." for
 *  error texts. */
char *kt_function_set_names(void);

/** kt_function_set_function() - Return function number @i from 0 of the set,
 *  NULL after the last. */
const KtSetFunction *kt_function_set_function(const KtFunctionSet *set,
                                              unsigned i);
/** kt_set_function_in() - Return (owned) the name of @f in a kernel, NULL if
 *  the kernel has none of the names. */
char *kt_set_function_in(const KtSetFunction *f, KtHasFunction has,
                         void *opaque);

/**
 * kt_function_set_resolve() - List the functions of a set in a kernel
 * @has: asked for each name
 * @missing: (out, nullable) functions of the set that the kernel does not have
 *
 * Two functions of KEDR's may be one function today: each name is listed once.
 *
 * Returns: (owned, g_strfreev()) names in the order of the table.
 */
char **kt_function_set_resolve(const KtFunctionSet *set, KtHasFunction has,
                               void *opaque, unsigned *missing);

#endif /* KT_FUNCTION_SETS_H */
