/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows of ka cache: see commands.h. */
#include "monitor-cmds/commands/commands.h"

static bool get_transit(const McOut *o, const McColumn *c, const void *of,
                        McValue *v)
{
    const McCacheRow *row = of;

    v->u = row->transit;
    return row->transit_known && (!c->key || row->transit >= 0);
}

static const McColumn name_columns[] = {
    MC_COLUMN(McCacheRow, va, POINTER, "%", "the kmem_cache",
              .head = "va", .flags = MC_WIDE),
    MC_COLUMN(McCacheRow, name, WORD, " %", "its name", .head = "name"),
    MC_COLUMN(McCacheRow, object_size, BYTES, " (%", "bytes of an object",
              .head = "object", .unit = MC_SIZE),
    MC_COLUMN(McCacheRow, size, BYTES, "/%)", "bytes of a slot",
              .head = "slot", .unit = MC_SIZE),
    MC_END
};

static const McColumn kernel_columns[] = {
    MC_COLUMN(McCacheRow, slabs, NUMBER, " slabs=%", "number of slabs",
              .flags = MC_MOST, .head = "slabs"),
    MC_END
};

static const McColumn map_columns[] = {
    MC_COLUMN(McCacheRow, live, NUMBER, " live=%", "live blocks of the map",
              .head = "live"),
    MC_END
};

#define C(key_, member_, look_, text_, help_, ...) \
    MC_VIA(key_, McCacheRow, c, member_, look_, text_, help_, __VA_ARGS__)

static const McColumn more_columns[] = {
    MC_COLUMN(McCacheRow, free, NUMBER, " free=%", "objects on lists",
              .flags = MC_MOST, .head = "free"),
    MC_GET(NULL, get_transit, INTEGER, " transit=%", NULL,
           .head = "transit"),
    MC_GET("transit", get_transit, NUMBER, NULL,
           "objects that are neither, null if it is not known, or if the map "
           "has more than the kernel"),
    MC_COLUMN(McCacheRow, rcu, NUMBER, " rcu=%",
              "objects of sheaves that wait for RCU",
              .flags = MC_ZERO | MC_OMIT),
    MC_COLUMN(McCacheRow, active_objs, NUMBER, " slabinfo=%",
              "objects in use, as in /proc/slabinfo", .flags = MC_MOST,
              .head = "active"),
    MC_COLUMN(McCacheRow, num_objs, NUMBER, NULL,
              "objects, as in /proc/slabinfo", .flags = MC_MOST),
    MC_KEY(NULL, McCacheRow, num_objs, NUMBER, "/%", NULL,
           .flags = MC_MOST | MC_OMIT, .head = "objects"),
    C("order", order, NUMBER, " order=%", "of a new slab, log2 of its pages",
      .head = "order"),
    C("each", per_slab, NUMBER, " each=%", "objects of a new slab",
      .head = "each"),
    C("freeptr", offset, BYTES, " freeptr=+%", "offset of the free pointer",
      .head = "freeptr", .flags = MC_WIDE),
    C("hardened", hardened, YES_NO, " hardened", "yes or no",
      .flags = MC_IF_SET),
    C("sheaf", sheaf_capacity, NUMBER, " sheaf=%", "objects in a sheaf",
      .flags = MC_ZERO | MC_OMIT),
    MC_COLUMN(McCacheRow, merged, NUMBER, " merged=%",
              "number of caches that share this one",
              .flags = MC_ZERO | MC_OMIT),
    MC_END
};

static const McColumn alias_columns[] = {
    MC_COLUMN(McCacheRow, aliases, LIST, NULL,
              "the names that were asked for when the kernel gave this cache, "
              "except its own", .flags = MC_OMIT),
    MC_KEY(NULL, McCacheRow, names, WORD, " aliases=%", NULL, .flags = MC_OMIT),
    MC_END
};

const McObject mc_cache_object = {
    "cache", "ka cache",
    { name_columns, kernel_columns, map_columns, more_columns,
      alias_columns }, .line = true, .is_table = true,
};
/* Without the types of the kernel. */
const McObject mc_named_cache_object = {
    "cache", "ka cache", { name_columns, map_columns, alias_columns },
    .line = true, .is_table = true,
};

MC_WHEN(is_list)
{
    return ((const McFreeListRow *)row)->l;
}

MC_WHEN(is_full)
{
    return !is_list(o, row);
}

static bool has_units(const McOut *o, const void *of)
{
    const McFreeListRow *row = of;

    return row->l && !row->capacity && *row->units;
}

MC_WHEN(has_no_units)
{
    return is_list(o, row) && !has_units(o, row);
}

const McObject mc_free_list_object = MC_LINE_OBJECT("free_list",
    "ka cache of one cache",
    MC_KEY(NULL, McFreeListRow, owner, TEXT, "%", NULL, .when = is_list),
    MC_KEY(NULL, McFreeListRow, number, NUMBER, "%", NULL, .when = is_list),
    MC_KEY(NULL, McFreeListRow, name, TEXT, " %", NULL, .when = is_list),
    MC_KEY(NULL, McFreeListRow, free, NUMBER, " %", NULL, .when = has_no_units),
    MC_COLUMN(McFreeListRow, list, TEXT, NULL,
              "cpu0-freelist, cpu0-slab, cpu0-partial, cpu0-main, cpu0-spare, "
              "cpu0-rcu, node0-partial, node0-barn-full, node0-barn-empty, or "
              "full: slabs on no list"),
    MC_COLUMN(McFreeListRow, capacity, NUMBER, "/%", "of a sheaf",
              MC_IF(McFreeListRow, capacity)),
    MC_KEY(NULL, McFreeListRow, parts, NUMBER, " %", NULL, .when = has_units),
    MC_KEY(NULL, McFreeListRow, units, TEXT, " %", NULL, .when = has_units),
    MC_COLUMN(McFreeListRow, parts, NUMBER, NULL, "number of slabs or sheaves"),
    MC_KEY(NULL, McFreeListRow, parts, NUMBER, "full % slabs", NULL,
           .when = is_full),
    MC_COLUMN(McFreeListRow, free, NUMBER, NULL, "number of objects",
              .when = is_list),
    MC_KEY(NULL, McFreeListRow, free, NUMBER, ", % free", NULL,
           .when = has_units),
    MC_COLUMN(McFreeListRow, next, POINTER, " next=%",
              "the object that is handed out next",
              .flags = MC_ZERO | MC_OMIT));
