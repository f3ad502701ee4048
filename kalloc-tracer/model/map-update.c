/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Changes of the map: see map.h; map-node.h draws the nodes. The tracer's lock
 * is held.
 *
 * Insert: a full leaf first moves entries to a neighbour that has room; if both
 * neighbours are full, it is split. kt_map_insert() reserves all nodes that a
 * split may need beforehand, so it never fails half way. Remove: a leaf with
 * few entries is merged with a neighbour, or gets entries from it.
 */
#include "kalloc-tracer/model/map-node.h"

#include <string.h>

/* The entries of two neighbours, unpacked. */
typedef struct Pair {
    uint64_t key[2 * LEAF_CAP];
    uint32_t val[2 * LEAF_CAP];
    unsigned n;
} Pair;

/* ---- pairs of leaves ---------------------------------------------------- */

static void pair_add(Pair *pair, const Leaf *l)
{
    for (unsigned i = 0; i < l->n; i++) {
        pair->key[pair->n] = l->base + l->delta[i];
        pair->val[pair->n++] = l->val[i];
    }
}

static bool pair_fits(const Pair *pair, unsigned from, unsigned to)
{
    return from == to ||
           (to - from <= LEAF_CAP &&
            pair->key[to - 1] - pair->key[from] <= UINT32_MAX);
}

static void pair_store(const Pair *pair, unsigned from, unsigned to, Leaf *l)
{
    l->base = from < to ? pair->key[from] : 0;
    l->n = to - from;
    for (unsigned i = from; i < to; i++) {
        l->delta[i - from] = pair->key[i] - l->base;
        l->val[i - from] = pair->val[i];
    }
}

/* Move entries so that both leaves have half of them. Return false if that is
 * not possible: the keys are too far apart. */
static bool share_leaves(KtMap *m, Inner *parent, unsigned left)
{
    Leaf *a = leaf_at(m, parent->child[left]);
    Leaf *b = leaf_at(m, parent->child[left + 1]);
    Pair pair;
    unsigned half;

    pair.n = 0;
    pair_add(&pair, a);
    pair_add(&pair, b);
    half = pair.n / 2;
    if (!half || !pair_fits(&pair, 0, half) ||
        !pair_fits(&pair, half, pair.n)) {
        return false;
    }
    pair_store(&pair, 0, half, a);
    pair_store(&pair, half, pair.n, b);
    parent->key[left + 1] = pair.key[half];
    return true;
}

/* Merge two leaves into the left one; return false if that is not possible. */
static bool merge_leaves(KtMap *m, Inner *parent, unsigned left)
{
    Leaf *a = leaf_at(m, parent->child[left]);
    Leaf *b = leaf_at(m, parent->child[left + 1]);
    Pair pair;

    if (a->n && b->n && a->n + b->n > LEAF_MERGED) {
        return false;
    }
    pair.n = 0;
    pair_add(&pair, a);
    pair_add(&pair, b);
    if (!pair_fits(&pair, 0, pair.n)) {
        return false;
    }
    pair_store(&pair, 0, pair.n, a);
    a->next = b->next;
    return true;
}

/* ---- insert ------------------------------------------------------------- */

static void inner_put(Inner *p, unsigned pos, uint64_t key, uint32_t child)
{
    memmove(&p->key[pos + 1], &p->key[pos], (p->n - pos) * sizeof(*p->key));
    memmove(&p->child[pos + 1], &p->child[pos],
            (p->n - pos) * sizeof(*p->child));
    p->key[pos] = key;
    p->child[pos] = child;
    p->n++;
}

/* Move the children after @at to a new node, which the caller has reserved. */
static uint32_t split_inner(KtMap *m, Inner *p, unsigned at)
{
    uint32_t index = kt_pool_alloc(&m->nodes);
    Inner *right = inner_at(m, index);

    right->n = p->n - at;
    memcpy(right->key, &p->key[at], right->n * sizeof(*p->key));
    memcpy(right->child, &p->child[at], right->n * sizeof(*p->child));
    p->n = at;
    return index;
}

static void add_root(KtMap *m, uint64_t key, uint32_t child)
{
    uint32_t index = kt_pool_alloc(&m->nodes);
    Inner *root = inner_at(m, index);

    root->n = 2;
    root->key[0] = 0;
    root->child[0] = m->root;
    root->key[1] = key;
    root->child[1] = child;
    m->root = index;
    m->height++;
}

