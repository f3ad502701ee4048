/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Point match: which functions of a kernel does a pattern name?
 *
 * Any thread; nothing is kept between calls.
 */
#ifndef KT_POINT_MATCH_H
#define KT_POINT_MATCH_H

#include "kalloc-tracer/api/kt-calls.h"
#include "guest-symbols/gs.h"

/** struct KtFoundFunction - a function that matches; @name and @module are
 *  owned by the array. @module: NULL for the kernel proper */
typedef struct KtFoundFunction {
    uint64_t va, size, module_va;
    char *name, *module;
} KtFoundFunction;

/** kt_found_functions_new() - (owned, g_array_unref) Make an empty array of
 *  KtFoundFunction. */
GArray *kt_found_functions_new(void);

/**
 * kt_point_match() - Append the functions that a pattern names
 * @pattern: a name or a glob, perhaps with "module:"; or "@" and the name of a
 *           set, see function-sets.h: those of its functions that the kernel
 *           has
 * @found: (in, out) of kt_found_functions_new()
 * @errp: no such function (with similar names) or set, or too many
 *
 * Searches the kernel and the modules that are loaded. If no function has the
 * name, but the compiler made copies of one that has it, these are found.
 *
 * Returns: false on error. No functions and no error: the pattern names a
 * module that is not loaded.
 */
bool kt_point_match(const GsKernel *k, const char *pattern, GArray *found,
                    GError **errp);
/** kt_point_match_module() - Append the functions of one loaded module that
 *  @pattern names. */
void kt_point_match_module(const GsKernel *k, const GsModule *module,
                           const char *pattern, GArray *found);
/** kt_point_is_clone() - Return true if the compiler made this copy of a
 *  function. */
bool kt_point_is_clone(const char *name);

#endif /* KT_POINT_MATCH_H */
