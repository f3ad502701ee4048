/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stacks as a tree: see report-data.h. */
#include "monitor-cmds/report/report-data.h"

#include <string.h>

const McTopId mc_tree_value[MC_TREE_VALUES] = {
    MC_TOP_live, MC_TOP_blocks, MC_TOP_reserved, MC_TOP_allocs,
};

/** struct Node - a node while the tree is built. @stacks: in it and below;
 *  @parent: an index; those of children are larger */
typedef struct Node {
    unsigned parent;
    unsigned name;
    uint64_t stacks;
    int64_t value[MC_TREE_VALUES];
    int64_t base[MC_TREE_VALUES];
    bool kept;
} Node;

/** struct Tree - @node: Node, the root first; @ids: of a Child, its index;
 *  @put: of each node, its number in the result + 1; 0: it is below a cut one;
 *  @leaf: (nullable) of each stack, its node */
typedef struct Tree {
    const McHeapProfile *profile;
    McStrings *strings;
    GArray *node;
    GHashTable *ids;
    unsigned *name_of_frame;
    unsigned *put;
    unsigned *leaf;
} Tree;

typedef struct Child {
    unsigned parent;
    unsigned name;
} Child;

static guint hash_child(gconstpointer p)
{
    const Child *c = p;
    uint64_t both = (uint64_t)c->parent << 32 | c->name;

    return (guint)((both * 0x9e3779b97f4a7c15ull) >> 32);
}

static gboolean equal_children(gconstpointer a, gconstpointer b)
{
    const Child *x = a, *y = b;

    return x->parent == y->parent && x->name == y->name;
}

static Node *node_at(const Tree *t, unsigned i)
{
    return &g_array_index(t->node, Node, i);
}

/* ---- building ------------------------------------------------------------ */

static void name_frames(Tree *t, const McHeapProfile *p)
{
    const GArray *frame = p->frame;

    g_free(t->name_of_frame);
    t->name_of_frame = g_new(unsigned, frame->len + 1);
    for (unsigned i = 0; i < frame->len; i++) {
        g_autoptr(GString) name = g_string_new(NULL);

        mc_put_frame(name, &g_array_index(frame, McProfileFrame, i),
                     MC_FRAMES_FUNCTION);
        t->name_of_frame[i] = mc_strings_add(t->strings, name->str);
    }
}

/* Return the index of the child of that name; add it if it is new. */
static unsigned child_of(Tree *t, unsigned parent, unsigned name)
{
    const Child key = { parent, name };
    const Node new = { .parent = parent, .name = name };
    gpointer id;

    if (g_hash_table_lookup_extended(t->ids, &key, NULL, &id)) {
        return GPOINTER_TO_UINT(id);
    }
    g_array_append_val(t->node, new);
    g_hash_table_insert(t->ids, g_memdup2(&key, sizeof(key)),
                        GUINT_TO_POINTER(t->node->len - 1));
    return t->node->len - 1;
}

static void add_values(Node *n, const McProfileStack *s, bool base)
{
    int64_t *to = base ? n->base : n->value;

    n->stacks++;
    for (unsigned i = 0; i < MC_TREE_VALUES; i++) {
        to[i] += s->value[mc_tree_value[i]];
    }
}

/* Return the node in which the stack ends. */
static unsigned add_stack(Tree *t, const McHeapProfile *p,
                          const McProfileStack *s, bool inverted)
{
    const bool base = p != t->profile;
    unsigned at = 0;

    add_values(node_at(t, 0), s, base);
    for (unsigned i = 0; i < s->n; i++) {
        unsigned step = inverted ? i : s->n - 1 - i;
        unsigned frame = g_array_index(p->path, unsigned, s->first + step);

        at = child_of(t, at, t->name_of_frame[frame]);
        add_values(node_at(t, at), s, base);
    }
    return at;
}

static void add_stacks(Tree *t, const McHeapProfile *p, bool inverted)
{
    const GArray *stack = p->stack;

    name_frames(t, p);
    for (unsigned i = 0; i < stack->len; i++) {
        unsigned end = add_stack(t, p, &g_array_index(stack, McProfileStack,
                                                      i), inverted);

        if (t->leaf && p == t->profile) {
            t->leaf[i] = end;
        }
    }
}

/* ---- cutting ------------------------------------------------------------- */

static bool is_large(const Node *n, const Node *root, int64_t part)
{
    for (unsigned i = 0; i < MC_TREE_VALUES; i++) {
        if ((n->value[i] > 0 && n->value[i] >= root->value[i] / part) ||
            (n->base[i] > 0 && n->base[i] >= root->base[i] / part)) {
            return true;
        }
    }
    return false;
}

/* Mark the nodes that are kept. Return how many there are, with those that
 * stand for what is cut. */
static unsigned mark(Tree *t, int64_t part)
{
    g_autofree bool *has_cut = g_new0(bool, t->node->len);
    unsigned n = 1;

    node_at(t, 0)->kept = true;
    for (unsigned i = 1; i < t->node->len; i++) {
        Node *node = node_at(t, i);
        bool whole = node_at(t, node->parent)->kept;

        node->kept = whole && is_large(node, node_at(t, 0), part);
        n += node->kept || (whole && !has_cut[node->parent]);
        has_cut[node->parent] |= whole && !node->kept;
    }
    return n;
}

