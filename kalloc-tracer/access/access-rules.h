/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Access rules: the user's rows for code classes, from a file. docs/access.md
 * describes the format:
 *
 *     # class     function         what is known of it
 *     allocator   my_pool_alloc
 *     overread    my_hash          past=7
 *     range       my_copy          dst=0 src=1 n=2
 *     plain       full_name_hash
 *
 * The plugin reads the file once, at install, in QEMU's main thread. The rules
 * are constant afterwards.
 */
#ifndef KT_ACCESS_RULES_H
#define KT_ACCESS_RULES_H

#include "kalloc-tracer/access/code-classes.h"

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

#endif /* KT_ACCESS_RULES_H */
