/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows of ka struct: members of a definition or of an object, as text with
 * aligned columns, and as JSON. On the thread of one command; no locks.
 */
#ifndef MC_STRUCT_ROWS_H
#define MC_STRUCT_ROWS_H

#include "monitor-cmds/output/row.h"

/** struct McStructRows - rows that are collected before they are printed.
 *  @values: they are of an object, not of a definition */
typedef struct McStructRows {
    McOut *out;
    bool values;
    GPtrArray *row;
} McStructRows;

void mc_struct_rows_init(McStructRows *r, McOut *out, bool values);
void mc_struct_rows_deinit(McStructRows *r);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(McStructRows, mc_struct_rows_deinit)
/** mc_struct_rows_add() - a GsMemberFn; @opaque is an McStructRows */
void mc_struct_rows_add(const GsMember *m, void *opaque);
/** mc_struct_rows_print() - print all rows, and forget them */
void mc_struct_rows_print(McStructRows *r);

extern const McObject mc_member_object;

/** mc_struct_pahole() - print the definition of a struct as pahole does.
 *  @name: as typed; @depth: of the members that are opened */
void mc_struct_pahole(McOut *out, const GsStruct *s, unsigned depth);

#endif /* MC_STRUCT_ROWS_H */
