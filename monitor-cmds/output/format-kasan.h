/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An error in the words of KASAN. Called by ka error, on the command's thread.
 */
#ifndef MC_FORMAT_KASAN_H
#define MC_FORMAT_KASAN_H

#include "monitor-cmds/output/format.h"

/**
 * mc_print_kasan() - print an error as KASAN does
 *
 * Each line begins with the time of the error, as in the kernel's log. Errors
 * that KASAN does not have begin with "BUG: ka: TITLE". Unknown stacks are
 * "(stack is not available)".
 */
void mc_print_kasan(McOut *out, const KtError *e);

#endif /* MC_FORMAT_KASAN_H */
