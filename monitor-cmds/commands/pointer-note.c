/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a pointer leads to, see commands.h. Blocks are looked up here; all
 * else is what `ka whatis` says first.
 */
#include "monitor-cmds/commands/commands.h"

#define FLAG_BITS 7ull          /* rb_node, mapping, xarray, compound page */

static void put_stack(McOut *out, GString *to, const char *word, KtStackId id,
                      uint64_t us)
{
    McStack stack = mc_stack(out->ctx->tracer, id);

    g_string_append_printf(to, " %s[", word);
    for (unsigned i = 0; i < stack.n; i++) {
        McFrame frame = mc_frame(&stack, i);

        g_string_append(to, i ? " " : "");
        mc_put_pc(to, out->symbols, &frame);
    }
    g_string_append_printf(to, "]@%" PRIu64 "us", us);
}

static void put_cache(McOut *out, GString *to, const KtBlock *b)
{
    KtCacheInfo cache;

    g_string_append_c(to, ' ');
    if (kt_tracer_cache(out->ctx->tracer, b->cache, &cache) && *cache.name) {
        mc_put_word(to, cache.name);
    } else {
        g_string_append(to, kt_layer_name(b->layer));
    }
}

char *mc_block_note(McOut *out, const KtBlock *b, uint64_t va)
{
    bool freed = b->state == KT_BLOCK_FREED;
    GString *to = g_string_new(NULL);

    g_string_append_printf(to, "+%" PRIx64 " %c %016" PRIx64 "-%016" PRIx64
                           " (%" PRIx64 "/%" PRIx64 ")", va - b->va,
                           freed ? 'F' : 'A', b->va, b->va + b->requested - 1,
                           b->requested, b->actual);
    put_cache(out, to, b);
    if (out->stacks) {
        put_stack(out, to, "alloc", b->alloc_stack, b->alloc_us);
    }
    if (out->stacks && freed) {
        put_stack(out, to, "free", b->free_stack, b->free_us);
    }
    return g_string_free(to, FALSE);
}

/* Return false for what is no address of the kernel, error pointers among
 * them. */
static bool is_address(const GsKernel *k, uint64_t va)
{
    return k && va >= gs_kernel_lowest(k) && va < -4096ull;
}

char *mc_pointer_note(McOut *out, uint64_t word, bool *freed)
{
    const GsKernel *k = mc_symbols(out->ctx);
    uint64_t plain = k ? gs_untag(gs_kernel_tag_bits(k), word) : word;
    KtAddress w = {
        .va = plain & ~FLAG_BITS, .o = { out->ctx->tracer, k, out->ctx->vm },
    };
    g_autoptr(GString) text = g_string_new(NULL);

    *freed = false;
    if (!is_address(k, w.va)) {
        return NULL;
    }
    w.has_block = mc_find_block(out, w.va, &w.block);
    if (w.has_block) {
        *freed = w.block.state == KT_BLOCK_FREED;
        return mc_block_note(out, &w.block, w.va);
    }
    return mc_whatis_pointer(&w, text) ?
           g_string_free(g_steal_pointer(&text), FALSE) : NULL;
}

void mc_put_pointer_note(McOut *out, GString *to, uint64_t word)
{
    bool freed;
    g_autofree char *note = mc_pointer_note(out, word, &freed);

    if (note) {
        g_string_append_printf(to, " %c %s", freed ? '!' : '>', note);
    }
}
