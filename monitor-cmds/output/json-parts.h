/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * JSON lines in parts: the members of an object, for the files that print
 * objects, and the rows of accounts. Called on the thread of a command; no
 * locks. See format-json.c for the form of the output.
 */
#ifndef MC_JSON_PARTS_H
#define MC_JSON_PARTS_H

#include "monitor-cmds/output/format.h"

/** mc_json_begin() - begin an object with its schema and its type */
void mc_json_begin(McOut *o, McObjectId id);
/** mc_json_end() - end the object and the line */
void mc_json_end(McOut *o);

/** mc_json_word() - append a key and a string (untrusted bytes); nothing if
 *  @word is NULL or "" */
void mc_json_word(McOut *o, const char *key, const char *word);
/** mc_json_stack() - append an array of addresses; of names if @symbols is
 *  not NULL. @exact: the first one is an instruction, and no return address */
void mc_json_stack(McOut *o, KtStackId id, bool exact,
                   const GsKernel *symbols);
/** mc_json_stack_at() - append key "@key_at" and an array of addresses, as
 *  mc_frame_at() returns them; nothing without --pc. @exact: as above */
void mc_json_stack_at(McOut *o, const char *key, KtStackId id, bool exact);
/** mc_json_event_stack() - append keys "stack" and "stop", and "stack_symbols"
 *  if the command prints names. @exact: as above */
void mc_json_event_stack(McOut *o, KtStackId id, bool exact);

/* Rows of ka top, ka diff and ka mark: calls of McFormat. */
void mc_json_top_begin(McOut *o, McTopTable *t, const GPtrArray *rows,
                       unsigned n);
void mc_json_top_row(McOut *o, const McTopTable *t, const McTopRow *row);
void mc_json_top_note(McOut *o, const char *format, ...) G_GNUC_PRINTF(2, 3);
void mc_json_stray(McOut *o, const KtStray *s, bool by_stack);
void mc_json_mark(McOut *o, const KtMarkInfo *p);

#endif /* MC_JSON_PARTS_H */
