/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The frames at all instructions of a function of riscv64, see riscv64-flow.c.
 * One thread at a time.
 */
#ifndef GS_RISCV64_FLOW_H
#define GS_RISCV64_FLOW_H

#include "guest-symbols/arch/riscv64/riscv64-frame.h"

#include <glib.h>

/** struct GsRvFlow - a function whose paths are followed */
typedef struct GsRvFlow GsRvFlow;

/**
 * gs_rv_flow_new() - follow all paths through a function
 * @bytes: (borrowed) its instructions, @len bytes
 * @first: the frame at its first instruction
 *
 * Returns: (owned) NULL if it has more kinds of frames than any function needs.
 */
GsRvFlow *gs_rv_flow_new(GsRvCode code, const GsRvFrame *first,
                         const uint8_t *bytes, size_t len);
void gs_rv_flow_free(GsRvFlow *f);

/** gs_rv_flow_at() - return the frame at the instruction at byte @off. Returns:
 *  (borrowed) NULL if none begins there. */
const GsRvFrame *gs_rv_flow_at(const GsRvFlow *f, size_t off);
/** gs_rv_flow_end() - return the frame behind the last instruction. Returns:
 *  (borrowed) NULL if no path without a call leads there. */
const GsRvFrame *gs_rv_flow_end(const GsRvFlow *f);
/** gs_rv_flow_changes_stack() - does it load the address of another stack? */
bool gs_rv_flow_changes_stack(const GsRvFlow *f);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(GsRvFlow, gs_rv_flow_free)

#endif /* GS_RISCV64_FLOW_H */
