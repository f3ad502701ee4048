/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ftrace trampolines, for the walk of unwind.c; called by vCPU threads. */
#ifndef GS_TRAMPOLINES_H
#define GS_TRAMPOLINES_H

#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/orc/orc.h"
#include "guest-symbols/unwind/walk.h"

/**
 * gs_trampoline_rule() - find the rule in an ftrace trampoline
 * @pc: the address looked up, of code without a table
 * @out: (out) the rule
 *
 * A trampoline is a copy of a template at the start of a page, so the rule at
 * an offset in it is the template's rule at the same offset.
 *
 * Returns: false if the page of @pc is no copy of a template.
 */
bool gs_trampoline_rule(const GsKernel *k, GsOrcReader *reader, const Walk *w,
                        uint64_t pc, GsOrcRule *out);

#endif /* GS_TRAMPOLINES_H */
