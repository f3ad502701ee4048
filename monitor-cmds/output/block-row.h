/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows of blocks and of errors. Called by the commands, on their thread.
 *
 *     margin | block: state, range, stacks and times | columns of the command |
 *     with -v: layer, cache, task ...
 *
 * The struct of each such row begins with an McBlockRow.
 */
#ifndef MC_BLOCK_ROW_H
#define MC_BLOCK_ROW_H

#include "monitor-cmds/output/row.h"

/**
 * struct McBlockRow - a block
 * @block: (nullable) NULL: an error at @va without a block
 * @hit: the row of the block that contains the address in question, which is
 *       at @offset
 * @identity: (nullable) of an error or a leak
 */
typedef struct McBlockRow {
    const KtBlock *block;
    uint64_t va;
    bool hit;
    uint64_t offset;
    const McIdentity *identity;
} McBlockRow;

/* Sets of columns, in this order. */
extern const McColumn mc_margin_columns[], mc_block_columns[];
extern const McColumn mc_block_more_columns[];
/* After these, for errors and leaks. */
extern const McColumn mc_identity_columns[];

/** Type "block". */
extern const McObject mc_block_object;
/** mc_print_block() - print a block that was not asked for by an address */
void mc_print_block(McOut *o, const KtBlock *b);

/**
 * mc_print_error() - print an error, and the block as it was then
 * @insn: (nullable) the instruction of an access, if it is known
 */
void mc_print_error(McOut *o, const KtError *e, const GsInstruction *insn);
extern const McObject mc_error_object;

#endif /* MC_BLOCK_ROW_H */
