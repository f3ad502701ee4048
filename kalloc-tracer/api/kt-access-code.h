/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Functions of a kernel whose accesses are judged otherwise than those of plain
 * code: `ka access rules`. The rows are in access/access-code.def, and in the
 * user's file.
 *
 * A KtCodeClasses is constant once made: any thread, no lock. Rows belong to
 * it.
 */
#ifndef KT_API_ACCESS_CODE_H
#define KT_API_ACCESS_CODE_H

#include "kalloc-tracer/api/kt-tracer.h"

/**
 * enum KtCodeClass - what is known of a function's accesses
 * @KT_CODE_PLAIN: they are checked
 * @KT_CODE_ALLOCATOR: they are not checked, and explain what it calls
 * @KT_CODE_RANGE: one check at the entry, by arguments; none in the function
 * @KT_CODE_LEAF: they are checked; the caller is judged in its place
 * @KT_CODE_OVERREAD: loads may begin or end in bad bytes
 * @KT_CODE_LOADS_OK: loads may touch anything
 */
typedef enum KtCodeClass {
    KT_CODE_PLAIN, KT_CODE_ALLOCATOR, KT_CODE_RANGE, KT_CODE_LEAF,
    KT_CODE_OVERREAD, KT_CODE_LOADS_OK, KT_CODE__COUNT
} KtCodeClass;

/** KT_NO_ARG - instead of the number of an argument: there is none. */
#define KT_NO_ARG (-1)
/** KT_PAGE - as a unit: the size of the kernel's pages. */
#define KT_PAGE 0xffffffffu

/**
 * struct KtCodeRow - what is known of a function, or of some
 * @name: its name; "*" stands for any characters
 * @max_past, @max_before: OVERREAD: so many bad bytes at the end and at the
 *                         start of a load are allowed
 * @dst, @src: RANGE: numbers of the arguments that are written and read, or
 *             KT_NO_ARG
 * @n: RANGE: number of the argument with the size, or KT_NO_ARG
 * @unit: RANGE: bytes that @n counts; without @n, the size itself
 *
 * A RANGE row without @dst and @src is a part of another such function.
 */
typedef struct KtCodeRow {
    const char *name;
    KtCodeClass class;
    unsigned max_past, max_before;
    int dst, src, n;
    uint32_t unit;
} KtCodeRow;

/** struct KtCodeFunction - a function of the kernel that has a row */
typedef struct KtCodeFunction {
    uint64_t start, end;
    const KtCodeRow *row;
} KtCodeFunction;

typedef struct KtCodeClasses KtCodeClasses;

/** kt_code_class_name() - (static) return the word for a class: "allocator",
 *  "loads-ok", ... */
const char *kt_code_class_name(KtCodeClass class);

/**
 * kt_access_rules_load() - Add the rules of a file to the built-in rows
 * @errp: one line: the file, the line's number, what is wrong, and what would
 *        be right
 *
 * Call at most once, before the tracer is used by other threads. Returns: false
 * if the file cannot be used; nothing is added then.
 */
bool kt_access_rules_load(KtTracer *t, const char *path, GError **errp);

/** kt_access_code() - (owned) Look the functions up in a kernel, with the rules
 *  of kt_access_rules_load(). Takes some milliseconds. */
KtCodeClasses *kt_access_code(KtTracer *t, const GsKernel *k);
void kt_code_classes_free(KtCodeClasses *c);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtCodeClasses, kt_code_classes_free)

/** kt_code_classes_nth() - (borrowed, nullable) return the @i-th function, by
 *  address; NULL after the last. */
const KtCodeFunction *kt_code_classes_nth(const KtCodeClasses *c, unsigned i);
/** kt_code_classes_missing() - (borrowed, nullable) return the names of the
 *  @i-th function that a kernel should have and this one has not: "a" or
 *  "a or b"; NULL after the last. */
const char *kt_code_classes_missing(const KtCodeClasses *c, unsigned i);
/** kt_code_classes_n_missing() - return the number of these. */
unsigned kt_code_classes_n_missing(const KtCodeClasses *c);
/** kt_code_classes_unused() - (borrowed, nullable) return the @i-th of the
 *  user's names that the kernel does not have; NULL after the last. */
const char *kt_code_classes_unused(const KtCodeClasses *c, unsigned i);

#endif /* KT_API_ACCESS_CODE_H */
