/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of layers, counters and memory parts. Constant data: any thread.
 */
#include "kalloc-tracer/api/kt-types.h"

#include <string.h>

/* clang-format off */
static const char *const layer_names[KT_LAYER__COUNT] = {
    [KT_LAYER_NONE] = "none",
    [KT_LAYER_KMALLOC] = "kmalloc",
    [KT_LAYER_LARGE] = "large",
    [KT_LAYER_CACHE] = "cache",
    [KT_LAYER_VMALLOC] = "vmalloc",
    [KT_LAYER_PERCPU] = "percpu",
    [KT_LAYER_PAGES] = "pages",
};
/* clang-format on */

static const struct {
    const char *name;
    const char *help;
} counters[KT_CNT__COUNT] = {
#define KT_COUNTER(id, name, help) [KT_CNT_##id] = { name, help },
#include "kalloc-tracer/api/counters.def"
};

static const struct {
    const char *name;
    const char *help;
} parts[KT_MEM__COUNT] = {
#define KT_MEMORY_PART(id, name, share, last, help) \
    [KT_MEM_##id] = { name, help },
#include "kalloc-tracer/api/memory-parts.def"
};

const char *kt_memory_part_name(KtMemoryPart part)
{
    return (unsigned)part < KT_MEM__COUNT ? parts[part].name : "?";
}

const char *kt_memory_part_help(KtMemoryPart part)
{
    return (unsigned)part < KT_MEM__COUNT ? parts[part].help : "?";
}

const char *kt_layer_name(KtLayer layer)
{
    return (unsigned)layer < KT_LAYER__COUNT ? layer_names[layer] : "?";
}

bool kt_layer_parse(const char *name, KtLayer *out)
{
    for (unsigned i = KT_LAYER_NONE + 1; i < KT_LAYER__COUNT; i++) {
        if (!strcmp(name, layer_names[i])) {
            *out = i;
            return true;
        }
    }
    return false;
}

const char *kt_counter_name(KtCounter c)
{
    return (unsigned)c < KT_CNT__COUNT ? counters[c].name : "?";
}

const char *kt_counter_help(KtCounter c)
{
    return (unsigned)c < KT_CNT__COUNT ? counters[c].help : "?";
}
