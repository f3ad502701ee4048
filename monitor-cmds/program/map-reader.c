/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The heap map from an answer of ka: see json-line.h. */

#include <string.h>

#include "monitor-cmds/program/json-line.h"
#include "monitor-cmds/report/report-data.h"

static int64_t number_of(JsonObject *o, const char *key, int64_t unknown)
{
    int64_t n;

    return ka_json_number(o, key, &n) && n >= 0 ? n : unknown;
}

static bool read_address(JsonObject *o, uint64_t *va)
{
    const char *text = ka_json_text(o, "va");

    return text && g_str_has_prefix(text, "0x") &&
           g_ascii_string_to_unsigned(text + 2, 16, 0, UINT64_MAX, va, NULL);
}

static bool read_space(JsonObject *o, unsigned *out)
{
    static const char *const spaces[] = { "direct", "vmalloc", "percpu" };
    const char *text = ka_json_text(o, "space");

    for (unsigned i = 0; text && i < G_N_ELEMENTS(spaces); i++) {
        if (!strcmp(text, spaces[i])) {
            *out = i;
            return true;
        }
    }
    return false;
}

static unsigned cache_of(McReport *r, JsonObject *o)
{
    const char *text = ka_json_text(o, "cache");

    return mc_report_text(r, text ? text : "[unknown]");
}

/* Return the number of a function's name: "f+0x10[ext4]" is "f [ext4]". */
static unsigned caller_of(McReport *r, JsonObject *o)
{
    const char *text = ka_json_text(o, "caller");
    const char *offset = text ? strstr(text, "+0x") : NULL;
    const char *module = offset ? strchr(offset, '[') : NULL;
    g_autofree char *name = NULL;

    if (!text) {
        return mc_report_text(r, "[no backtrace]");
    }
    name = !offset ? g_strdup(text) :
           g_strdup_printf("%.*s%s%s", (int)(offset - text), text,
                           module ? " " : "", module ? module : "");
    return mc_report_text(r, name);
}

static void read_cell(McReport *r, JsonObject *o)
{
    McCellColumn c = {
        .live = number_of(o, "live", 0),
        .pages = number_of(o, "pages", 0),
        .freed = number_of(o, "freed", 0),
        .blocks = number_of(o, "blocks", 0),
        .oldest_us = number_of(o, "oldest_us", -1),
        .listed = number_of(o, "listed", 0) != 0,
    };

    if (r->map->cell->len < MC_COLUMN_CELLS && read_address(o, &c.va) &&
        read_space(o, &c.space)) {
        c.cache = cache_of(r, o);
        c.caller = caller_of(r, o);
        g_array_append_val(r->map->cell, c);
    }
}

static unsigned state_of(JsonObject *o)
{
    const char *text = ka_json_text(o, "state");

    return !text || *text == 'A' ? 0 : *text == 'R' ? 1 : 2;
}

static void read_block(McReport *r, JsonObject *o)
{
    McBlockColumn b = {
        .asked = number_of(o, "requested", 0),
        .size = number_of(o, "actual", 0),
        .us = number_of(o, "us", -1),
        .state = state_of(o),
        .pages = number_of(o, "pages", 0) != 0,
    };
    unsigned space;

    if (r->map->block->len < MC_COLUMN_BLOCKS && read_address(o, &b.va) &&
        read_space(o, &space) &&
        mc_map_columns_find(r->map, space, b.va, &b.cell)) {
        b.cache = cache_of(r, o);
        b.caller = caller_of(r, o);
        g_array_append_val(r->map->block, b);
    }
}

static bool read_row(void *opaque, JsonObject *o, const char *type)
{
    McReport *r = opaque;

    if (!strcmp(type, "map_cell")) {
        read_cell(r, o);
    } else if (!strcmp(type, "map_block")) {
        read_block(r, o);
    } else if (!strcmp(type, "map")) {
        r->map->live = number_of(o, "live", 0);
        r->map->blocks = number_of(o, "blocks", 0);
    }
    return true;
}

/* The size of a cell is needed to find the cells of blocks, and comes last. */
static bool read_size(void *opaque, JsonObject *o, const char *type)
{
    McReport *r = opaque;

    if (!strcmp(type, "map")) {
        r->map->cell_bytes = number_of(o, "cell_bytes", 0);
    }
    return true;
}

void ka_report_read_map(McReport *r, const char *answer)
{
    const char *last = g_strrstr(answer, "\"type\":\"map\"");

    while (last && last > answer && last[-1] != '\n') {
        last--;
    }
    ka_json_each(last ? last : "", read_size, r);
    if (r->map->cell_bytes >= 4096) {
        ka_json_each(answer, read_row, r);
    } else {
        r->map->cell_bytes = 0;
    }
}