/* Cut more until there are few enough nodes. */
static void cut(Tree *t, unsigned max)
{
    int64_t part = MC_TREE_PART;

    while (mark(t, part) > max && part > 1) {
        part = part * 3 / 4;
    }
}

/* ---- the nodes in order -------------------------------------------------- */

typedef struct Order {
    const Tree *tree;
    GArray *out;
} Order;

/* By parent, and then by name; what is cut comes last. */
static int compare_nodes(gconstpointer a, gconstpointer b, gpointer opaque)
{
    const Tree *t = opaque;
    const Node *x = node_at(t, *(const unsigned *)a);
    const Node *y = node_at(t, *(const unsigned *)b);

    if (x->parent != y->parent) {
        return x->parent < y->parent ? -1 : 1;
    }
    if (x->kept != y->kept) {
        return x->kept ? -1 : 1;
    }
    return strcmp(mc_strings_text(t->strings, x->name),
                  mc_strings_text(t->strings, y->name));
}

/* Return (owned) the indexes of all nodes but the root whose parent is kept,
 * siblings next to each other. */
static GArray *siblings(const Tree *t)
{
    GArray *list = g_array_new(FALSE, FALSE, sizeof(unsigned));

    for (unsigned i = 1; i < t->node->len; i++) {
        if (node_at(t, node_at(t, i)->parent)->kept) {
            g_array_append_val(list, i);
        }
    }
    g_array_sort_with_data(list, compare_nodes, (gpointer)t);
    return list;
}

static void put_node(GArray *out, const Node *n, unsigned depth)
{
    McTreeNode new = { .depth = depth, .name = n->kept ? n->name : 0 };
    McTreeNode *last = out->len ?
        &g_array_index(out, McTreeNode, out->len - 1) : NULL;

    if (n->kept || !last || !last->cut || last->depth != depth) {
        g_array_append_val(out, new);
        last = &g_array_index(out, McTreeNode, out->len - 1);
    }
    last->cut += n->kept ? 0 : n->stacks;
    for (unsigned i = 0; i < MC_TREE_VALUES; i++) {
        last->value[i] += n->value[i];
        last->base[i] += n->base[i];
    }
}

/** struct Step - a node whose children, list[@at] to list[@end - 1], are being
 *  put */
typedef struct Step {
    unsigned at, end;
} Step;

/* Return the children of the node @parent in the list. @first: of each node the
 * index of its first child in the list, plus 1 */
static Step children(const Tree *t, const GArray *list, const unsigned *first,
                     unsigned parent)
{
    Step s = { first[parent] - 1, first[parent] - 1 };

    if (!first[parent]) {
        return (Step) { 0, 0 };
    }
    while (s.end < list->len &&
           node_at(t, g_array_index(list, unsigned, s.end))->parent == parent) {
        s.end++;
    }
    return s;
}

/* Walk without recursion: a stack may be deep. */
static void put_all(const Tree *t, const GArray *list, const unsigned *first,
                    GArray *out)
{
    g_autoptr(GArray) todo = g_array_new(FALSE, FALSE, sizeof(Step));
    Step s = children(t, list, first, 0);

    put_node(out, node_at(t, 0), 0);
    t->put[0] = 1;
    g_array_append_val(todo, s);
    while (todo->len) {
        Step *now = &g_array_index(todo, Step, todo->len - 1);
        unsigned id;

        if (now->at == now->end) {
            g_array_set_size(todo, todo->len - 1);
            continue;
        }
        id = g_array_index(list, unsigned, now->at++);
        put_node(out, node_at(t, id), todo->len);
        t->put[id] = out->len;
        s = node_at(t, id)->kept ? children(t, list, first, id) : (Step) { 0 };
        g_array_append_val(todo, s);
    }
}

static GArray *in_order(const Tree *t)
{
    g_autoptr(GArray) list = siblings(t);
    g_autofree unsigned *first = g_new0(unsigned, t->node->len);
    GArray *out = g_array_new(FALSE, TRUE, sizeof(McTreeNode));

    for (unsigned i = list->len; i-- > 0;) {
        unsigned id = g_array_index(list, unsigned, i);

        first[node_at(t, id)->parent] = i + 1;
    }
    put_all(t, list, first, out);
    return out;
}

/* Turn the nodes in which stacks end into numbers of the result. */
static void find_places(const Tree *t)
{
    for (unsigned i = 0; t->leaf && i < t->profile->stack->len; i++) {
        unsigned at = t->leaf[i];

        while (!t->put[at]) {
            at = node_at(t, at)->parent;
        }
        t->leaf[i] = t->put[at] - 1;
    }
}

GArray *mc_stack_tree_new(const McHeapProfile *p, const McHeapProfile *base,
                          McStrings *strings, bool inverted, unsigned max,
                          unsigned *place)
{
    const Node root = { .name = mc_strings_add(strings, "all") };
    Tree t = { .profile = p, .strings = strings, .leaf = place };
    GArray *out;

    t.node = g_array_new(FALSE, TRUE, sizeof(Node));
    t.ids = g_hash_table_new_full(hash_child, equal_children, g_free, NULL);
    g_array_append_val(t.node, root);
    add_stacks(&t, p, inverted);
    if (base) {
        add_stacks(&t, base, inverted);
    }
    cut(&t, max);
    t.put = g_new0(unsigned, t.node->len);
    out = in_order(&t);
    find_places(&t);
    g_array_unref(t.node);
    g_hash_table_unref(t.ids);
    g_free(t.name_of_frame);
    g_free(t.put);
    return out;
}
