/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A line of JSON that is not trusted. One thread. */
#ifndef MC_JSON_LINE_H
#define MC_JSON_LINE_H

#include <json-glib/json-glib.h>
#include <stdbool.h>
#include <stdint.h>

/** ka_json_parse() - parse a line of @len bytes and a NUL. Return (borrowed
 *  from @parser until its next use) NULL if it is no JSON object, or if it is
 *  nested too deep. */
JsonObject *ka_json_parse(JsonParser *parser, const char *line, size_t len);
/** ka_json_text() - return (borrowed) the text of a member, NULL if @object
 *  (nullable) has no such text. */
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

#endif /* MC_JSON_LINE_H */
