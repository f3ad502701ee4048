/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hook names in a journal: the hook table of the ka that wrote it, since ids in
 * events are rows of that table. For the replay, one thread.
 */
#ifndef KT_HOOK_NAMES_H
#define KT_HOOK_NAMES_H

#include "guest-symbols/base/bytes.h"
#include "kalloc-tracer/hooks/hook-table.h"

/**
 * kt_hook_names_read() - Set @table to the names in a journal's frame
 * @in: the frame
 *
 * @table keeps its rows if the frame has the same names. Otherwise names that
 * were borrowed from it become invalid.
 *
 * Returns: false if the frame is malformed.
 */
bool kt_hook_names_read(KtHookTable *table, GsBytes *in);

#endif /* KT_HOOK_NAMES_H */
