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

#define G(member) MC_JSON_ARRAY(#member, McLeakGroup, member)

static const McJsonArray group_members[] = {
    G(module), G(state), G(title), G(fold), G(exact), G(weak), G(block),
    G(address), MC_JSON_ARRAY("blocks", McLeakGroup, n),
};

static void put_group(GString *to, const void *row)
{
    const McLeakGroup *g = row;

    mc_json_members(to, group_members, G_N_ELEMENTS(group_members), g);
    if (g->bytes_known) {
        mc_json_integer(to, "bytes", (int64_t)g->bytes);
    }
    mc_json_integer(to, "held", (int64_t)g->held);
    if (g->alloc.frame) {
        mc_json_integer(to, "when", g->alloc.when);
        mc_json_ids(to, "frames", g->alloc.frame);
    }
}

static void put_module(GString *to, const void *row)
{
    const McLeftModule *m = row;

    mc_json_integer(to, "name", m->name);
    for (unsigned i = 0; i < MC_LEFT__COUNT; i++) {
        if (m->known >> i & 1) {
            mc_json_integer(to, mc_left_key(i), m->value[i]);
        }
    }
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
    mc_json_objects(to, "groups", l->group, put_group);
    mc_json_integer(to, "more", (int64_t)l->more);
    mc_json_objects(to, "modules", l->module, put_module);
    g_string_append_c(to, '}');
}
