/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A block in kmemleak's format. Called by ka leak, on the command's thread.
 */
#ifndef MC_FORMAT_KMEMLEAK_H
#define MC_FORMAT_KMEMLEAK_H

#include "monitor-cmds/output/format.h"

/* Bytes of a block in the hex dump. */
#define MC_KMEMLEAK_DUMP 32

/**
 * mc_print_kmemleak() - print a block as kmemleak does
 * @now_us: guest time, for the age of the block. The guest's jiffies are
 *          unknown, so the line has only the age
 * @data: (nullable) first @len bytes of the block, NULL if they cannot be read.
 *        The checksum is 0 unless @data is the whole block
 */
void mc_print_kmemleak(McOut *out, const KtBlock *b, uint64_t now_us,
                       const uint8_t *data, size_t len);

#endif /* MC_FORMAT_KMEMLEAK_H */
