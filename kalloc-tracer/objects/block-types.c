/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The type of the object in a block, see kt-objects.h. Owns no state. Any
 * thread; takes no lock.
 *
 * Three sources, the surest first. The first that has a candidate decides:
 *
 *     cache      filp                           file
 *     function   alloc_pipe_info() returns      pipe_inode_info, if that many
 *                struct pipe_inode_info *       bytes were requested
 *     pointer    files_struct.fdt, which has    fdtable, if that many bytes
 *                the block's address            were requested
 *
 * A wrong type would be worse than none. So sizes are compared exactly, and
 * nothing is said of pages and per-CPU memory.
 */
#include "kalloc-tracer/api/kt-objects.h"
#include "kalloc-tracer/layout/layout.h"
#include "kalloc-tracer/objects/objects-internal.h"

#include <string.h>

/* Frames of a stack that are asked: a caller further out does something else
 * than to allocate this object. */
#define FRAMES_MAX 8u

/* clang-format off */
static const char *const source_names[] = {
    [KT_TYPE_BY_CACHE] = "cache",
    [KT_TYPE_BY_FUNCTION] = "function",
    [KT_TYPE_BY_POINTER] = "pointer",
};
static const struct {
    const char *cache, *type;
} cache_types[] = {
#define KT_CACHE_TYPE(cache, type) { cache, type },
#include "kalloc-tracer/objects/cache-types.def"
};
/* Objects of these caches are longer or shorter than their type: they depend on
 * the CPU, on the number of CPUs or nodes, or end with an array. */
static const char *const other_sizes[] = {
    "task_struct", "mm_struct", "kmem_cache", "proc_dir_entry", "pid",
};
/* clang-format on */

const char *kt_type_source_name(KtTypeSource source)
{
    return source < KT_TYPE__COUNT ? source_names[source] : "?";
}

/* Add a candidate, once. If there are several, none is sure. */
static void add(GArray *types, const KtBlockType *type)
{
    bool sure = type->sure && !types->len;

    for (unsigned i = 0; i < types->len; i++) {
        if (!strcmp(g_array_index(types, KtBlockType, i).name, type->name)) {
            return;
        }
    }
    g_array_append_val(types, *type);
    for (unsigned i = 0; i < types->len; i++) {
        g_array_index(types, KtBlockType, i).sure &= sure;
    }
}

/* ---- by the cache -------------------------------------------------------- */

static const char *type_of_cache(const char *cache)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(cache_types); i++) {
        if (!strcmp(cache_types[i].cache, cache)) {
            return cache_types[i].type;
        }
    }
    return cache;
}

static bool has_other_size(const char *type)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(other_sizes); i++) {
        if (!strcmp(other_sizes[i], type)) {
            return true;
        }
    }
    return false;
}

/* Count the caches that the kernel merged into this one, itself included.
 * Return 0 if this is unknown. */
static uint64_t count_users(const KtObjects *o, uint64_t cache)
{
    uint64_t users = 0;
    uint32_t at = kt_member(o->kernel, KT_M_CACHE_REFCOUNT);

    return at != KT_NO_MEMBER &&
           kt_objects_number(o, cache + at, sizeof(int32_t), &users) ? users :
                                                                       0;
}

static void add_by_cache(const KtObjects *o, const KtBlock *b, GArray *types)
{
    KtBlockType type = { .source = KT_TYPE_BY_CACHE };
    KtCacheInfo cache;
    uint64_t users;
    const char *name;

    if (b->layer != KT_LAYER_CACHE ||
        !kt_tracer_cache(o->tracer, b->cache, &cache)) {
        return;
    }
    name = type_of_cache(cache.name);
    users = count_users(o, cache.va);
    if (users > 1 || !gs_kernel_type_size(o->kernel, name, &type.size) ||
        (type.size != b->requested && !has_other_size(name))) {
        return;
    }
    g_strlcpy(type.name, name, sizeof(type.name));
    g_strlcpy(type.by, cache.name, sizeof(type.by));
    type.sure = users == 1;
    add(types, &type);
}

