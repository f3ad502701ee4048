/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Map: see map.h. Here is its life and every search; changes are in
 * map-edit.c, the nodes in map-node.h. The tracer's lock covers it.
 */
#include "map-node.h"

void kt_map_init(KtMap *m)
{
    *m = (KtMap) { 0 };
    kt_pool_init(&m->nodes, NODE_BYTES, NODE_SHIFT);
}

void kt_map_deinit(KtMap *m)
{
    kt_pool_deinit(&m->nodes);
}

uint64_t kt_map_bytes(const KtMap *m)
{
    return kt_pool_bytes(&m->nodes);
}

/* ---- search ------------------------------------------------------------- */

/* The last entry before the leaf that @path leads to. */
static KtMapEntry last_before(const KtMap *m, const Path *path)
{
    unsigned level = 1;
    uint32_t node;
    const Leaf *l;

    while (level <= m->height && path->pos[level] == 0) {
        level++;
    }
    if (level > m->height) {
        return (KtMapEntry) { 0 };
    }
    node = inner_at(m, path->node[level])->child[path->pos[level] - 1];
    while (--level > 0) {
        const Inner *p = inner_at(m, node);

        node = p->child[p->n - 1];
    }
    l = leaf_at(m, node);
    return leaf_entry(l, l->n - 1);
}

static KtMapEntry entry_or_next(const KtMap *m, const Leaf *l, unsigned i)
{
    if (i < l->n) {
        return leaf_entry(l, i);
    }
    return l->next ? leaf_entry(leaf_at(m, l->next), 0) : (KtMapEntry) { 0 };
}

void kt_map_around(const KtMap *m, uint64_t key, KtMapEntry *floor,
                   KtMapEntry *above)
{
    Path path;
    const Leaf *l;
    unsigned i;

    if (m->n == 0) {
        *floor = *above = (KtMapEntry) { 0 };
        return;
    }
    l = leaf_at(m, descend(m, key, &path));
    i = leaf_upper(l, key);
    *floor = i ? leaf_entry(l, i - 1) : last_before(m, &path);
    *above = entry_or_next(m, l, i);
}

KtMapEntry kt_map_floor(const KtMap *m, uint64_t key)
{
    KtMapEntry floor, above;

    kt_map_around(m, key, &floor, &above);
    return floor;
}

KtMapEntry kt_map_above(const KtMap *m, uint64_t key)
{
    KtMapEntry floor, above;

    kt_map_around(m, key, &floor, &above);
    return above;
}

KtMapIter kt_map_seek(const KtMap *m, uint64_t key)
{
    Path path;
    KtMapIter it = { 0 };
    const Leaf *l;

    if (m->n == 0) {
        return it;
    }
    it.leaf = descend(m, key, &path);
    l = leaf_at(m, it.leaf);
    it.i = leaf_upper(l, key);
    if (it.i > 0 && leaf_entry(l, it.i - 1).key == key) {
        it.i--;
    }
    return it;
}

KtMapEntry kt_map_next(const KtMap *m, KtMapIter *it)
{
    const Leaf *l;

    if (!it->leaf) {
        return (KtMapEntry) { 0 };
    }
    l = leaf_at(m, it->leaf);
    if (it->i >= l->n) {
        it->leaf = l->next;
        it->i = 0;
        if (!it->leaf) {
            return (KtMapEntry) { 0 };
        }
        l = leaf_at(m, it->leaf);
    }
    return leaf_entry(l, it->i++);
}

uint32_t kt_map_touch(const KtMap *m, uint64_t key)
{
    Path path;
    uint32_t leaf;
    const char *at;

    if (m->n == 0) {
        return 0;
    }
    leaf = descend(m, key, &path);
    at = (const char *)leaf_at(m, leaf);
    for (unsigned i = 0; i < NODE_BYTES; i += 64) {
        __builtin_prefetch(at + i, 1);
    }
    return leaf;
}

/* The node may be anything by now, even an inner one: only its count is
 * believed, and that within bounds. */
uint32_t kt_map_peek(const KtMap *m, uint32_t hint, uint64_t key)
{
    const Leaf *l;
    unsigned i;

    if (!hint) {
        return 0;
    }
    l = leaf_at(m, hint);
    if (l->n > LEAF_CAP) {
        return 0;
    }
    i = leaf_upper(l, key);
    return i ? l->val[i - 1] : 0;
}
