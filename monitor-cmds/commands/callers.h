/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Callers of many blocks, counted: what a listing prints instead of thousands
 * of lines. For the listings; one thread.
 */
#ifndef MC_CALLERS_H
#define MC_CALLERS_H

#include "monitor-cmds/output/format.h"

typedef struct McCallers McCallers;

McCallers *mc_callers_new(void);
void mc_callers_free(McCallers *c);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(McCallers, mc_callers_free)

/** mc_callers_add() - count @b for the caller of @stack, its leaf frame */
void mc_callers_add(McCallers *c, KtTracer *t, KtStackId stack,
                    const KtBlock *b);
/** mc_callers_blocks() - return how many blocks were counted */
uint64_t mc_callers_blocks(const McCallers *c);
/** mc_callers_print() - print, as text, the few callers of most of the blocks,
 *  and how many blocks others have */
void mc_callers_print(McOut *out, const McCallers *c);

#endif /* MC_CALLERS_H */
