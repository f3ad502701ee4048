/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tracer's rules once more, as plainly as possible: an array of blocks,
 * searched from end to end. A tracer must agree with it on everything.
 */
#ifndef TEST_NAIVE_MODEL_H
#define TEST_NAIVE_MODEL_H

#include <stddef.h>
#include <stdint.h>

/**
 * naive_run() - make events of any bytes, give them to a tracer and to the
 * naive model, and compare all that both know, now and then and at the end.
 * A difference aborts.
 */
void naive_run(const uint8_t *data, size_t len);

#endif /* TEST_NAIVE_MODEL_H */
