/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes as events, for a tracer and for the naive model at once. */
#ifndef TEST_NAIVE_RUN_H
#define TEST_NAIVE_RUN_H

#include <stddef.h>
#include <stdint.h>

/**
 * naive_run() - make events of any bytes, give them to a tracer and to the
 * naive model, and compare all that both know, now and then and at the end.
 * A difference aborts.
 */
void naive_run(const uint8_t *data, size_t len);

#endif /* TEST_NAIVE_RUN_H */
