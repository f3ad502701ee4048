/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Run any bytes as events in a tracer and in the naive model. */
#ifndef TEST_NAIVE_RUN_H
#define TEST_NAIVE_RUN_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of an event. Fewer bytes at the end are ignored. */
#define NAIVE_OP_BYTES  8
/* Events between two comparisons, if time does not matter. */
#define NAIVE_EVERY     64

/**
 * naive_run() - make events of any bytes, apply them to a tracer and to the
 * naive model, and compare the two after each @every events and at the end. A
 * difference aborts. Single-threaded.
 *
 * Returns: the number of events.
 */
size_t naive_run(const uint8_t *data, size_t len, unsigned every);

#endif /* TEST_NAIVE_RUN_H */
