/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The stacks and the cache of a row, as its identity: see block-row.h. */
#include "monitor-cmds/output/block-row.h"

bool mc_prints_identity(const McOut *out)
{
    return out->verbose || out->json;
}

static void add_stack(McIdentityMaker *m, const McOut *out,
                      McIdentityStack which, KtStackId id, bool exact)
{
    const GsKernel *k = mc_symbols(out->ctx);
    McStack stack = mc_stack(out->ctx->tracer, id);
    GsSymbol sym;

    stack.exact = exact;
    mc_identity_stack(m, which);
    for (unsigned i = 0; i < stack.n; i++) {
        McFrame frame = mc_frame(&stack, i);

        if (mc_frame_symbol(k, &frame, &sym)) {
            mc_identity_frame(m, sym.module, sym.name, frame.pc - sym.va);
        } else {
            mc_identity_frame(m, NULL, NULL, 0);
        }
    }
    mc_identity_stack_end(m, stack.stop == GS_STOP_END ||
                             stack.stop == GS_STOP_USER);
}

/* Of a block that was queued by kfree_rcu(), this call is the cause of the
 * free. Which worker freed the block is chance. */
static void add_block(McIdentityMaker *m, const McOut *out, const KtBlock *b)
{
    if (b->rcu_queued) {
        add_stack(m, out, MC_IDENTITY_FREE, b->rcu_stack, false);
    } else if (b->state == KT_BLOCK_FREED) {
        add_stack(m, out, MC_IDENTITY_FREE, b->free_stack, false);
    }
    add_stack(m, out, MC_IDENTITY_ALLOC, b->alloc_stack, false);
}

/* Add the title "@act CACHE from FUNCTION". */
static void add_alt(McIdentityMaker *m, const McOut *out, const char *act,
                    const KtBlock *b)
{
    g_autofree char *cache = NULL;
    g_autofree char *what = NULL;
    KtCacheInfo info;

    cache = b->cache.v && kt_tracer_cache(out->ctx->tracer, b->cache, &info) ?
            mc_identity_cache(info.name) : g_strdup(kt_layer_name(b->layer));
    what = g_strconcat(act, " ", cache, NULL);
    mc_identity_alt(m, what, MC_IDENTITY_ALLOC);
}

static void add_alts(McIdentityMaker *m, const McOut *out, const KtError *e)
{
    if (e->kind == KT_ERR_OBJECTS_LEFT) {
        add_alt(m, out, MC_KIND_LEAK " of", &e->block);
    } else if (kt_error_is_access(e->kind)) {
        add_alt(m, out, "bad-access to", &e->block);
    } else if (e->kind != KT_ERR_OVERLAP) {
        add_alt(m, out, "bad-free of", &e->block);
    }
}

static const char *hook_name(const McOut *out, KtHookId hook)
{
    return hook.v ? kt_tracer_hook_name(out->ctx->tracer, hook) : NULL;
}

McIdentity *mc_identity_of_error(const McOut *out, const KtError *e)
{
    g_autoptr(McIdentityMaker) m = mc_identity_begin(kt_error_name(e->kind));

    add_stack(m, out, MC_IDENTITY_ERROR, e->stack,
              kt_error_is_access(e->kind));
    if (e->has_block) {
        add_block(m, out, &e->block);
        add_alts(m, out, e);
    }
    return mc_identity_end(m, MC_IDENTITY_ERROR, hook_name(out, e->hook));
}

McIdentity *mc_identity_of_leak(const McOut *out, const KtBlock *b)
{
    g_autoptr(McIdentityMaker) m = mc_identity_begin(MC_KIND_LEAK);

    add_stack(m, out, MC_IDENTITY_ALLOC, b->alloc_stack, false);
    add_alt(m, out, MC_KIND_LEAK " of", b);
    return mc_identity_end(m, MC_IDENTITY_ALLOC, hook_name(out, b->hook));
}
