/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Leaks of a page: see report-data.h. */
#include "monitor-cmds/report/report-data.h"

#include "monitor-cmds/table/put.h"

const char *mc_left_key(McLeftId id)
{
    static const char *const keys[MC_LEFT__COUNT] = {
        "unloaded_us", "blocks", "bytes", "withdrawn", "leaked", "leaked_bytes",
        "kept", "kept_bytes", "bad_frees", "unsure", "not_listed",
    };

    return keys[id];
}

static void clear_group(gpointer p)
{
    g_clear_pointer(&((McLeakGroup *)p)->alloc.frame, g_array_unref);
}

McLeakGroups *mc_leak_groups_new(void)
{
    McLeakGroups *l = g_new0(McLeakGroups, 1);

    l->group = g_array_new(FALSE, TRUE, sizeof(McLeakGroup));
    l->module = g_array_new(FALSE, TRUE, sizeof(McLeftModule));
    g_array_set_clear_func(l->group, clear_group);
    return l;
}

void mc_leak_groups_free(McLeakGroups *l)
{
    if (!l) {
        return;
    }
    g_array_unref(l->group);
    g_array_unref(l->module);
    g_free(l);
}

McLeakGroup *mc_leak_groups_add(McLeakGroups *l)
{
    static const McLeakGroup none = { 0 };

    if (l->group->len >= MC_REPORT_GROUPS) {
        l->more++;
        return NULL;
    }
    g_array_append_val(l->group, none);
    return &g_array_index(l->group, McLeakGroup, l->group->len - 1);
}

/* ---- JSON ---------------------------------------------------------------- */

static void put_group(GString *to, const McLeakGroup *g)
{
    g_string_append_c(to, '{');
    mc_json_integer(to, "module", g->module);
    mc_json_integer(to, "state", g->state);
    mc_json_integer(to, "title", g->title);
    mc_json_integer(to, "fold", g->fold);
    mc_json_integer(to, "exact", g->exact);
    mc_json_integer(to, "weak", g->weak);
    mc_json_integer(to, "block", g->block);
    mc_json_integer(to, "address", g->address);
    mc_json_integer(to, "blocks", (int64_t)g->n);
    if (g->bytes_known) {
        mc_json_integer(to, "bytes", (int64_t)g->bytes);
    }
    mc_json_integer(to, "held", (int64_t)g->held);
    if (g->alloc.frame) {
        mc_json_integer(to, "when", g->alloc.when);
        mc_json_ids(to, "frames", g->alloc.frame);
    }
    g_string_append_c(to, '}');
}

static void put_module(GString *to, const McLeftModule *m)
{
    g_string_append_c(to, '{');
    mc_json_integer(to, "name", m->name);
    for (unsigned i = 0; i < MC_LEFT__COUNT; i++) {
        if (m->known >> i & 1) {
            mc_json_integer(to, mc_left_key(i), m->value[i]);
        }
    }
    g_string_append_c(to, '}');
}

static void put_scan(GString *to, const McLeakGroups *l)
{
    mc_json_integer(to, "scan", l->scan);
    mc_json_integer(to, "scanned", l->scanned);
    if (l->scanned) {
        mc_json_integer(to, "leaks", l->leaks);
        mc_json_integer(to, "stacks", l->stacks);
        mc_json_integer(to, "bytes", l->bytes);
        mc_json_integer(to, "us", l->us);
    }
}

void mc_put_leaks(GString *to, const McLeakGroups *l)
{
    mc_json_key(to, "leaks");
    g_string_append_c(to, '{');
    put_scan(to, l);
    mc_json_key(to, "groups");
    g_string_append_c(to, '[');
    for (unsigned i = 0; i < l->group->len; i++) {
        g_string_append(to, i ? "," : "");
        put_group(to, &g_array_index(l->group, McLeakGroup, i));
    }
    g_string_append_c(to, ']');
    mc_json_integer(to, "more", (int64_t)l->more);
    mc_json_key(to, "modules");
    g_string_append_c(to, '[');
    for (unsigned i = 0; i < l->module->len; i++) {
        g_string_append(to, i ? "," : "");
        put_module(to, &g_array_index(l->module, McLeftModule, i));
    }
    g_string_append(to, "]}");
}
