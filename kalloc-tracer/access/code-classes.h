/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Code classes: which code of a kernel may touch bytes that no access should
 * touch.
 *
 * The rows of access-code.def, and those of the user's file, name functions.
 * They are looked up once in the symbols of a kernel; the result is a sorted
 * array of address ranges, one a function. All other code is plain: each of its
 * accesses is checked.
 *
 * Constant once made: any thread, no lock. Rows belong to the KtCodeClasses.
 */
#ifndef KT_CODE_CLASSES_H
#define KT_CODE_CLASSES_H

#include "kalloc-tracer/api/kt-access.h"

typedef struct KtAccessRules KtAccessRules;

/**
 * kt_code_classes_new() - Look the functions up in a kernel
 * @k: with its slide; not used later
 * @more: (nullable, borrowed) the user's rows. They take precedence
 *
 * If a module is loaded later, and kt_access_rules_concern() it, make another.
 * Returns: (owned)
 */
KtCodeClasses *kt_code_classes_new(const GsKernel *k,
                                   const KtAccessRules *more);

/** kt_code_classes_at() - (borrowed, nullable) return the row of the code at
 *  @va; NULL: plain. */
const KtCodeRow *kt_code_classes_at(const KtCodeClasses *c, uint64_t va);
/**
 * kt_code_classes_function() - Return the code around @va that has one answer
 * @start, @end: (out) the function; if @va is in plain code, all plain code
 *               from the function before it to the one behind it
 * Returns: false if it is plain code.
 */
bool kt_code_classes_function(const KtCodeClasses *c, uint64_t va,
                              uint64_t *start, uint64_t *end);

/** kt_code_classes_index() - return the number of the function at @va for
 *  kt_code_classes_nth(), -1 in plain code. */
int kt_code_classes_index(const KtCodeClasses *c, uint64_t va);

/* ---- the user's rows: access-rules.c ------------------------------------- */

/*
 * docs/access.md describes the file:
 *
 *     # class     function         what is known of it
 *     allocator   my_pool_alloc
 *     overread    my_hash          past=7
 *     range       my_copy          dst=0 src=1 n=2
 *     plain       full_name_hash
 *
 * The plugin reads it once, at install, in QEMU's main thread. The rules are
 * constant afterwards.
 */

/**
 * kt_access_rules_open() - Read a file of rules
 * @errp: one line: the file, the line's number, what is wrong, and what would
 *        be right
 * Returns: (owned) NULL on error.
 */
KtAccessRules *kt_access_rules_open(const char *path, GError **errp);
/** kt_access_rules_new_from_data() - Read rules from memory (for tests and fuzz
 *  targets). @name: stands for the file in errors. */
KtAccessRules *kt_access_rules_new_from_data(const char *data, size_t len,
                                             const char *name, GError **errp);
void kt_access_rules_free(KtAccessRules *r);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtAccessRules, kt_access_rules_free)

/** kt_access_rules_nth() - (borrowed, nullable) return the @i-th row; NULL
 *  after the last. A row of class KT_CODE_PLAIN cancels a built-in one. */
const KtCodeRow *kt_access_rules_nth(const KtAccessRules *r, unsigned i);

/** kt_access_rules_concern() - Return true if a rule names a function of the
 *  loaded module @module_va. @r: (nullable) */
bool kt_access_rules_concern(const KtAccessRules *r, const GsKernel *k,
                             uint64_t module_va);
/** kt_access_rules_of() - (borrowed, nullable) return the rules that
 *  kt_access_rules_load() read for the tracer. Any thread. */
const KtAccessRules *kt_access_rules_of(KtTracer *t);

#endif /* KT_CODE_CLASSES_H */
