/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes as events, for a tracer and for the naive model at once. */
#ifndef TEST_NAIVE_RUN_H
#define TEST_NAIVE_RUN_H

#include <stddef.h>
#include <stdint.h>

/* Bytes that make an event; what is left over at the end makes none. */
#define NAIVE_OP_BYTES  8
/* Events between two comparisons, where time does not matter. */
#define NAIVE_EVERY     64

/**
 * naive_run() - make events of any bytes, give them to a tracer and to the
 * naive model, and compare all that both know, after each @every events and
 * at the end. A difference aborts.
 *
 * Returns: how many events that were. Single-threaded.
 */
size_t naive_run(const uint8_t *data, size_t len, unsigned every);

#endif /* TEST_NAIVE_RUN_H */
