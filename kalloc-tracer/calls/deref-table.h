/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Deref table: the plans of one boot, and their numbers, which call records
 * have. A plan lives until the boot ends, also if its request is deleted. The
 * plans of a journal have the numbers that the journal says. QEMU-free.
 *
 * Any thread; the table has a lock, which is taken after that of the call
 * points.
 */
#ifndef KT_DEREF_TABLE_H
#define KT_DEREF_TABLE_H

#include "kalloc-tracer/base/budget.h"
#include "kalloc-tracer/calls/deref-plan.h"

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

#endif /* KT_DEREF_TABLE_H */