/* ---- by a function ------------------------------------------------------- */

/* Copy "name" of "struct name *" or "const struct name *". Return false if the
 * type is another one. */
static bool pointee(const char *type, char *name, size_t size)
{
    const char *end;
    size_t len;

    type += g_str_has_prefix(type, "const ") ? strlen("const ") : 0;
    if (!g_str_has_prefix(type, "struct ")) {
        return false;
    }
    type += strlen("struct ");
    end = strchr(type, ' ');
    len = end ? end - type : 0;
    if (!len || strcmp(end, " *") || len >= size) {
        return false;
    }
    memcpy(name, type, len);
    name[len] = 0;
    return true;
}

static bool returns_type(const GsKernel *k, const GsSymbol *func,
                         KtBlockType *type)
{
    g_autoptr(GsPrototype) p = gs_kernel_prototype(k, func->module, func->name,
                                                   NULL);
    const GsParam *result = p ? gs_prototype_result(p) : NULL;

    return result && result->kind == GS_VALUE_POINTER && result->type &&
           pointee(result->type, type->name, sizeof(type->name)) &&
           gs_kernel_type_size(k, type->name, &type->size);
}

/* The frames are return addresses: the call is before them. */
static void add_by_function(const KtObjects *o, const KtBlock *b,
                            GArray *types)
{
    uint32_t era = kt_tracer_stack_era(o->tracer, b->alloc_stack).all;
    const uint64_t *pc;
    unsigned n = 0;
    GsStop stop;

    pc = kt_tracer_stack(o->tracer, b->alloc_stack, &n, &stop);
    for (unsigned i = 0; pc && i < MIN(n, FRAMES_MAX); i++) {
        KtBlockType type = { .source = KT_TYPE_BY_FUNCTION, .sure = true };
        GsSymbol func;

        if (gs_kernel_symbolize_at(o->kernel, pc[i] - 1, era, &func) &&
            returns_type(o->kernel, &func, &type) &&
            type.size == b->requested) {
            g_strlcpy(type.by, func.name, sizeof(type.by));
            add(types, &type);
        }
    }
}

/* ---- by a pointer -------------------------------------------------------- */

static bool has_type(const KtBlock *b)
{
    return b->requested && b->layer != KT_LAYER_PERCPU &&
           b->layer != KT_LAYER_PAGES;
}

/** struct Pointer - a pointer to @b, a member of an object of type @owner */
typedef struct Pointer {
    const KtBlock *b;
    const char *owner;
    GArray *types;
} Pointer;

static void add_pointee(const char *member, const char *name, uint32_t size,
                        void *opaque)
{
    const Pointer *p = opaque;
    KtBlockType type = {
        .source = KT_TYPE_BY_POINTER, .size = size, .sure = true,
    };

    if (size == p->b->requested &&
        g_strlcpy(type.name, name, sizeof(type.name)) < sizeof(type.name)) {
        g_snprintf(type.by, sizeof(type.by), "%s.%s", p->owner, member);
        add(p->types, &type);
    }
}

void kt_block_types_add(const KtObjects *o, GArray *types, const KtBlock *b,
                        const KtBlock *owner, uint64_t at)
{
    g_autoptr(GArray) known = kt_block_types(o, owner);
    const KtBlockType *type = (const KtBlockType *)known->data;

    if (known->len == 1 && type->sure && at < type->size && has_type(b)) {
        gs_kernel_pointers_at(o->kernel, type->name, at, add_pointee,
                              &(Pointer) { b, type->name, types });
    }
}

GArray *kt_block_types(const KtObjects *o, const KtBlock *b)
{
    GArray *types = g_array_new(FALSE, FALSE, sizeof(KtBlockType));

    if (o->kernel && has_type(b)) {
        add_by_cache(o, b, types);
    }
    if (o->kernel && has_type(b) && !types->len) {
        add_by_function(o, b, types);
    }
    return types;
}
