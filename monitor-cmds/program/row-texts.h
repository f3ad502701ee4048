/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Texts and stacks of a row of ka for a page: an error, a leak, a block. Rows
 * are JSON objects, which are not trusted. One thread.
 */
#ifndef MC_ROW_TEXTS_H
#define MC_ROW_TEXTS_H

#include "monitor-cmds/program/json-line.h"
#include "monitor-cmds/report/report-data.h"

/** ka_row_text() - return the number of the text at @key, "" without one. */
unsigned ka_row_text(McReport *r, JsonObject *o, const char *key);
/** ka_row_block() - return the number of a line about the block. */
unsigned ka_row_block(McReport *r, JsonObject *o);
/** ka_row_error() - return the number of a line about an error: the access, the
 *  wrong size, repeats, the neighbour; "" if it has none of these. */
unsigned ka_row_error(McReport *r, JsonObject *o);
/** ka_row_stack() - read a stack; leave @part alone if the row has none. */
void ka_row_stack(McReport *r, McCardPart *part, JsonObject *o,
                  McCardStack which);
/** ka_row_list() - append the numbers of the texts of the list at @key. */
void ka_row_list(McReport *r, GArray *ids, JsonObject *o, const char *key);

#endif /* MC_ROW_TEXTS_H */