/* Add @child as the right neighbour of the node at the end of @path. */
static void add_child(KtMap *m, const Path *path, uint64_t key,
                      uint32_t child)
{
    for (unsigned level = 1; level <= m->height; level++) {
        Inner *p = inner_at(m, path->node[level]);
        unsigned pos = path->pos[level] + 1;
        unsigned at = pos == INNER_CAP ? INNER_CAP * 3 / 4 : INNER_CAP / 2;
        uint32_t right;

        if (p->n < INNER_CAP) {
            inner_put(p, pos, key, child);
            return;
        }
        right = split_inner(m, p, at);
        if (pos <= at) {
            inner_put(p, pos, key, child);
        } else {
            inner_put(inner_at(m, right), pos - at, key, child);
        }
        key = inner_at(m, right)->key[0];
        child = right;
    }
    add_root(m, key, child);
}

/* Move the entries from @at on to a new leaf, for keys >= @sep. */
static void split_leaf(KtMap *m, const Path *path, uint32_t leaf, unsigned at,
                       uint64_t sep)
{
    uint32_t index = kt_pool_alloc(&m->nodes);
    Leaf *l = leaf_at(m, leaf);
    Leaf *right = leaf_at(m, index);

    right->base = l->base;
    right->n = l->n - at;
    memcpy(right->delta, &l->delta[at], right->n * sizeof(*l->delta));
    memcpy(right->val, &l->val[at], right->n * sizeof(*l->val));
    right->next = l->next;
    l->next = index;
    l->n = at;
    add_child(m, path, sep, index);
}

static bool share_full(KtMap *m, const Path *path)
{
    Inner *p;
    unsigned pos;

    if (m->height == 0) {
        return false;
    }
    p = inner_at(m, path->node[1]);
    pos = path->pos[1];
    if (pos + 1 < p->n && leaf_at(m, p->child[pos + 1])->n < LEAF_SHARE &&
        share_leaves(m, p, pos)) {
        return true;
    }
    return pos > 0 && leaf_at(m, p->child[pos - 1])->n < LEAF_SHARE &&
           share_leaves(m, p, pos - 1);
}

/* Return true if @key is within 4 GiB of all entries of the leaf. */
static bool leaf_spans(const Leaf *l, uint64_t key)
{
    if (l->n == 0) {
        return true;
    }
    if (key < l->base + l->delta[0]) {
        return l->base + l->delta[l->n - 1] - key <= UINT32_MAX;
    }
    return key - (l->base + l->delta[0]) <= UINT32_MAX;
}

static void leaf_rebase(Leaf *l, uint64_t base)
{
    for (unsigned i = 0; i < l->n; i++) {
        l->delta[i] += l->base - base;
    }
    l->base = base;
}

static void leaf_put(Leaf *l, unsigned pos, uint64_t key, uint32_t val)
{
    if (l->n == 0) {
        l->base = key;
    } else if (key < l->base) {
        leaf_rebase(l, key);
    } else if (key - l->base > UINT32_MAX) {
        leaf_rebase(l, l->base + l->delta[0]);
    }
    memmove(&l->delta[pos + 1], &l->delta[pos],
            (l->n - pos) * sizeof(*l->delta));
    memmove(&l->val[pos + 1], &l->val[pos], (l->n - pos) * sizeof(*l->val));
    l->delta[pos] = key - l->base;
    l->val[pos] = val;
    l->n++;
}

/* Add an entry to its leaf, if there is room and nothing else must change. */
static bool leaf_insert(KtMap *m, Leaf *l, unsigned pos, uint64_t key,
                        uint32_t val)
{
    if (pos > 0 && leaf_entry(l, pos - 1).key == key) {
        l->val[pos - 1] = val;
        return true;
    }
    if (l->n >= LEAF_CAP || !leaf_spans(l, key)) {
        return false;
    }
    leaf_put(l, pos, key, val);
    m->n++;
    return true;
}

/* Try to insert once. Return false if only room was made: try again. */
static bool try_insert(KtMap *m, uint64_t key, uint32_t val)
{
    Path path;
    uint32_t leaf = descend(m, key, &path);
    Leaf *l = leaf_at(m, leaf);
    unsigned pos = leaf_upper(l, key);

    if (leaf_insert(m, l, pos, key, val)) {
        return true;
    }
    m->version++;
    if (!leaf_spans(l, key)) {
        /* The key lies beyond one end of the leaf, never between its
         * entries. */
        split_leaf(m, &path, leaf, pos,
                   pos < l->n ? leaf_entry(l, 0).key : key);
    } else if (share_full(m, &path)) {
        return false;
    } else if (pos == LEAF_CAP) {
        /* A key behind the last one: the leaf stays full, so ascending keys
         * make full leaves. */
        split_leaf(m, &path, leaf, pos, key);
    } else {
        split_leaf(m, &path, leaf, LEAF_CAP / 2,
                   leaf_entry(l, LEAF_CAP / 2).key);
    }
    return false;
}

