/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Access filter: see access-filter.h.
 *
 * A memo has a byte for each id, in zeroed pages that the host provides when
 * they are first written. Ids beyond a memo's end are compared each time.
 */
#include "kalloc-tracer/access/access-filter.h"

#include <inttypes.h>

#include "kalloc-tracer/api/kt-aliases.h"
#include "kalloc-tracer/api/kt-base.h"

#define CACHES_MAX  (UINT16_MAX + 1u)
#define STACKS_MAX  (1u << 20)
#define TASKS_MAX   (1u << 18)

enum { UNKNOWN, NO, YES };

/* What was found of ids. @known: (owned, nullable) a byte for each id, NULL:
 * the filter does not ask */
typedef struct Memo {
    uint8_t *known;
    uint32_t size;
    bool (*ask)(const KtAccessFilter *f, uint32_t id);
} Memo;

struct KtAccessFilter {
    KtTracer *t;
    KtAccessSpec *spec;
    Memo caches, stacks, tasks;
    unsigned aliases;       /* (atomic) kt_cache_aliases_epoch() of @caches */
};

/* ---- specs --------------------------------------------------------------- */

KtAccessSpec *kt_access_spec_copy(const KtAccessSpec *spec)
{
    KtAccessSpec *own = g_memdup2(spec, sizeof(*spec));

    own->cache = g_strdup(spec->cache);
    own->task = g_strdup(spec->task);
    own->module = g_strdup(spec->module);
    own->code = g_memdup2(spec->code, spec->n_code * sizeof(*spec->code));
    return own;
}

void kt_access_spec_free(KtAccessSpec *spec)
{
    if (spec) {
        g_free((char *)spec->cache);
        g_free((char *)spec->task);
        g_free((char *)spec->module);
        g_free((KtAccessCode *)spec->code);
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
    GString *s = g_string_new(NULL);

    if (spec->cache) {
        kt_add_part(s, "blocks of cache %s", spec->cache);
    }
    if (spec->layer != KT_LAYER_NONE) {
        kt_add_part(s, "blocks of layer %s", kt_layer_name(spec->layer));
    }
    for (unsigned i = 0; i < spec->n_code; i++) {
        kt_add_part(s, "blocks allocated in %" PRIx64 "-%" PRIx64,
                    spec->code[i].lo, spec->code[i].hi);
    }
    if (spec->has_pid) {
        kt_add_part(s, "accesses of pid %u", spec->pid);
    } else if (spec->task) {
        kt_add_part(s, "accesses of tasks %s", spec->task);
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

/* ---- one id -------------------------------------------------------------- */

static bool ask_cache(const KtAccessFilter *f, uint32_t id)
{
    KtCacheInfo info;

    return kt_tracer_cache(f->t, (KtCacheId) { id }, &info) &&
           kt_cache_is_named(f->t, &info, f->spec->cache);
}

static bool ask_task(const KtAccessFilter *f, uint32_t id)
{
    char comm[17];
    uint32_t pid;

    return kt_tracer_task(f->t, (KtTaskId) { id }, &pid, comm) &&
           (f->spec->has_pid ? pid == f->spec->pid :
                               kt_name_matches(f->spec->task, comm));
}

static bool is_in_code(const KtAccessSpec *spec, uint64_t pc)
{
    for (unsigned i = 0; i < spec->n_code; i++) {
        if (pc >= spec->code[i].lo && pc <= spec->code[i].hi) {
            return true;
        }
    }
    return false;
}

static bool ask_stack(const KtAccessFilter *f, uint32_t id)
{
    unsigned n = 0;
    GsStop stop;
    const uint64_t *pc = kt_tracer_stack(f->t, (KtStackId) { id }, &n, &stop);

    for (unsigned i = 0; pc && i < n; i++) {
        if (is_in_code(f->spec, pc[i])) {
            return true;
        }
    }
    return false;
}

/* Return true if the filter does not ask for such ids, or @id matches. */
static bool passes(const KtAccessFilter *f, const Memo *m, uint32_t id)
{
    uint8_t known;

    if (!m->known || id >= m->size) {
        return !m->known || m->ask(f, id);
    }
    known = __atomic_load_n(&m->known[id], __ATOMIC_RELAXED);
    if (known == UNKNOWN) {
        known = m->ask(f, id) ? YES : NO;
        __atomic_store_n(&m->known[id], known, __ATOMIC_RELAXED);
    }
    return known == YES;
}

/* A cache that another name was asked for has it from then on. */
static void update_names(KtAccessFilter *f)
{
    unsigned epoch = kt_cache_aliases_epoch(f->t);

    if (!f->caches.known ||
        epoch == __atomic_load_n(&f->aliases, __ATOMIC_RELAXED)) {
        return;
    }
    __atomic_store_n(&f->aliases, epoch, __ATOMIC_RELAXED);
    for (uint32_t id = 0; id < f->caches.size; id++) {
        __atomic_store_n(&f->caches.known[id], UNKNOWN, __ATOMIC_RELAXED);
    }
}

/* ---- the filter ---------------------------------------------------------- */

static Memo new_memo(bool needed, uint32_t size,
                     bool (*ask)(const KtAccessFilter *f, uint32_t id))
{
    return (Memo) { needed ? g_malloc0(size) : NULL, size, ask };
}

KtAccessFilter *kt_access_filter_new(KtTracer *t, const KtAccessSpec *spec)
{
    KtAccessFilter *f = g_new0(KtAccessFilter, 1);

    f->t = t;
    f->spec = kt_access_spec_copy(spec);
    f->caches = new_memo(spec->cache, CACHES_MAX, ask_cache);
    f->stacks = new_memo(spec->n_code, STACKS_MAX, ask_stack);
    f->tasks = new_memo(spec->has_pid || spec->task, TASKS_MAX, ask_task);
    return f;
}

void kt_access_filter_free(KtAccessFilter *f)
{
    if (f) {
        g_free(f->caches.known);
        g_free(f->stacks.known);
        g_free(f->tasks.known);
        kt_access_spec_free(f->spec);
        g_free(f);
    }
}

bool kt_access_filter_block(KtAccessFilter *f, KtLayer layer, KtCacheId cache,
                            KtStackId stack)
{
    update_names(f);
    return (f->spec->layer == KT_LAYER_NONE || f->spec->layer == layer) &&
           passes(f, &f->caches, cache.v) && passes(f, &f->stacks, stack.v);
}

/* An area of vmalloc() is of no cache. */
bool kt_access_filter_is_few(const KtAccessFilter *f)
{
    return f->spec->cache || f->spec->layer == KT_LAYER_LARGE;
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
    return !f->spec->n_code;
}

bool kt_access_filter_verifies(const KtAccessFilter *f)
{
    return f->spec->verify;
}

bool kt_access_filter_access(KtAccessFilter *f, KtTaskId task, bool write)
{
    return (write || !f->spec->writes) && passes(f, &f->tasks, task.v);
}
