/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of what refers to a block: for ka refs and ka leak module. Called on
 * the thread of the command; no locks.
 */
#ifndef MC_REF_NAMES_H
#define MC_REF_NAMES_H

#include "monitor-cmds/output/format.h"

/** mc_ref_member() - return (owned, nullable) the name of the member at @off in
 *  the block's type. The type is known only if the cache has the name of a type
 *  and is not merged. */
char *mc_ref_member(const McOut *out, const KtBlock *b, uint64_t off);
/** mc_ref_symbol() - return (owned, nullable) the variable that has the word,
 *  as symbol+0xoff. */
char *mc_ref_symbol(const McOut *out, const KtRef *r);
/** mc_ref_place() - return (owned) where the word is, in one word: symbol, or
 *  address. */
char *mc_ref_place(const McOut *out, const KtRef *r);
/** mc_ref_owner() - return (owned, nullable) what has the word, in one word:
 *  type and member, cache, the function that allocated, or CPU or pid. */
char *mc_ref_owner(McOut *out, const KtRef *r);

#endif /* MC_REF_NAMES_H */
