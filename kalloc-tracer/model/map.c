/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Map: see map.h. This file has all searches; changes are in map-update.c. The
 * tracer's lock is held.
 */
#include "kalloc-tracer/model/map-node.h"

void kt_map_init(KtMap *m)
{
    *m = (KtMap) { 0 };
    kt_pool_init(&m->nodes, NODE_BYTES, NODE_SHIFT);
}

void kt_map_charge(KtMap *m, KtBudget *b, KtMemoryPart part)
{
    kt_pool_charge(&m->nodes, b, part);
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

/* Return the last entry before the leaf at the end of @path. */
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

/* ---- hints -------------------------------------------------------------- */

static void prefetch_node(const void *node)
{
    for (unsigned i = 0; i < NODE_BYTES; i += 64) {
        kt_prefetch((const char *)node + i);
    }
}

/* Step one level down in each search, if its tree is that high. */
static void touch_level(KtMapHint *h, unsigned n, unsigned level)
{
    for (unsigned i = 0; i < n; i++) {
        const KtMap *m = h[i].map;
        const Inner *p;

        if (level > m->height) {
            continue;
        }
        p = inner_at(m, h[i].leaf);
        h[i].leaf = p->child[inner_pos(p, h[i].key)];
        /* Higher levels stay in the host's cache. */
        if (level <= 2) {
            prefetch_node(inner_at(m, h[i].leaf));
        }
    }
}

void kt_map_touch(KtMapHint *h, unsigned n)
{
    unsigned height = 0;

    for (unsigned i = 0; i < n; i++) {
        h[i].leaf = h[i].map->root;
        h[i].version = h[i].map->version;
        height = MAX(height, h[i].map->height);
    }
    for (unsigned level = height; level > 0; level--) {
        touch_level(h, n, level);
    }
}

uint32_t kt_map_peek(const KtMapHint *h)
{
    const Leaf *l;
    unsigned i;

    if (!h->leaf) {
        return 0;
    }
    l = leaf_at(h->map, h->leaf);
    i = leaf_upper(l, h->key);
    return i ? l->val[i - 1] : 0;
}

void kt_map_around_hint(const KtMapHint *h, KtMapEntry *floor,
                        KtMapEntry *above)
{
    const KtMap *m = h->map;
    const Leaf *l;
    unsigned i;

    if (h->leaf && h->version == m->version) {
        l = leaf_at(m, h->leaf);
        i = leaf_upper(l, h->key);
        if (i > 0) {
            *floor = leaf_entry(l, i - 1);
            *above = entry_or_next(m, l, i);
            return;
        }
    }
    kt_map_around(m, h->key, floor, above);
}
