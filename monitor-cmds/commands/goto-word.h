/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ka goto <va> write: the answer. Called by goto.c. */
#ifndef MC_GOTO_WORD_H
#define MC_GOTO_WORD_H

#include "monitor-cmds/output/row.h"

/* How the replay gets to a place. Programs that drive it read "way": they load
 * a VM state that is before "us", and continue the VM, until it is here. */
#define MC_GOTO_WAY \
    "here; ahead: continue the VM; behind: load a VM state, then continue"

/** mc_print_goto_word() - print what is known of the last access to a word.
 *  Return false if there is none. */
bool mc_print_goto_word(McOut *out, const KtGotoInsn *insn, GError **errp);
extern const McObject mc_goto_word_object;

#endif /* MC_GOTO_WORD_H */
