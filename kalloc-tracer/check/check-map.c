/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Examine the nodes of a map. See exam.h and map-node.h.
 *
 * Each leaf is reached by a search from the root, for the first key that its
 * parents allow in it. So the examination also proves that searches end at the
 * right leaf, and it examines the inner nodes on the way.
 */
#include "kalloc-tracer/check/exam.h"

#include <inttypes.h>

#include "kalloc-tracer/model/map-node.h"

/* Range of keys that the parents allow in a node; @top is included. */
typedef struct Bounds {
    uint64_t lo;
    uint64_t top;
} Bounds;

static bool is_node(const KtMap *m, uint32_t node)
{
    return node && node < m->nodes.used;
}

static const char *map_name(KtMapId id)
{
    return id == KT_MAP_PAGES ? "pages" : "blocks";
}

/* The first key of an inner node is the lower bound, keys ascend, and the last
 * is not above the upper bound. */
static bool inner_is_sound(KtExam *x, const KtMap *m, uint32_t node,
                           const Bounds *b, KtMapId id)
{
    const Inner *p = inner_at(m, node);

    if (p->n < 1 || p->n > INNER_CAP) {
        kt_exam_found(x, KT_CHECK_MAP_NODE, "inner node %u of the map of %s "
                      "has %u children", node, map_name(id), p->n);
        return false;
    }
    if (p->key[0] != b->lo || p->key[p->n - 1] > b->top) {
        kt_exam_found(x, KT_CHECK_MAP_BOUNDS, "inner node %u of the map of "
                      "%s: from %" PRIx64 " on, its parent has %" PRIx64,
                      node, map_name(id), p->key[0], b->lo);
        return false;
    }
    for (unsigned i = 1; i < p->n; i++) {
        if (p->key[i] <= p->key[i - 1]) {
            kt_exam_found(x, KT_CHECK_MAP_ORDER, "inner node %u of the map "
                          "of %s, key %u", node, map_name(id), i);
            return false;
        }
    }
    return true;
}

static void count_node(KtExam *x, const KtMap *m, uint32_t node)
{
    if (x->whole && kt_index_set_add(&x->nodes, node)) {
        x->report.nodes++;
    }
}

/* Search the leaf of @key, and its bounds @b. Returns: 0 if a node on the way
 * is damaged. */
static uint32_t find_leaf(KtExam *x, const KtMap *m, KtMapId id, uint64_t key,
                          Bounds *b)
{
    uint32_t node = m->root;

    *b = (Bounds) { 0, UINT64_MAX };
    for (unsigned level = m->height;; level--) {
        const Inner *p;
        unsigned pos;

        if (!is_node(m, node)) {
            kt_exam_found(x, KT_CHECK_MAP_NODE, "node %u of the map of %s on "
                          "the way to %" PRIx64 ", level %u, was never made",
                          node, map_name(id), key, level);
            return 0;
        }
        if (level > 0) {
            count_node(x, m, node);
        }
        if (level == 0 || !inner_is_sound(x, m, node, b, id)) {
            return level == 0 ? node : 0;
        }
        p = inner_at(m, node);
        pos = inner_pos(p, key);
        b->lo = p->key[pos];
        b->top = pos + 1 < p->n ? p->key[pos + 1] - 1 : b->top;
        node = p->child[pos];
    }
}

static bool leaf_is_sound(KtExam *x, const KtMap *m, KtMapId id, uint32_t leaf,
                          const Bounds *b)
{
    const Leaf *l = leaf_at(m, leaf);

    if (l->n > LEAF_CAP || (!l->n && m->height)) {
        kt_exam_found(x, KT_CHECK_MAP_NODE, "leaf %u of the map of %s has %u "
                      "entries", leaf, map_name(id), l->n);
        return false;
    }
    if (x->whole && kt_index_set_has(&x->nodes, leaf)) {
        kt_exam_found(x, KT_CHECK_MAP_NODE, "leaf %u of the map of %s is in "
                      "it twice", leaf, map_name(id));
        return false;
    }
    for (unsigned i = 0; i < l->n; i++) {
        uint64_t key = leaf_entry(l, i).key;

        if (key < b->lo || key > b->top) {
            kt_exam_found(x, KT_CHECK_MAP_BOUNDS, "%" PRIx64 " in leaf %u of "
                          "the map of %s, which is from %" PRIx64 " to %"
                          PRIx64, key, leaf, map_name(id), b->lo, b->top);
            return false;
        }
        if (i && l->delta[i] <= l->delta[i - 1]) {
            kt_exam_found(x, KT_CHECK_MAP_ORDER, "%" PRIx64 " in leaf %u of "
                          "the map of %s", key, leaf, map_name(id));
            return false;
        }
    }
    return true;
}

/* Compare the leaf with the link of the leaf before; keep its own link in @w
 * for the next one. */
static void check_chain(KtExam *x, const KtMap *m, KtLeafWalk *w,
                        uint32_t leaf, const Bounds *b)
{
    const Leaf *l = leaf_at(m, leaf);
    bool last = b->top == UINT64_MAX;

    if (w->next && w->next != leaf) {
        kt_exam_found(x, KT_CHECK_MAP_CHAIN, "leaf %u of the map of %s, from "
                      "%" PRIx64 " on, is linked as %u", leaf,
                      map_name(w->map), b->lo, w->next);
    }
    if (last != (l->next == 0)) {
        kt_exam_found(x, KT_CHECK_MAP_CHAIN, "leaf %u of the map of %s is %s, "
                      "and links to %u", leaf, map_name(w->map),
                      last ? "the last" : "not the last", l->next);
    }
    w->next = l->next;
}

bool kt_exam_leaf(KtExam *x, KtLeafWalk *w)
{
    const KtMap *m = &x->m->map[w->map];
    const Leaf *l;
    uint32_t leaf;
    Bounds b;

    if (!m->root) {
        return false;
    }
    leaf = find_leaf(x, m, w->map, w->key, &b);
    if (!leaf) {
        return false;
    }
    if (leaf_is_sound(x, m, w->map, leaf, &b)) {
        check_chain(x, m, w, leaf, &b);
        count_node(x, m, leaf);
        l = leaf_at(m, leaf);
        for (unsigned i = 0; i < l->n; i++) {
            kt_exam_entry(x, w, leaf_entry(l, i));
        }
        kt_exam_step(x, l->n);
    }
    w->key = b.top + 1;
    return b.top != UINT64_MAX;
}

void kt_exam_map_end(KtExam *x, KtMapId id, uint64_t entries)
{
    const KtMap *m = &x->m->map[id];

    if (entries != m->n) {
        kt_exam_found(x, KT_CHECK_MAP_COUNT, "the map of %s: %" PRIu64
                      " entries, counted are %" PRIu64, map_name(id), entries,
                      m->n);
    }
    kt_exam_free_list(x, &m->nodes, &x->nodes, KT_CHECK_MAP_LOST,
                      "nodes of a map");
}
