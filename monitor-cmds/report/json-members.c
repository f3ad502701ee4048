/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Members of JSON objects: see json-members.h. */
#include "monitor-cmds/report/json-members.h"

#include <inttypes.h>
#include <string.h>

void mc_put_json_text(GString *to, const char *text)
{
    g_string_append_c(to, '"');
    for (const char *c = text; *c; c++) {
        if (*c < 0x20 || *c >= 0x7f || strchr("\"\\<>&'", *c)) {
            g_string_append_printf(to, "\\u%04x", (unsigned char)*c);
        } else {
            g_string_append_c(to, *c);
        }
    }
    g_string_append_c(to, '"');
}

void mc_put_key(GString *to, const char *key)
{
    char before = to->len ? to->str[to->len - 1] : '{';

    if (before != '{' && before != '[') {
        g_string_append_c(to, ',');
    }
    mc_put_json_text(to, key);
    g_string_append_c(to, ':');
}

void mc_put_text(GString *to, const char *key, const char *text)
{
    mc_put_key(to, key);
    mc_put_json_text(to, text);
}

void mc_put_number(GString *to, const char *key, int64_t n)
{
    mc_put_key(to, key);
    g_string_append_printf(to, "%" PRId64, n);
}

void mc_put_item(GString *to, int64_t n)
{
    g_string_append_printf(to, to->str[to->len - 1] == '[' ?
                           "%" PRId64 : ",%" PRId64, n);
}

void mc_put_ids(GString *to, const char *key, const GArray *ids)
{
    mc_put_key(to, key);
    g_string_append_c(to, '[');
    for (unsigned i = 0; i < ids->len; i++) {
        mc_put_item(to, g_array_index(ids, unsigned, i));
    }
    g_string_append_c(to, ']');
}
