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

#include "monitor-cmds/output/format.h"
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
/* The two parts of mc_block_columns. */
extern const McColumn mc_block_head_columns[], mc_block_stack_columns[];
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

/**
 * mc_former_owner() - find the past life that a use after free belongs to
 * @life: where to store it
 *
 * The access is of a module that is in no stack of the last life, so the last
 * owner may be innocent. The life is the newest one that the module caused: the
 * first frame in a module of its allocation or its free. Takes the tracer's
 * lock.
 *
 * Returns: false if there is none: also if the access is not of a module, or
 * the past life was evicted
 */
bool mc_former_owner(const McOut *o, const KtError *e, KtBlock *life);

/* ---- event row ----------------------------------------------------------- */

/** mc_print_event() - print an event; @b: (nullable) the block, for ka trace */
void mc_print_event(McOut *o, const KtEvent *ev, const KtTracedBlock *b);
/** mc_print_control() - print a line between events, such as a reset of the
 *  VM */
void mc_print_control(McOut *o, const char *name, uint64_t value);

extern const McObject mc_event_object, mc_traced_object, mc_control_object;

/* ---- access row ---------------------------------------------------------- */

/** mc_print_block_access() - print an access to the block at @block
 *  (access-watch.c) */
void mc_print_block_access(McOut *out, const KtBlockAccess *a, uint64_t block);
extern const McObject mc_block_access_object;

/* ---- forms of the kernel ------------------------------------------------- */

/**
 * mc_print_kasan() - print an error as KASAN does
 *
 * Each line begins with the time of the error, as in the kernel's log. Errors
 * that KASAN does not have begin with "BUG: ka: TITLE". Unknown stacks are
 * "(stack is not available)".
 */
void mc_print_kasan(McOut *out, const KtError *e);

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

/* ---- identity row -------------------------------------------------------- */

/* The identity of what a listing prints. Without the tracer's lock. */
/** mc_prints_identity() - Return true if rows of this output have identities:
 *  JSON and -v. */
bool mc_prints_identity(const McOut *out);
/** mc_identity_of_error() - (owned) Return the identity of an error. */
McIdentity *mc_identity_of_error(const McOut *out, const KtError *e);
/** mc_identity_of_leak() - (owned) Return the identity of a leaked block. */
McIdentity *mc_identity_of_leak(const McOut *out, const KtBlock *b);

#endif /* MC_BLOCK_ROW_H */
