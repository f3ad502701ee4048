/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events for a tracer and the naive model, of NAIVE_OP_BYTES bytes each. */
#ifndef TEST_NAIVE_BYTES_H
#define TEST_NAIVE_BYTES_H

#include "tests/lib/naive-model.h"

/* Stacks of events have the ids 0 to this. */
#define N_STACKS 6

/** naive_make_va() - return the address of an event. */
uint64_t naive_make_va(const uint8_t *p);
/** naive_make_event() - return an event; @m: its time goes on. */
KtEvent naive_make_event(Naive *m, const uint8_t *p);
/** naive_make_access() - return a KT_EV_ACCESS. */
KtEvent naive_make_access(Naive *m, const uint8_t *p);
/** naive_make_removal() - return a KT_EV_FREE with KT_EVF_REMOVED. */
KtEvent naive_make_removal(Naive *m, const uint8_t *p);

#endif /* TEST_NAIVE_BYTES_H */
