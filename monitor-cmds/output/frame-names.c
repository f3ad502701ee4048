/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of frames, each looked up once for an answer: the stacks of a listing
 * have the same frames again and again, and a lookup costs more than printing
 * a row.
 *
 * Called by the forms, on the thread of the command; no locks. The names belong
 * to the McOut.
 */
#include "monitor-cmds/output/format.h"

#include <string.h>

#include "monitor-cmds/output/helper-functions.h"

/* All names are dropped when there are so many. */
#define MOST_NAMES 16384

static guint frame_hash(gconstpointer key)
{
    const McFrame *f = key;
    uint64_t h = f->pc * UINT64_C(0x9e3779b97f4a7c15);

    h ^= (f->leafward + f->era + f->exact) * UINT64_C(0xc2b2ae3d27d4eb4f);
    return (guint)(h >> 32);
}

static gboolean frame_equal(gconstpointer a, gconstpointer b)
{
    const McFrame *x = a, *y = b;

    return x->pc == y->pc && x->leafward == y->leafward && x->era == y->era &&
           x->exact == y->exact;
}

static void name_free(gpointer p)
{
    McFrameName *n = p;

    g_free((char *)n->full);
    g_free((char *)n->function);
    g_free(n);
}

/* Is the frame one of the allocator, or of another function that only does the
 * work of its caller? */
static bool is_helper(const GsKernel *k, const McFrame *f)
{
    g_autofree char *name = NULL;
    GsSymbol sym;

    if (!mc_frame_symbol(k, f, &sym) || sym.module) {
        return false;
    }
    name = mc_source_function(sym.name);
    return mc_is_helper(name);
}

static McFrameName *find_name(const GsKernel *k, const McFrame *f)
{
    McFrameName *n = g_new(McFrameName, 1);
    GString *full = g_string_new(NULL), *function = g_string_new(NULL);

    mc_put_pc(full, k, f);
    mc_put_function(function, k, f);
    *n = (McFrameName) {
        g_string_free(full, FALSE), g_string_free(function, FALSE),
        is_helper(k, f),
    };
    return n;
}

const McFrameName *mc_frame_name(McOut *o, const McFrame *f)
{
    McFrameName *n;

    if (!o->frame_names) {
        o->frame_names = g_hash_table_new_full(frame_hash, frame_equal, g_free,
                                               name_free);
    }
    if (o->names_of != o->symbols ||
        g_hash_table_size(o->frame_names) >= MOST_NAMES) {
        g_hash_table_remove_all(o->frame_names);
        o->names_of = o->symbols;
    }
    n = g_hash_table_lookup(o->frame_names, f);
    if (!n) {
        n = find_name(o->symbols, f);
        g_hash_table_insert(o->frame_names, g_memdup2(f, sizeof(*f)), n);
    }
    return n;
}

const char *mc_stack_module(const GsKernel *k, const McStack *stack)
{
    for (unsigned i = 0; k && i < stack->n; i++) {
        McFrame frame = mc_frame(stack, i);
        GsSymbol sym;

        if (mc_frame_symbol(k, &frame, &sym) && sym.module) {
            return sym.module;
        }
    }
    return NULL;
}
