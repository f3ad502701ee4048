/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Nodes of the map's B+tree, for map.c, map-update.c and the self-check.
 *
 * Nodes are 512 bytes, and numbered by their pool: a reference to a node has 4
 * bytes. A tree with two inner nodes below the root; keys are addresses,
 * values are numbers of blocks:
 *
 *     Inner   key    | 0    | 5000 |
 *             child  | #2   | #3   |
 *                      |      |
 *            +---------+      +------------------+
 *            v                                   v
 *     #2 Inner key | 0  | 1000 |         #3 Inner key | 5000 | 9000 |
 *            child | #4 | #5   |                child | #6   | #7   |
 *                    |    |
 *            +-------+    +-----+
 *            v                  v
 *     #4 Leaf base 400   next   #5 Leaf base 1000  next
 *        delta | 0 | 40 | --->     delta | 0 | 100 | 180 | ---> #6 ...
 *        val   | 7 | 9  |          val   | 3 | 8   | 5   |
 *
 * Leaf #4 has the keys 400 (block 7) and 440 (block 9). An inner node has for
 * each child the lower bound of its keys; that of child 0 is the node's own
 * lower bound, so two neighbours merge by putting one behind the other. A leaf
 * is never empty, except the root of an empty map.
 *
 * A delta has 32 bits, so the keys of a leaf are less than 4 GiB apart. A key
 * that is further away from both neighbours gets a leaf of its own. There are
 * few such leaves: a kernel's memory lies in a handful of areas.
 */
#ifndef KT_MAP_NODE_H
#define KT_MAP_NODE_H

#include "kalloc-tracer/model/map.h"

#define NODE_BYTES  512
#define LEAF_CAP    62
#define LEAF_MIN    (LEAF_CAP / 4)
#define LEAF_MERGED (LEAF_CAP * 3 / 4)  /* entries after a merge, at most */
#define LEAF_SHARE  (LEAF_CAP * 7 / 8)  /* a full leaf moves entries to a
                                         * neighbour with fewer than this */
#define INNER_CAP   41
#define INNER_MIN   (INNER_CAP / 4)
#define INNER_MERGED (INNER_CAP * 3 / 4)
#define MAX_HEIGHT  12
#define NODE_SHIFT  12                  /* chunks of 4096 nodes, 2 MiB */

/* The lower levels of the tree. @next: the leaf with the next greater keys, 0:
 * none */
typedef struct Leaf {
    uint64_t base;
    uint32_t next;
    uint32_t n;
    uint32_t delta[LEAF_CAP];
    uint32_t val[LEAF_CAP];
} Leaf;
G_STATIC_ASSERT(sizeof(Leaf) == NODE_BYTES);

/* The upper levels of the tree. */
typedef struct Inner {
    uint64_t key[INNER_CAP];
    uint32_t child[INNER_CAP];
    uint32_t n;
} Inner;
G_STATIC_ASSERT(sizeof(Inner) <= NODE_BYTES);

/* The way from the root to a leaf, by level; level 1 is the leaf's parent.
 * @pos: which child of the node comes next */
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

/* Return how many of the @n ascending values are <= @v. A binary search
 * without branches: the CPU would mispredict half of them. */
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

/* Return how many entries of the leaf have keys <= @key. */
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

/* Return the child whose range has @key. */
static inline unsigned inner_pos(const Inner *p, uint64_t key)
{
    return upper64(p->key + 1, p->n - 1, key);
}

/* Find the leaf whose range has @key, and the way to it. */
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
