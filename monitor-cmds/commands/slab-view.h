/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the commands about slabs share: how they begin, and how they print lists
 * and slots. Used on the thread of the command; no locks.
 */
#ifndef MC_SLAB_VIEW_H
#define MC_SLAB_VIEW_H

#include "monitor-cmds/output/row.h"

/** mc_slabs_open() - (owned) find out how the running kernel keeps its slabs.
 *  NULL and an error if that is not known. */
KtSlabs *mc_slabs_open(McOut *out, GError **errp);
/** mc_slab_note_running() - print a line if the VM runs. */
void mc_slab_note_running(McOut *out);
/** mc_slab_list_text() - (owned) return "cpu0-freelist" or "node0-partial". */
char *mc_slab_list_text(KtSlabListKind kind, unsigned number);
/** mc_slab_print_problem() - print what is wrong with a list. */
void mc_slab_print_problem(McOut *out, const KtSlabProblem *p);

/**
 * struct McSlotAt - a slot to print
 * @va: address of its object
 * @list: (owned, nullable) the list that it is on, with its position
 * @block: the block that is in it; valid if @has_block
 */
typedef struct McSlotAt {
    uint64_t va;
    uint32_t number;
    char *list;
    bool has_block;
    KtBlock block;
} McSlotAt;

/** mc_slots_new() - (owned) an empty array of McSlotAt, which frees the
 *  texts. */
GArray *mc_slots_new(void);
/** mc_slots_find_blocks() - find the blocks of [@first, @end) of @slots, under
 *  one hold of the tracer's lock. */
void mc_slots_find_blocks(KtTracer *t, GArray *slots, unsigned first,
                          unsigned end);
/** mc_slot_print() - print a slot, or an object on a list. @va: the address in
 *  question, if it is in the slot, else 0; @numbered: print its number */
void mc_slot_print(McOut *out, const McSlotAt *slot, uint64_t va,
                   bool numbered);

/* ---- a slab -------------------------------------------------------------- */

/** mc_slab_place() - (owned) return "node0-partial", "full" and so on. */
char *mc_slab_place(const KtSlabs *s, const KtListedSlab *slab);
/** mc_slab_slots() - (owned) return its slots: McSlotAt without blocks. */
GArray *mc_slab_slots(const KtSlabCache *c, const KtListedSlab *slab);
/** mc_slab_print_letters() - print a slab as one line with a letter for each
 *  slot: A, F, R if kfree_rcu() queued the block, "." if none is known. @hit:
 *  (or KT_NO_SLOT) a ">" comes before its letter */
void mc_slab_print_letters(McOut *out, const KtSlabs *s, const KtSlabCache *c,
                           const KtListedSlab *slab, uint32_t hit);

extern const McObject mc_list_problem_object, mc_slab_letters_object;
extern const McObject mc_slot_object, mc_unseen_object;

#endif /* MC_SLAB_VIEW_H */
