/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Deref plan: the expressions of a request (--deref), compiled for one
 * function; the plans of one boot; the values in call records. QEMU-free.
 *
 *     "file->f_mode,ret->f_pos"  +  prototype  -->  KtDerefPlan
 *
 * Any thread; a plan does not change.
 */
#ifndef KT_DEREF_PLAN_H
#define KT_DEREF_PLAN_H

#include "guest-symbols/base/bytes.h"
#include "kalloc-tracer/api/kt-derefs.h"
#include "kalloc-tracer/conditions/call-condition.h"

/** struct KtDerefList - expressions. @text: joined by ","; @expr: (owned, NULL
 *  at the end) */
typedef struct KtDerefList {
    char *text;
    char **expr;
} KtDerefList;

/** kt_deref_list_new() - (owned) Split and check @text; NULL on error. */
KtDerefList *kt_deref_list_new(const char *text, GError **errp);
void kt_deref_list_free(KtDerefList *l);

/**
 * kt_deref_list_check() - Does each expression have a value in at least one of
 * the functions?
 * @k: (nullable) their kernel; NULL: there are no types yet, that is no error
 * @errp: one line
 *
 * Returns: true if it does, or if there may be more functions.
 */
bool kt_deref_list_check(const KtDerefList *l, const KtCallFunctions *f,
                         const GsKernel *k, GError **errp);

/**
 * struct KtDerefPlan - expressions of a function
 * @id: its number in a KtDerefTable
 * @n, @n_entry: expressions, and how many of them are about arguments
 * @at: (owned) those about arguments first
 * @packed: (owned, nullable) what kt_deref_plan_unpack() reads
 */
typedef struct KtDerefPlan {
    uint16_t id;
    uint8_t n, n_entry;
    GsDeref *at[KT_DEREFS_MAX];
    GBytes *packed;
} KtDerefPlan;

/** kt_deref_plan_new() - (owned, nullable) Compile those of the expressions
 *  that the function has; NULL if that is none. @proto: (kept) */
KtDerefPlan *kt_deref_plan_new(const KtDerefList *l, GsPrototype *proto);
/** kt_deref_plan_unpack() - (owned, nullable) Make the plan that was packed; it
 *  can print values, but not read them. The bytes are untrusted: NULL if they
 *  make no sense. */
KtDerefPlan *kt_deref_plan_unpack(GsBytes packed);
void kt_deref_plan_free(KtDerefPlan *p);

/* ---- the plans of a boot ------------------------------------------------- *
 *
 * Call records have the numbers of plans. A plan lives until the boot ends,
 * also if its request is deleted. The plans of a journal have the numbers that
 * the journal says.
 *
 * Any thread; the table has a lock, which is taken after that of the call
 * points. */

typedef struct KtDerefTable KtDerefTable;

/** kt_deref_table_new() - (owned) Make an empty table. @budget: (borrowed,
 *  nullable) is charged for plans. */
KtDerefTable *kt_deref_table_new(KtBudget *budget);
void kt_deref_table_free(KtDerefTable *t);
/** kt_deref_table_clear() - Free all plans: the boot ends. No vCPU executes. */
void kt_deref_table_clear(KtDerefTable *t);

/** kt_deref_table_get() - (borrowed, nullable) Return the plan of a list and a
 *  function, which is made at the first time; NULL if the function has none of
 *  the expressions, or all numbers are in use. @proto: (kept) of @point */
const KtDerefPlan *kt_deref_table_get(KtDerefTable *t, const KtDerefList *l,
                                      KtPointId point, GsPrototype *proto);
/** kt_deref_table_find() - (borrowed, nullable) Return plan @id. */
const KtDerefPlan *kt_deref_table_find(KtDerefTable *t, uint16_t id);
/** kt_deref_table_define() - Set plan @id, for those of a journal, unless there
 *  is one. @packed: (copied, untrusted). Nothing happens if the plans have too
 *  many bytes. */
void kt_deref_table_define(KtDerefTable *t, uint16_t id, GsBytes packed);

/* ---- values in records --------------------------------------------------- *
 *
 * Values of --deref in a call record, both directions. They are in the bytes
 * behind the arguments:
 *
 *     number of the plan (2, little-endian); of each expression in the order
 *     of the plan: length (1), the value
 *
 * The length NULL_LEN stands for a pointer to a text that is NULL,
 * UNREADABLE_LEN for a value that could not be read. A text ends with its NUL,
 * or is cut at KT_DEREF_TEXT_MAX. Values of the result follow at the return.
 *
 * Writing: on the thread of the vCPU that calls. Reading: any thread. */

/**
 * kt_deref_read_entry() - Read the values of arguments
 * @extra: (out) of KT_CALL_EXTRA_MAX bytes; @n_extra: (out) how many are used
 *
 * Returns: how many values could not be read.
 */
unsigned kt_deref_read_entry(const KtDerefPlan *p, const KtCallFacts *f,
                             uint8_t *extra, uint16_t *n_extra);
/** kt_deref_read_return() - Append the values of the result, unless the entry
 *  had another plan. Returns: how many values could not be read. */
unsigned kt_deref_read_return(const KtDerefPlan *p, const KtCallFacts *f,
                              uint8_t *extra, uint16_t *n_extra);

/** kt_deref_plan_of() - Return the number of the plan of a record, 0: the
 *  record has no values. */
uint16_t kt_deref_plan_of(const KtCallView *v);
/** kt_deref_foreach() - Call @fn for each value in a record of plan @p. The
 *  record is untrusted: values that it is too short for are left out. */
void kt_deref_foreach(const KtDerefPlan *p, const KtCallView *v,
                      KtCallDerefFn fn, void *opaque);

#endif /* KT_DEREF_PLAN_H */
