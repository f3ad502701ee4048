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

#include "guest-symbols/gs.h"

typedef struct KtAccessRules KtAccessRules;

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
 * kt_code_classes_new() - Look the functions up in a kernel
 * @k: with its slide; not used later
 * @more: (nullable, borrowed) the user's rows. They take precedence
 *
 * If code is loaded later, and @more names functions of modules, make another.
 * Returns: (owned)
 */
KtCodeClasses *kt_code_classes_new(const GsKernel *k,
                                   const KtAccessRules *more);
void kt_code_classes_free(KtCodeClasses *c);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtCodeClasses, kt_code_classes_free)

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

/** kt_code_classes_nth() - (borrowed, nullable) return the @i-th function, by
 *  address; NULL after the last. */
const KtCodeFunction *kt_code_classes_nth(const KtCodeClasses *c, unsigned i);
/** kt_code_classes_index() - return the number of the function at @va for
 *  kt_code_classes_nth(), -1 in plain code. */
int kt_code_classes_index(const KtCodeClasses *c, uint64_t va);
/** kt_code_classes_missing() - (borrowed, nullable) return the names of the
 *  @i-th function that a kernel should have and this one has not: "a" or
 *  "a or b"; NULL after the last. */
const char *kt_code_classes_missing(const KtCodeClasses *c, unsigned i);
/** kt_code_classes_unused() - (borrowed, nullable) return the @i-th of the
 *  user's names that the kernel does not have; NULL after the last. */
const char *kt_code_classes_unused(const KtCodeClasses *c, unsigned i);

#endif /* KT_CODE_CLASSES_H */