bool kt_map_insert_hint(const KtMapHint *h, uint32_t val)
{
    KtMap *m = h->map;

    if (h->leaf && h->version == m->version) {
        Leaf *l = leaf_at(m, h->leaf);

        if (leaf_insert(m, l, leaf_upper(l, h->key), h->key, val)) {
            return true;
        }
    }
    return kt_map_insert(m, h->key, val);
}

bool kt_map_insert(KtMap *m, uint64_t key, uint32_t val)
{
    if (!kt_pool_reserve(&m->nodes, m->height + 3)) {
        return false;
    }
    if (!m->root) {
        m->root = kt_pool_alloc(&m->nodes);
        *leaf_at(m, m->root) = (Leaf) { 0 };
        m->version++;
    }
    while (!try_insert(m, key, val)) {
        continue;
    }
    return true;
}

/* ---- remove ------------------------------------------------------------- */

static void inner_drop(Inner *p, unsigned pos)
{
    p->n--;
    memmove(&p->key[pos], &p->key[pos + 1], (p->n - pos) * sizeof(*p->key));
    memmove(&p->child[pos], &p->child[pos + 1],
            (p->n - pos) * sizeof(*p->child));
}

/* Move children between two inner nodes until the left one has @want. */
static void level_inner(Inner *a, Inner *b, unsigned want)
{
    if (want > a->n) {
        unsigned k = want - a->n;

        memcpy(&a->key[a->n], b->key, k * sizeof(*a->key));
        memcpy(&a->child[a->n], b->child, k * sizeof(*a->child));
        b->n -= k;
        memmove(b->key, &b->key[k], b->n * sizeof(*b->key));
        memmove(b->child, &b->child[k], b->n * sizeof(*b->child));
    } else {
        unsigned k = a->n - want;

        memmove(&b->key[k], b->key, b->n * sizeof(*b->key));
        memmove(&b->child[k], b->child, b->n * sizeof(*b->child));
        memcpy(b->key, &a->key[want], k * sizeof(*a->key));
        memcpy(b->child, &a->child[want], k * sizeof(*a->child));
        b->n += k;
    }
    a->n = want;
}

/* Merge two neighbours, or balance them. Return true if they were merged. */
static bool join_inner(KtMap *m, Inner *parent, unsigned left)
{
    Inner *a = inner_at(m, parent->child[left]);
    Inner *b = inner_at(m, parent->child[left + 1]);
    unsigned total = a->n + b->n;

    if (total <= INNER_MERGED) {
        level_inner(a, b, total);
        return true;
    }
    level_inner(a, b, total / 2);
    parent->key[left + 1] = b->key[0];
    return false;
}

static bool join_leaves(KtMap *m, Inner *parent, unsigned left)
{
    if (merge_leaves(m, parent, left)) {
        return true;
    }
    share_leaves(m, parent, left);
    return false;
}

static bool too_small(const KtMap *m, unsigned level, uint32_t node)
{
    return level == 0 ? leaf_at(m, node)->n < LEAF_MIN :
                        inner_at(m, node)->n < INNER_MIN;
}

static void refill(KtMap *m, const Path *path, uint32_t node)
{
    if (m->height == 0 || !too_small(m, 0, node)) {
        return;
    }
    m->version++;
    for (unsigned level = 0;
         level < m->height && too_small(m, level, node); level++) {
        Inner *parent = inner_at(m, path->node[level + 1]);
        unsigned pos = path->pos[level + 1];
        unsigned left = pos > 0 ? pos - 1 : 0;
        uint32_t right = parent->child[left + 1];

        if (!(level ? join_inner : join_leaves)(m, parent, left)) {
            break;
        }
        kt_pool_release(&m->nodes, right);
        inner_drop(parent, left + 1);
        node = path->node[level + 1];
    }
    while (m->height > 0 && inner_at(m, m->root)->n == 1) {
        uint32_t old = m->root;

        m->root = inner_at(m, old)->child[0];
        kt_pool_release(&m->nodes, old);
        m->height--;
    }
}

bool kt_map_remove(KtMap *m, uint64_t key)
{
    Path path;
    uint32_t leaf;
    Leaf *l;
    unsigned pos;

    if (m->n == 0) {
        return false;
    }
    leaf = descend(m, key, &path);
    l = leaf_at(m, leaf);
    pos = leaf_upper(l, key);
    if (pos == 0 || leaf_entry(l, pos - 1).key != key) {
        return false;
    }
    l->n--;
    m->n--;
    memmove(&l->delta[pos - 1], &l->delta[pos],
            (l->n + 1 - pos) * sizeof(*l->delta));
    memmove(&l->val[pos - 1], &l->val[pos],
            (l->n + 1 - pos) * sizeof(*l->val));
    refill(m, &path, leaf);
    return true;
}
