/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: any bytes as an instruction. Byte 0 selects the architecture,
 * the others are the instruction.
 *
 * Checks: no byte behind the given ones is read, and the answer "no" does not
 * change if there are more bytes. The text of an instruction fits its room, and
 * has its operand.
 */
#include "tests/fuzz/fuzz.h"
#include "guest-symbols/arch/arch.h"
#include "guest-symbols/gs.h"

#define LONGEST 20

static void check_text(const GsArch *arch, const uint8_t *insn, size_t n)
{
    GsInstruction out;
    bool known = gs_arch_disassemble(arch, 0xffffffff81000000ull, insn, n,
                                     n & 1, &out);

    if (known != (out.len != 0) || out.len > n || !memchr(out.text, 0,
        sizeof(out.text)) || strlen(out.operand) > strlen(out.text)) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    bool denied = false;
    const GsArch *arch;

    if (!len) {
        return 0;
    }
    arch = gs_arch_nth(data[0] % GS_N_ARCHS);
    for (size_t n = 0; n < len && n <= LONGEST; n++) {
        g_autofree uint8_t *insn = g_memdup2(data + 1, n);
        bool touches = arch->may_touch_objects(insn, n);

        if (denied && touches) {
            abort();
        }
        denied = !touches;
        check_text(arch, insn, n);
    }
    return 0;
}
