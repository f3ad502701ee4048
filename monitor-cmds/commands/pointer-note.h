/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a pointer leads to, as the end of a line:
 *
 *     > +0 A ffff8beb81818300-ffff8beb818183b7 (b8/c0) filp
 *     ! +20 F ffff8beb81b72d80-ffff8beb81b72f7f (200/240) kmalloc-576
 *     > kernel data ka_fops+0x0
 *
 * The mark is ! if that is a freed block. Called on the thread of the command;
 * takes the tracer's lock for each query.
 */
#ifndef MC_POINTER_NOTE_H
#define MC_POINTER_NOTE_H

#include "monitor-cmds/output/format.h"

/**
 * mc_pointer_note() - say what a pointer leads to
 * @word: a word of the guest; the tag and the low 3 bits, in which the kernel
 *        keeps flags, do not count
 * @freed: (out) it leads to a freed block
 *
 * Blocks have their stacks if @out prints symbols (-s). Returns: (owned,
 * nullable) the text without the mark; NULL if the word is no address of the
 * kernel, or if nothing certain is known of it.
 */
char *mc_pointer_note(McOut *out, uint64_t word, bool *freed);
/** mc_put_pointer_note() - append " > " or " ! " and the text; nothing if there
 *  is none. */
void mc_put_pointer_note(McOut *out, GString *to, uint64_t word);
/** mc_block_note() - (owned) return the same text for an address in a block. */
char *mc_block_note(McOut *out, const KtBlock *b, uint64_t va);

#endif /* MC_POINTER_NOTE_H */
