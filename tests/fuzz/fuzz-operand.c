/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: any bytes as an instruction. Byte 0 selects the architecture,
 * the others are the instruction.
 *
 * Checks: no byte behind the given ones is read, and the answer "no" does not
 * change if there are more bytes.
 */
#include "guest-symbols/gs.h"

#include <stdlib.h>

#define LONGEST 20

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    bool denied = false;
    const GsArch *arch;

    if (!len) {
        return 0;
    }
    arch = gs_arch_nth(data[0] % GS_ARCH__COUNT);
    for (size_t n = 0; n < len && n <= LONGEST; n++) {
        g_autofree uint8_t *insn = g_memdup2(data + 1, n);
        bool touches = gs_arch_may_touch_objects(arch, insn, n);

        if (denied && touches) {
            abort();
        }
        denied = !touches;
    }
    return 0;
}
