/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Other names of caches in a snapshot: a count, and of each name the address of
 * its cache, the name, stack, task and time of who asked. See kt-aliases.h.
 */
#include "kalloc-tracer/api/kt-aliases.h"
#include "kalloc-tracer/snapshot/snapshot-internal.h"

#include <string.h>

/** struct KtAlias - a name that was read. @alias.name is not set */
typedef struct KtAlias {
    KtCacheAlias alias;
    char name[KT_ALIAS_NAME_MAX];
} KtAlias;

/* ---- writing ------------------------------------------------------------- */

typedef struct Packed {
    GsOut out;
    uint64_t n;
} Packed;

static void pack(const KtCacheAlias *alias, void *opaque)
{
    Packed *packed = opaque;
    GsOut *p = &packed->out;

    gs_out_varint(p, alias->cache_va);
    gs_out_text(p, alias->name);
    gs_out_varint(p, alias->stack.v);
    gs_out_varint(p, alias->task.v);
    gs_out_varint(p, alias->us);
    packed->n++;
}

/* Other threads may add names meanwhile: so names and count are of one pass. */
GByteArray *kt_aliases_pack(KtTracer *t)
{
    g_autoptr(GByteArray) names = g_byte_array_new();
    GByteArray *all = g_byte_array_new();
    Packed packed = { .out = gs_out(names) };
    GsOut out = gs_out(all);

    kt_cache_aliases_all(t, pack, &packed);
    gs_out_varint(&out, packed.n);
    gs_out_bytes(&out, names->data, names->len);
    return all;
}

/* ---- reading ------------------------------------------------------------- */

static KtAlias unpack(GsBytes *u, const KtSnapshotIds *ids)
{
    KtAlias a = { .alias.cache_va = gs_bytes_varint(u, UINT64_MAX) };

    gs_bytes_text(u, a.name, sizeof(a.name), "another name of a cache");
    a.alias.stack.v = gs_bytes_upto(u, ids->max[STACKS], "a backtrace");
    a.alias.task.v = gs_bytes_upto(u, ids->max[TASKS], "a task");
    a.alias.us = gs_bytes_varint(u, UINT64_MAX);
    return a;
}

GArray *kt_aliases_unpack(GsBytes *u, const KtSnapshotIds *ids)
{
    GArray *aliases = g_array_new(FALSE, FALSE, sizeof(KtAlias));
    uint64_t n = ids->version < KT_SNAPSHOT_ALIASES ? 0 :
                 gs_bytes_upto(u, KT_ALIASES_MAX, "the number of other names");

    for (uint64_t i = 0; i < n && gs_bytes_ok(u); i++) {
        KtAlias a = unpack(u, ids);

        g_array_append_val(aliases, a);
    }
    return aliases;
}

void kt_aliases_renumber(GArray *aliases, const KtRenumber *to)
{
    for (unsigned i = 0; i < aliases->len; i++) {
        KtCacheAlias *a = &g_array_index(aliases, KtAlias, i).alias;

        a->stack.v = to->stack[a->stack.v];
        a->task.v = to->task[a->task.v];
    }
}

void kt_aliases_install(KtTracer *t, const GArray *aliases)
{
    for (unsigned i = 0; i < aliases->len; i++) {
        const KtAlias *a = &g_array_index(aliases, KtAlias, i);
        KtCacheAlias alias = a->alias;

        alias.name = a->name;
        kt_cache_alias_restore(t, &alias);
    }
}
