/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Answers of ka, one JSON object a line, and what is read from them. They are
 * not trusted. One thread. */
#ifndef MC_JSON_LINE_H
#define MC_JSON_LINE_H

#include <json-glib/json-glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "monitor-cmds/report/report-data.h"

/** ka_json_parse() - parse a line of @len bytes and a NUL. Return (borrowed
 *  from @parser until its next use) NULL if it is no JSON object, or if it is
 *  nested too deep. */
JsonObject *ka_json_parse(JsonParser *parser, const char *line, size_t len);
/** ka_json_text() - return (borrowed) the text of a member, NULL if @object
 *  (nullable) has no such text. @key: (nullable) NULL: no member */
const char *ka_json_text(JsonObject *object, const char *key);
/** ka_json_number() - read the number of a member. Return false if @object has
 *  no such number. */
bool ka_json_number(JsonObject *object, const char *key, int64_t *out);
/** ka_json_list() - return (borrowed) the array of a member, or NULL. */
JsonArray *ka_json_list(JsonObject *object, const char *key);
/** ka_json_text_at() - return (borrowed) a text of a list, NULL if @list
 *  (nullable) has no such text. */
const char *ka_json_text_at(JsonArray *list, unsigned i);

/** KaJsonRow - read an object; @type: its member "type", or "". Return false to
 *  end. */
typedef bool KaJsonRow(void *opaque, JsonObject *o, const char *type);
/** ka_json_each() - call @row for each line of an answer that is an object */
void ka_json_each(const char *answer, KaJsonRow *row, void *opaque);

/* ---- row texts ----------------------------------------------------------- */

/* Texts and stacks of a row for a page: an error, a leak, a block. */
/** ka_row_text() - return the number of the text at @key, "" without one. */
unsigned ka_row_text(McReport *r, JsonObject *o, const char *key);
/** ka_row_block() - return the number of a line about the block. */
unsigned ka_row_block(McReport *r, JsonObject *o);
/** ka_row_error() - return the number of a line about an error: the access, the
 *  wrong size, repeats, the neighbour; "" if it has none of these. */
unsigned ka_row_error(McReport *r, JsonObject *o);
/** ka_row_stack() - read a stack; @part is not changed if the row has none. */
void ka_row_stack(McReport *r, McCardPart *part, JsonObject *o,
                  McCardStack which);
/** ka_row_list() - append the numbers of the texts of the list at @key. */
void ka_row_list(McReport *r, GArray *ids, JsonObject *o, const char *key);

/* ---- profile reader ------------------------------------------------------ */

/* A heap profile. The answers of a VM and of a journal are the same, so exports
 * of both are, too. */
/** ka_answer_error() - return (owned, nullable) the text of an answer that is a
 *  refusal */
char *ka_answer_error(const char *answer);

/* ---- report reader ------------------------------------------------------- */

/** ka_report_read_table() - add a table; @by: (static); @answer: of `ka top
 *  --by @by -j -n 0` */
void ka_report_read_table(McReport *r, const char *by, const char *answer);
/** ka_report_read_errors() - add cards from `ka error -s -v -j -n N`. */
void ka_report_read_errors(McReport *r, const char *answer);

/**
 * ka_report_read_scan() - add the leaks of the last scan
 * @answer: of `ka leak list -s -v -j -n N`
 * @journal: the answer is of a journal, which has no memory to scan
 */
void ka_report_read_scan(McReport *r, const char *answer, bool journal);
/** ka_report_read_left() - add what modules left behind, from `ka leak module
 *  -s -v -j -n N`. */
void ka_report_read_left(McReport *r, const char *answer);

/** ka_report_read_log() - read the answer of `ka log -j -n N`. */
void ka_report_read_log(McReport *r, const char *answer);
/** ka_report_read_map() - read the answer of `ka map -s -j`. */
void ka_report_read_map(McReport *r, const char *answer);

/** ka_report_read_job() - set the job of @r from the file that scripts/sweep
 *  --json has written, which is not trusted. Return false if @path is no such
 *  file; @errp then has one line. */
bool ka_report_read_job(McReport *r, const char *path, GError **errp);

#endif /* MC_JSON_LINE_H */
