/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interned strings: equal strings have equal addresses. So modules.c searches
 * for a name by comparing pointers, and a module that is loaded a hundred times
 * costs its names once. The caller locks.
 */
#include "guest-symbols/symbols/name-pool.h"
#include "guest-symbols/base/name-hash.h"

#include <string.h>

struct GsNamePool {
    GHashTable *names;
    GStringChunk *chunk;
    size_t left;            /* of the characters that it was made for */
    size_t used;
    size_t room;            /* bytes */
};

/* Of a name besides its characters: in the table, which is kept half empty. */
#define NAME_MORE 24

GsNamePool *gs_name_pool_new(size_t max)
{
    GsNamePool *p = g_new0(GsNamePool, 1);

    p->names = g_hash_table_new(gs_name_hash_str, g_str_equal);
    p->chunk = g_string_chunk_new(65536);
    p->left = max;
    p->room = G_MAXSIZE;
    return p;
}

void gs_name_pool_free(GsNamePool *p)
{
    if (!p) {
        return;
    }
    g_hash_table_destroy(p->names);
    g_string_chunk_free(p->chunk);
    g_free(p);
}

size_t gs_name_pool_bytes(const GsNamePool *p)
{
    return p->used;
}

void gs_name_pool_set_room(GsNamePool *p, size_t bytes)
{
    p->room = bytes;
}

const char *gs_name_pool_intern(GsNamePool *p, const char *s)
{
    char *known = g_hash_table_lookup(p->names, s);
    size_t len = strlen(s) + 1;

    if (known || len > p->left || len + NAME_MORE > p->room) {
        return known;
    }
    p->left -= len;
    p->room -= len + NAME_MORE;
    p->used += len + NAME_MORE;
    known = g_string_chunk_insert(p->chunk, s);
    g_hash_table_add(p->names, known);
    return known;
}

const char *gs_name_pool_find(const GsNamePool *p, const char *s)
{
    return g_hash_table_lookup(p->names, s);
}
