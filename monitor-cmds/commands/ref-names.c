/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of what refers to a block: see commands.h.
 */
#include "monitor-cmds/commands/commands.h"


/* Return true if the kernel merged other caches into @cache. Then its objects
 * may be of several types. */
static bool is_merged(const McOut *out, const KtCacheInfo *cache)
{
    uint32_t at, size;
    int32_t users;

    return !gs_kernel_member(out->ctx->kernel, "kmem_cache", "refcount", &at,
                             &size) || size != sizeof(users) ||
           !mc_read_guest(out, cache->va + at, &users, sizeof(users)) ||
           users != 1;
}

char *mc_ref_member(const McOut *out, const KtBlock *b, uint64_t off)
{
    const GsKernel *k = out->ctx->kernel;
    KtCacheInfo cache;
    uint32_t size;

    if (b->layer != KT_LAYER_CACHE || off > UINT32_MAX ||
        !kt_tracer_cache(out->ctx->tracer, b->cache, &cache) ||
        !gs_kernel_type_size(k, cache.name, &size) || off >= size ||
        is_merged(out, &cache)) {
        return NULL;
    }
    return gs_kernel_member_at(k, cache.name, off);
}

char *mc_ref_symbol(const McOut *out, const KtRef *r)
{
    const GsKernel *k = out->ctx->kernel;
    GsSymbol sym;

    if ((r->place != KT_PLACE_DATA && r->place != KT_PLACE_CODE) ||
        !gs_kernel_symbolize(k, r->va, &sym)) {
        return NULL;
    }
    return g_strdup_printf("%s+0x%" PRIx64, sym.name, r->va - sym.va);
}

char *mc_ref_place(const McOut *out, const KtRef *r)
{
    char *symbol = mc_ref_symbol(out, r);

    if (symbol || r->place == KT_PLACE_REGISTER) {
        return symbol ? symbol : g_strdup(r->name);
    }
    if (r->place == KT_PLACE_BLOCK) {
        return g_strdup_printf("%016" PRIx64 "+0x%" PRIx64, r->owner.va,
                               r->va - r->owner.va);
    }
    return g_strdup_printf("%016" PRIx64, r->va);
}

/* Return (owned, nullable) the function that allocated the block. */
static char *allocator_of(McOut *out, const KtBlock *b)
{
    McStack stack = mc_stack(out->ctx->tracer, b->alloc_stack);
    McFrame caller = mc_caller(&stack);
    GString *s = g_string_new(NULL);

    if (!stack.n) {
        return g_string_free(s, TRUE);
    }
    mc_put_pc(s, out->ctx->kernel, &caller);
    return g_string_free(s, FALSE);
}

static char *owner_block(McOut *out, const KtBlock *b, uint64_t off)
{
    g_autofree char *member = mc_ref_member(out, b, off);
    KtCacheInfo cache;

    if (b->layer != KT_LAYER_CACHE ||
        !kt_tracer_cache(out->ctx->tracer, b->cache, &cache)) {
        return allocator_of(out, b);
    }
    return g_strconcat(cache.name, member ? "." : NULL, member, NULL);
}

char *mc_ref_owner(McOut *out, const KtRef *r)
{
    switch (r->place) {
    case KT_PLACE_BLOCK:
        return owner_block(out, &r->owner, r->va - r->owner.va);
    case KT_PLACE_PERCPU:
        return g_strdup_printf("cpu%u", r->number);
    case KT_PLACE_STACK:
        return g_strdup_printf("pid%u", r->number);
    case KT_PLACE_REGISTER:
        return g_strdup_printf("vcpu%u", r->number);
    default:
        return NULL;
    }
}
