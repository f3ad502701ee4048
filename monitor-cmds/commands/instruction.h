/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Instructions of the guest's kernel, read from its memory. Called on the
 * thread of the command; no locks. */
#ifndef MC_INSTRUCTION_H
#define MC_INSTRUCTION_H

#include "monitor-cmds/output/format.h"

/**
 * mc_read_instruction() - read the instruction of a frame
 * @frame: exact: its address is an instruction
 * @write: as for gs_arch_disassemble()
 *
 * Returns: false if it is unknown: there is no VM, the memory is not mapped, or
 * the code that was there at the time of the frame is gone.
 */
bool mc_read_instruction(const McOut *out, const McFrame *frame, bool write,
                         GsInstruction *insn);

#endif /* MC_INSTRUCTION_H */
