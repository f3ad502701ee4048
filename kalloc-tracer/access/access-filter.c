/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Access filter: see access-filter.h. */
#include "kalloc-tracer/access/access-filter.h"

#include <inttypes.h>

#include "kalloc-tracer/api/kt-objects.h"

struct KtAccessFilter {
    KtAccessSpec *spec;
    KtBlockFilter *block;
};

/* ---- specs --------------------------------------------------------------- */

KtAccessSpec *kt_access_spec_copy(const KtAccessSpec *spec)
{
    KtAccessSpec *own = g_memdup2(spec, sizeof(*spec));

    own->block = kt_block_spec_copy(&spec->block);
    own->module = g_strdup(spec->module);
    return own;
}

void kt_access_spec_free(KtAccessSpec *spec)
{
    if (spec) {
        kt_block_spec_deinit(&spec->block);
        g_free((char *)spec->module);
        g_free(spec);
    }
}

/* Append the kinds of errors, "a or b". */
static void add_kinds(GString *s, unsigned kinds)
{
    g_autoptr(GString) names = g_string_new(NULL);

    for (unsigned i = 0; i < KT_ERR__COUNT; i++) {
        if (kinds >> i & 1) {
            g_string_append_printf(names, "%s%s", names->len ? " or " : "",
                                   kt_error_name((KtErrorKind)i));
        }
    }
    kt_add_part(s, "errors of kind %s", names->str);
}

char *kt_access_filter_text(const KtAccessSpec *spec)
{
    const KtBlockSpec *b = &spec->block;
    GString *s = g_string_new(NULL);

    if (b->cache) {
        kt_add_part(s, "blocks of cache %s", b->cache);
    }
    if (b->layer != KT_LAYER_NONE) {
        kt_add_part(s, "blocks of layer %s", kt_layer_name(b->layer));
    }
    for (unsigned i = 0; i < b->n_code; i++) {
        kt_add_part(s, "blocks allocated in %" PRIx64 "-%" PRIx64,
                    b->code[i].lo, b->code[i].hi);
    }
    if (b->has_pid) {
        kt_add_part(s, "accesses of pid %" PRIu64, b->pid);
    } else if (b->task) {
        kt_add_part(s, "accesses of tasks %s", b->task);
    }
    if (spec->module) {
        kt_add_part(s, "accesses by code of module %s", spec->module);
    }
    if (spec->writes) {
        kt_add_part(s, "stores only");
    }
    if (spec->kinds) {
        add_kinds(s, spec->kinds);
    }
    if (spec->verify) {
        kt_add_part(s, "errors that the allocator's lists confirm");
    }
    return g_string_free(s, !s->len);
}

/* ---- the filter ---------------------------------------------------------- */

KtAccessFilter *kt_access_filter_new(KtTracer *t, const KtAccessSpec *spec)
{
    KtAccessFilter *f = g_new0(KtAccessFilter, 1);

    f->spec = kt_access_spec_copy(spec);
    f->block = kt_block_filter_new(t, &spec->block);
    return f;
}

void kt_access_filter_free(KtAccessFilter *f)
{
    if (f) {
        kt_block_filter_free(f->block);
        kt_access_spec_free(f->spec);
        g_free(f);
    }
}

bool kt_access_filter_block(KtAccessFilter *f, KtLayer layer, KtCacheId cache,
                            KtStackId stack)
{
    return kt_block_spec_layer(&f->spec->block, layer) &&
           kt_block_filter_cache(f->block, cache) &&
           kt_block_filter_stack(f->block, stack);
}

/* An area of vmalloc() is of no cache. */
bool kt_access_filter_is_few(const KtAccessFilter *f)
{
    return f->spec->block.cache || f->spec->block.layer == KT_LAYER_LARGE;
}

bool kt_access_filter_kind(const KtAccessFilter *f, KtErrorKind kind)
{
    return !f->spec->kinds || f->spec->kinds >> kind & 1;
}

bool kt_access_filter_module(const KtAccessFilter *f, const char *name)
{
    return f->spec->module && kt_name_matches(f->spec->module, name);
}

/* Append the areas of a module. */
static void add_areas(KtCodeAreas *areas, const GsModule *module)
{
    for (unsigned i = 0; i < module->n; i++) {
        kt_code_areas_add(areas, module->area[i].start, module->area[i].end);
    }
}

KtCodeAreas *kt_access_filter_areas(const KtAccessFilter *f, const GsKernel *k)
{
    KtCodeAreas *areas = f->spec->module ? kt_code_areas_new() : NULL;
    GsModule module;

    for (unsigned i = 0; areas && gs_kernel_nth_module(k, i, &module); i++) {
        if (module.live && kt_access_filter_module(f, module.name)) {
            add_areas(areas, &module);
        }
    }
    return areas;
}

bool kt_access_filter_slots(const KtAccessFilter *f)
{
    return !f->spec->block.n_code;
}

bool kt_access_filter_verifies(const KtAccessFilter *f)
{
    return f->spec->verify;
}

bool kt_access_filter_access(KtAccessFilter *f, KtTaskId task, bool write)
{
    return (write || !f->spec->writes) && kt_block_filter_task(f->block, task);
}
