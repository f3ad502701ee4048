/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stacks as a tree: order, sums, and what is cut. */
#include "tests/lib/test-main.h"
#include "tests/lib/export-world.h"
#include "monitor-cmds/report/report-data.h"

#include <string.h>

/* (owned) The nodes as "depth name live blocks", one a line. */
static char *tree_text(const McHeapProfile *p, bool inverted, unsigned max)
{
    g_autoptr(McStrings) strings = mc_strings_new();
    g_autoptr(GArray) tree = mc_stack_tree_new(p, NULL, strings, inverted, max,
                                               NULL);
    GString *s = g_string_new(NULL);

    for (unsigned i = 0; i < tree->len; i++) {
        const McTreeNode *n = &g_array_index(tree, McTreeNode, i);

        g_string_append_printf(s, "%u ", n->depth);
        if (n->cut) {
            g_string_append_printf(s, "(%" PRIu64 ")", n->cut);
        } else {
            g_string_append(s, mc_strings_text(strings, n->name));
        }
        g_string_append_printf(s, " %" PRId64 " %" PRId64 "\n", n->value[0],
                               n->value[1]);
    }
    return g_string_free(s, FALSE);
}

static void assert_tree(const McHeapProfile *p, bool inverted, unsigned max,
                        const char *expected)
{
    g_autofree char *got = tree_text(p, inverted, max);

    g_assert_cmpstr(got, ==, expected);
}

PROFILE_TEST(frames_of_one_name_are_one_node, "/stack-tree/one-name")
{
    export_stack(p, "kmalloc+0x1 g+0x1 root+0x1", 32, 1);
    export_stack(p, "kmalloc+0x1 f+0x1[ext4] root+0x1", 64, 2);
    export_stack(p, "kmalloc+0x1 g+0x2 root+0x9", 8, 1);
    assert_tree(p, false, MC_TREE_NODES,
                "0 all 104 4\n1 root 104 4\n2 f [ext4] 64 2\n"
                "3 kmalloc 64 2\n2 g 40 2\n3 kmalloc 40 2\n");
    assert_tree(p, true, MC_TREE_NODES,
                "0 all 104 4\n1 kmalloc 104 4\n2 f [ext4] 64 2\n"
                "3 root 64 2\n2 g 40 2\n3 root 40 2\n");
}

PROFILE_TEST(a_stack_may_end_in_a_node_that_has_children, "/stack-tree/ends")
{
    export_stack(p, "f+0x1 root+0x1", 16, 1);
    export_stack(p, "f+0x1 f+0x1 root+0x1", 8, 1);
    export_stack(p, "", 4, 1);
    assert_tree(p, false, MC_TREE_NODES,
                "0 all 28 3\n1 [no backtrace] 4 1\n1 root 24 2\n2 f 24 2\n"
                "3 f 8 1\n");
}

PROFILE_TEST(no_stacks_are_a_root, "/stack-tree/empty")
{
    assert_tree(p, false, MC_TREE_NODES, "0 all 0 0\n");
    assert_tree(p, true, 2, "0 all 0 0\n");
}

PROFILE_TEST(small_nodes_are_one_with_their_sum, "/stack-tree/cut")
{
    export_stack(p, "a+0x1 big+0x1", 1000000, 100000);
    export_stack(p, "b+0x1 small+0x1", 10, 3);
    export_stack(p, "c+0x1 small+0x1", 10, 3);
    export_stack(p, "d+0x1 tiny+0x1", 1, 1);
    assert_tree(p, false, MC_TREE_NODES,
                "0 all 1000021 100007\n1 big 1000000 100000\n"
                "2 a 1000000 100000\n1 (3) 21 7\n");
}

/* A node of many blocks but few bytes is kept. */
PROFILE_TEST(each_value_counts, "/stack-tree/each-value")
{
    export_stack(p, "a+0x1", 1000000, 10);
    export_stack(p, "b+0x1", 1, 10);
    assert_tree(p, false, MC_TREE_NODES,
                "0 all 1000001 20\n1 a 1000000 10\n1 b 1 10\n");
}

/* (owned) Many stacks: root, one of @n functions, one of three leaves. */
static McHeapProfile *many(unsigned n)
{
    McHeapProfile *p = mc_heap_profile_new();

    for (unsigned i = 0; i < 3 * n; i++) {
        g_autofree char *symbols = g_strdup_printf(
            "leaf%u+0x1 f%u+0x1 root+0x1", i % 3, i / 3);

        export_stack(p, symbols, 1 + i % 97, 1);
    }
    return p;
}

/* The parts of each node add up to at most the node, and the level below the
 * root adds up to the root. */
static void assert_sums(const GArray *tree)
{
    g_autofree int64_t *below = g_new0(int64_t, tree->len + 1);
    g_autofree unsigned *path = g_new0(unsigned, tree->len + 1);

    for (unsigned i = 0; i < tree->len; i++) {
        const McTreeNode *n = &g_array_index(tree, McTreeNode, i);

        path[n->depth] = i;
        if (n->depth) {
            below[path[n->depth - 1]] += n->value[0];
        }
    }
    for (unsigned i = 0; i < tree->len; i++) {
        g_assert_cmpint(below[i], <=,
                        g_array_index(tree, McTreeNode, i).value[0]);
    }
    g_assert_cmpint(below[0], ==, g_array_index(tree, McTreeNode, 0).value[0]);
}

TEST(there_are_few_enough_nodes, "/stack-tree/limit")
{
    g_autoptr(McHeapProfile) p = many(4000);
    const unsigned limits[] = { 10, 100, 1000, MC_TREE_NODES };

    for (unsigned i = 0; i < 2 * G_N_ELEMENTS(limits); i++) {
        g_autoptr(McStrings) strings = mc_strings_new();
        g_autoptr(GArray) tree = mc_stack_tree_new(p, NULL, strings, i % 2,
                                                   limits[i / 2], NULL);

        g_assert_cmpuint(tree->len, <=, limits[i / 2]);
        g_assert_cmpuint(tree->len, >=, 2);
        assert_sums(tree);
    }
}

/* Values of stacks at the places of their ends, and of all nodes below, are
 * those of the nodes. */
TEST(stacks_have_places, "/stack-tree/places")
{
    g_autoptr(McHeapProfile) p = many(40);
    g_autofree unsigned *place = g_new(unsigned, p->stack->len);

    for (unsigned i = 0; i < 4; i++) {
        g_autoptr(McStrings) strings = mc_strings_new();
        g_autoptr(GArray) tree = mc_stack_tree_new(p, NULL, strings, i % 2,
                                                   i / 2 ? 30 : 1000, place);
        g_autofree int64_t *sum = g_new0(int64_t, tree->len);

        for (unsigned k = 0; k < p->stack->len; k++) {
            g_assert_cmpuint(place[k], <, tree->len);
            sum[place[k]] += g_array_index(p->stack, McProfileStack,
                                           k).value[MC_TOP_live];
        }
        for (unsigned k = tree->len; k-- > 0;) {
            const McTreeNode *n = &g_array_index(tree, McTreeNode, k);
            unsigned above = k;

            g_assert_cmpint(sum[k], ==, n->value[0]);
            while (above && g_array_index(tree, McTreeNode, above).depth >=
                   n->depth) {
                above--;
            }
            sum[above] += k ? sum[k] : 0;
        }
    }
}
