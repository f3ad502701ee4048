/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The former owner of a block to which a use after free belongs: see
 * block-row.h.
 *
 *     A allocates and frees the block       a past life
 *     B allocates and frees it              the last life, that of the error
 *     A reads it
 *
 * The code that reads is A's, and B may be innocent. Code is told apart by
 * modules, because nothing says which parts of the kernel's image belong
 * together.
 */
#include "monitor-cmds/output/block-row.h"

/* Most past lives that are looked at, the newest first. */
#define MOST_LIVES 1024

static bool has_module(const GsKernel *k, const McStack *stack,
                       const char *name)
{
    for (unsigned i = 0; i < stack->n; i++) {
        McFrame frame = mc_frame(stack, i);
        GsSymbol sym;

        if (mc_frame_symbol(k, &frame, &sym) &&
            !g_strcmp0(sym.module, name)) {
            return true;
        }
    }
    return false;
}

static bool is_of_module(const GsKernel *k, const McStack *stack,
                         const char *name)
{
    return !g_strcmp0(mc_stack_module(k, stack), name);
}

/** struct Lives - @lives: of KtBlock, past lives of the memory of @last, the
 *  newest first */
typedef struct Lives {
    const KtBlock *last;
    GArray *lives;
} Lives;

static bool collect(const KtBlock *b, void *opaque)
{
    Lives *l = opaque;

    if (b->layer == l->last->layer && b->free_us <= l->last->alloc_us) {
        g_array_append_vals(l->lives, b, 1);
    }
    return l->lives->len < MOST_LIVES;
}

/* Return (owned) past lives, of KtBlock, before that of the error. */
static GArray *lives_before(KtTracer *t, const KtError *e)
{
    Lives l = { &e->block, g_array_new(FALSE, FALSE, sizeof(KtBlock)) };

    kt_query_begin(t);
    kt_query_history(t, e->va, collect, &l);
    kt_query_end(t);
    return l.lives;
}

/* Does the module pass a test for one of the block's stacks? */
static bool owns(const McOut *o, const KtBlock *b, const char *module,
                 bool (*test)(const GsKernel *, const McStack *, const char *))
{
    const GsKernel *k = mc_symbols(o->ctx);
    McStack alloc = mc_stack(o->ctx->tracer, b->alloc_stack);
    McStack free = mc_stack(o->ctx->tracer, b->free_stack);

    return test(k, &alloc, module) || test(k, &free, module);
}

/* Return (owned) the name of the module that made the access; NULL if only code
 * of the kernel's image did. */
static char *module_of_access(const McOut *o, const KtError *e)
{
    const GsKernel *k = mc_symbols(o->ctx);
    McStack access = mc_stack(o->ctx->tracer, e->stack);

    access.exact = true;
    return k ? g_strdup(mc_stack_module(k, &access)) : NULL;
}

bool mc_former_owner(const McOut *o, const KtError *e, KtBlock *life)
{
    g_autofree char *module = NULL;
    g_autoptr(GArray) lives = NULL;

    if (e->kind != KT_ERR_USE_AFTER_FREE || !e->has_block) {
        return false;
    }
    module = module_of_access(o, e);
    if (!module || owns(o, &e->block, module, has_module)) {
        return false;
    }
    lives = lives_before(o->ctx->tracer, e);
    for (unsigned i = 0; i < lives->len; i++) {
        *life = g_array_index(lives, KtBlock, i);
        if (owns(o, life, module, is_of_module)) {
            return true;
        }
    }
    return false;
}
