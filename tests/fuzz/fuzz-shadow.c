/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fuzz target: any bytes as operations on a shadow. Shadow and naive shadow
 * must agree. */
#include "tests/fuzz/fuzz.h"
#include "tests/lib/naive-shadow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    naive_shadow_run(data, size);
    return 0;
}
