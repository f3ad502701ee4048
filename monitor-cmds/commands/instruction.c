/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Instructions of the guest's kernel: see commands.h. */
#include "monitor-cmds/commands/commands.h"


/* Return true if the code of the frame is still there: it is in the kernel's
 * image, or in a module that has not been unloaded since. */
static bool is_there(const GsKernel *k, const McFrame *frame)
{
    GsModule module;
    GsSymbol sym;

    if (!gs_kernel_module_at(k, frame->pc, &module)) {
        return gs_kernel_symbolize(k, frame->pc, &sym);
    }
    return module.live && gs_kernel_load_at(k, frame->pc, frame->era) ==
           gs_kernel_load_at(k, frame->pc, GS_ERA_NOW);
}

/* Read up to @len bytes; an instruction may be the last one that is mapped.
 * Return how many. */
static size_t read_code(const McOut *out, uint64_t va, uint8_t *to, size_t len)
{
    while (len && !mc_read_guest(out, va, to, len)) {
        len--;
    }
    return len;
}

bool mc_read_instruction(const McOut *out, const McFrame *frame, bool write,
                         GsInstruction *insn)
{
    const GsKernel *k = out->ctx->kernel_found ? mc_symbols(out->ctx) : NULL;
    uint8_t bytes[GS_INSTRUCTION_MAX];
    size_t len = 0;

    if (k && out->ctx->vm && frame->pc && is_there(k, frame)) {
        len = read_code(out, frame->pc, bytes, sizeof(bytes));
    }
    return len && gs_arch_disassemble(gs_kernel_arch(k), frame->pc, bytes, len,
                                      write, insn);
}
