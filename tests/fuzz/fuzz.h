/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The entry of a fuzz target, and what each target needs. */
#ifndef TEST_FUZZ_H
#define TEST_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** LLVMFuzzerTestOneInput() - run the target on one input. Returns: 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif /* TEST_FUZZ_H */
