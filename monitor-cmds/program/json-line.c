/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A line of JSON: see json-line.h. */
#include "monitor-cmds/program/json-line.h"

#include <string.h>

/* The deepest nesting of a line; QMP's own messages need less than ten. */
#define MAX_DEPTH   64u

/* Return true if @line is nested too deep for JsonParser, which recurses. */
static bool is_deep(const char *line)
{
    unsigned depth = 0;
    bool quoted = false;

    for (; *line && depth <= MAX_DEPTH; line++) {
        if (*line == '"') {
            quoted = !quoted;
        } else if (quoted) {
            line += *line == '\\' && line[1];
        } else {
            depth += *line == '{' || *line == '[';
            depth -= depth && (*line == '}' || *line == ']');
        }
    }
    return depth > MAX_DEPTH;
}

JsonObject *ka_json_parse(JsonParser *parser, const char *line, size_t len)
{
    JsonNode *root;

    if (is_deep(line) ||
        !json_parser_load_from_data(parser, line, (gssize)len, NULL)) {
        return NULL;
    }
    root = json_parser_get_root(parser);
    return root && JSON_NODE_HOLDS_OBJECT(root) ? json_node_get_object(root) :
                                                  NULL;
}

static JsonNode *member(JsonObject *object, const char *key)
{
    return object && key ? json_object_get_member(object, key) : NULL;
}

const char *ka_json_text(JsonObject *object, const char *key)
{
    JsonNode *node = member(object, key);

    return node && json_node_get_value_type(node) == G_TYPE_STRING ?
           json_node_get_string(node) : NULL;
}

bool ka_json_number(JsonObject *object, const char *key, int64_t *out)
{
    JsonNode *node = member(object, key);

    if (!node || json_node_get_value_type(node) != G_TYPE_INT64) {
        return false;
    }
    *out = json_node_get_int(node);
    return true;
}

JsonArray *ka_json_list(JsonObject *object, const char *key)
{
    JsonNode *node = member(object, key);

    return node && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) :
                                                 NULL;
}

const char *ka_json_text_at(JsonArray *list, unsigned i)
{
    JsonNode *node = list && i < json_array_get_length(list) ?
                     json_array_get_element(list, i) : NULL;

    return node && json_node_get_value_type(node) == G_TYPE_STRING ?
           json_node_get_string(node) : NULL;
}

void ka_json_each(const char *answer, KaJsonRow *row, void *opaque)
{
    g_autoptr(JsonParser) parser = json_parser_new();

    for (const char *line = answer; *line;) {
        size_t len = strcspn(line, "\n");
        g_autofree char *copy = g_strndup(line, len);
        JsonObject *o = ka_json_parse(parser, copy, len);
        const char *type = ka_json_text(o, "type");

        if (o && !row(opaque, o, type ? type : "")) {
            break;
        }
        line += len + (line[len] == '\n');
    }
}
