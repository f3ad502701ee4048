/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stacks as a tree, for a flame graph: frames of one name below one node are
 * one node, and its values are the sums of its stacks.
 *
 *     stacks, leaf first        tree                      in pre-order
 *     kmalloc f root   64       (all) 96                  depth 0
 *     kmalloc g root   32         root 96                 depth 1
 *                                   f 64                  depth 2
 *                                     kmalloc 64          depth 3
 *                                   g 32                  depth 2
 *                                     kmalloc 32          depth 3
 *
 * In an inverted tree the leaves of the stacks are below the root. Nodes with
 * small values are cut: one node replaces all children of a node that are cut.
 * It has the number of their stacks and the sums of their values, so all nodes
 * still add up to the root. One thread.
 */
#ifndef MC_STACK_TREE_H
#define MC_STACK_TREE_H

#include "monitor-cmds/export/heap-profile.h"
#include "monitor-cmds/report/strings.h"

/* Most nodes of a tree, those for what was cut included. */
#define MC_TREE_NODES   20000u
/* A node is cut if it has less than this part of the root, of each value. */
#define MC_TREE_PART    5000

/* The values of a node. */
#define MC_TREE_VALUES  4
extern const McTopId mc_tree_value[MC_TREE_VALUES];

/**
 * struct McTreeNode - a node
 * @depth: distance to the root
 * @name: of the frame, in the table of strings
 * @cut: not 0: the node stands for so many stacks that were cut, and has no
 *       name
 * @base: its values in the other run
 */
typedef struct McTreeNode {
    unsigned depth;
    unsigned name;
    uint64_t cut;
    int64_t value[MC_TREE_VALUES];
    int64_t base[MC_TREE_VALUES];
} McTreeNode;

/**
 * mc_stack_tree_new() - (owned) build a tree
 * @base: (nullable) another run, whose stacks are joined with those of @p by
 *        the names of their frames
 * @strings: names are added to this table
 * @inverted: the leaves are next to the root
 * @max: most nodes, at least 2
 * @place: (nullable, out) of each stack of @p, the number of the node in which
 *         it ends; if this was cut, of that which stands for it
 *
 * Returns: McTreeNode in pre-order, the children of a node by name; the first
 * one is the root.
 */
GArray *mc_stack_tree_new(const McHeapProfile *p, const McHeapProfile *base,
                          McStrings *strings, bool inverted, unsigned max,
                          unsigned *place);

#endif /* MC_STACK_TREE_H */
