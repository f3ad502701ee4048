/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fuzz target: any bytes as events. Tracer and naive model must agree. */
#include "tests/fuzz/fuzz.h"
#include "tests/lib/naive-run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    naive_run(data, size, NAIVE_EVERY);
    return 0;
}
