/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Nodes of the map's B+tree, for map.c and map-update.c only.
 *
 * An inner node holds, for each child, the child's lower bound; that of
 * child 0 equals the node's own, so that merging two nodes is putting them
 * one after the other. Leaves are never empty, but for a lone root.
 *
 * A leaf can only hold keys less than 4 GiB apart. A key that does not fit
 * between its neighbours gets a leaf of its own; there are few of these in
 * a kernel, whose memory comes in a handful of areas.
 */
#ifndef KT_MAP_NODE_H
#define KT_MAP_NODE_H

#include "kalloc-tracer/model/map.h"

#define NODE_BYTES  512
#define LEAF_CAP    62
#define LEAF_MIN    (LEAF_CAP / 4)
#define LEAF_MERGED (LEAF_CAP * 3 / 4)  /* at most so many after a merge */
#define LEAF_SHARE  (LEAF_CAP * 7 / 8)  /* a neighbour below takes some */
#define INNER_CAP   41
#define INNER_MIN   (INNER_CAP / 4)
#define INNER_MERGED (INNER_CAP * 3 / 4)
#define MAX_HEIGHT  12
#define NODE_SHIFT  12                  /* chunks of 4096 nodes, 2 MiB */

typedef struct Leaf {
    uint64_t base;
    uint32_t next;
    uint32_t n;
    uint32_t delta[LEAF_CAP];
    uint32_t val[LEAF_CAP];
} Leaf;
G_STATIC_ASSERT(sizeof(Leaf) == NODE_BYTES);

typedef struct Inner {
    uint64_t key[INNER_CAP];
    uint32_t child[INNER_CAP];
    uint32_t n;
} Inner;
G_STATIC_ASSERT(sizeof(Inner) <= NODE_BYTES);

/* The way down to a leaf: by level, 1 is the leaf's parent. */
typedef struct Path {
    uint32_t node[MAX_HEIGHT];
    unsigned pos[MAX_HEIGHT];
} Path;

static inline Leaf *leaf_at(const KtMap *m, uint32_t i)
{
    return kt_pool_at(&m->nodes, i);
}

static inline Inner *inner_at(const KtMap *m, uint32_t i)
{
    return kt_pool_at(&m->nodes, i);
}

/* How many of the @n ascending values are <= @v. Without branches, as half
 * of them would be guessed wrong. */
static inline unsigned upper32(const uint32_t *a, unsigned n, uint32_t v)
{
    const uint32_t *at = a;

    while (n > 0) {
        unsigned half = (n + 1) / 2;

        at += half & -(unsigned)(at[half - 1] <= v);
        n -= half;
    }
    return at - a;
}

static inline unsigned upper64(const uint64_t *a, unsigned n, uint64_t v)
{
    const uint64_t *at = a;

    while (n > 0) {
        unsigned half = (n + 1) / 2;

        at += half & -(unsigned)(at[half - 1] <= v);
        n -= half;
    }
    return at - a;
}

/* How many entries of the leaf have keys <= @key. */
static inline unsigned leaf_upper(const Leaf *l, uint64_t key)
{
    if (key < l->base) {
        return 0;
    }
    if (key - l->base > UINT32_MAX) {
        return l->n;
    }
    return upper32(l->delta, l->n, key - l->base);
}

static inline KtMapEntry leaf_entry(const Leaf *l, unsigned i)
{
    return (KtMapEntry) { l->base + l->delta[i], l->val[i] };
}

static inline unsigned inner_pos(const Inner *p, uint64_t key)
{
    return upper64(p->key + 1, p->n - 1, key);
}

static inline uint32_t descend(const KtMap *m, uint64_t key, Path *path)
{
    uint32_t node = m->root;

    for (unsigned level = m->height; level > 0; level--) {
        const Inner *p = inner_at(m, node);
        unsigned pos = inner_pos(p, key);

        path->node[level] = node;
        path->pos[level] = pos;
        node = p->child[pos];
    }
    return node;
}

#endif /* KT_MAP_NODE_H */
