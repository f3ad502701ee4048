/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Deref plan: the expressions of a request (--deref), compiled for one
 * function. QEMU-free.
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

#endif /* KT_DEREF_PLAN_H */
