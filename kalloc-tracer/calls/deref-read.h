/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
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
 * Writing: on the thread of the vCPU that calls. Reading: any thread.
 */
#ifndef KT_DEREF_READ_H
#define KT_DEREF_READ_H

#include "kalloc-tracer/calls/deref-plan.h"

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

#endif /* KT_DEREF_READ_H */
