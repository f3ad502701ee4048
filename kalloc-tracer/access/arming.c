/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Arming: see arming.h. */
#include "kalloc-tracer/access/arming.h"

#include <inttypes.h>

#include "kalloc-tracer/api/kt-objects.h"
#include "kalloc-tracer/base/pair.h"
#include "guest-symbols/base/sorted.h"
#include "kalloc-tracer/tracer/tracer.h"

/* ---- the code of modules ------------------------------------------------- */

typedef struct Area {
    uint64_t start, end;
} Area;

static Area *area_at(const KtCodeAreas *a, unsigned i)
{
    return &g_array_index(a->area, Area, i);
}

KtCodeAreas *kt_code_areas_new(void)
{
    KtCodeAreas *a = g_new0(KtCodeAreas, 1);

    a->area = g_array_new(FALSE, FALSE, sizeof(Area));
    return a;
}

void kt_code_areas_free(KtCodeAreas *a)
{
    if (a) {
        g_array_unref(a->area);
        g_free(a);
    }
}

/* Count the areas that start at or below @va. */
static unsigned n_up_to(const KtCodeAreas *a, uint64_t va)
{
    return gs_sorted_up_to(a->area->data, a->area->len, sizeof(Area), va);
}

/* Areas that touch or overlap the new one become a part of it. */
void kt_code_areas_add(KtCodeAreas *a, uint64_t start, uint64_t end)
{
    Area area = { start, end };
    unsigned from, to;

    if (start >= end) {
        return;
    }
    to = n_up_to(a, end);
    for (from = to; from && area_at(a, from - 1)->end >= start; from--) {
        area.start = MIN(area.start, area_at(a, from - 1)->start);
        area.end = MAX(area.end, area_at(a, from - 1)->end);
    }
    g_array_remove_range(a->area, from, to - from);
    g_array_insert_val(a->area, from, area);
    a->lo = area_at(a, 0)->start;
    a->len = area_at(a, a->area->len - 1)->end - a->lo;
}

bool kt_code_areas_find(const KtCodeAreas *a, uint64_t va)
{
    unsigned n = n_up_to(a, va);

    return n && va < area_at(a, n - 1)->end;
}

/* ---- the filter ---------------------------------------------------------- */

struct KtAccessFilter {
    KtAccessSpec *spec;
    KtBlockFilter *block;
};

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

/* ---- arming -------------------------------------------------------------- */

/* Places that are kept; what others explain is only in the counters. */
#define PLACES_MAX 4096u

/* An instruction that explained accesses, the key and the value of a table.
 * @of: its address; the reason, and above that the era */
typedef struct Place {
    KtPair of;
    uint64_t n;
} Place;

#define ERA_SHIFT 8
G_STATIC_ASSERT(KT_ACCESS__COUNT <= 1 << ERA_SHIFT);

/*
 * struct KtArming - the part
 * @spec: (owned, nullable) what is wanted
 * @places: (owned) of Place
 * @disarmed: (owned) names of caches
 */
struct KtArming {
    GMutex lock;
    KtTracer *t;
    KtBudget *budget;
    void (*fn)(void *opaque);
    void *opaque;
    KtAccessSpec *spec;
    bool armed;
    uint64_t since_us;
    const char *why_not;
    GHashTable *places;
    GString *disarmed;
};

const char *kt_access_reason_name(KtAccessReason why)
{
    static const char *const names[KT_ACCESS__COUNT] = {
        "overread", "loads_ok", "by_allocator", "page_gone", "unseen_alloc",
    };

    return names[why];
}

/* ---- the part ------------------------------------------------------------ */

static void *new_arming(KtBudget *budget)
{
    KtArming *a = g_new0(KtArming, 1);

    a->budget = budget;
    a->places = g_hash_table_new_full(kt_pair_hash, kt_pair_equal, g_free,
                                      NULL);
    a->disarmed = g_string_new(NULL);
    g_mutex_init(&a->lock);
    return a;
}

static void free_arming(void *part)
{
    KtArming *a = part;

    kt_access_spec_free(a->spec);
    g_hash_table_unref(a->places);
    g_string_free(a->disarmed, true);
    g_mutex_clear(&a->lock);
    g_free(a);
}

KtArming *kt_arming_of(KtTracer *t)
{
    static const KtBootPart part = {
        .name = "access", .new = new_arming, .free = free_arming,
    };
    KtArming *a = kt_tracer_part(t, &part);

    g_mutex_lock(&a->lock);
    a->t = t;
    g_mutex_unlock(&a->lock);
    return a;
}

void kt_arming_on_change(KtArming *a, void (*fn)(void *opaque), void *opaque)
{
    a->fn = fn;
    a->opaque = opaque;
}

/* ---- the user ------------------------------------------------------------ */

/* Replace what is wanted. @spec: (owned by the callee, nullable) Returns: true
 * if something was wanted before. */
static bool set_spec(KtArming *a, KtAccessSpec *spec)
{
    KtAccessSpec *before;
    bool was_wanted;

    g_mutex_lock(&a->lock);
    before = a->spec;
    was_wanted = before != NULL;
    a->spec = spec;
    a->why_not = NULL;      /* it was about what was wanted before */
    g_mutex_unlock(&a->lock);
    kt_access_spec_free(before);
    if (a->fn) {
        a->fn(a->opaque);
    }
    return was_wanted;
}

void kt_access_arm(KtTracer *t, const KtAccessSpec *spec)
{
    set_spec(kt_arming_of(t), kt_access_spec_copy(spec));
}

bool kt_access_disarm(KtTracer *t)
{
    return set_spec(kt_arming_of(t), NULL);
}

void kt_access_info(KtTracer *t, KtAccessInfo *out)
{
    KtArming *a = kt_arming_of(t);

    g_mutex_lock(&a->lock);
    out->wanted = a->spec;
    out->armed = a->armed;
    out->why_not = a->why_not;
    out->since_us = a->since_us;
    out->text = a->spec ? kt_access_filter_text(a->spec) : NULL;
    out->disarmed = a->disarmed->len ? g_strdup(a->disarmed->str) : NULL;
    g_mutex_unlock(&a->lock);
    out->bytes = kt_budget_used(a->budget, KT_MEM_SHADOW);
}

void kt_access_places(KtTracer *t, KtAccessPlaceFn fn, void *opaque)
{
    KtArming *a = kt_arming_of(t);
    GHashTableIter iter;
    gpointer key;

    g_mutex_lock(&a->lock);
    g_hash_table_iter_init(&iter, a->places);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        const Place *p = key;
        const KtAccessPlace place = {
            .why = p->of.b & ((1 << ERA_SHIFT) - 1), .pc = p->of.a,
            .era = (uint32_t)(p->of.b >> ERA_SHIFT), .n = p->n,
        };

        if (!fn(&place, opaque)) {
            break;
        }
    }
    g_mutex_unlock(&a->lock);
}

/* ---- capture ------------------------------------------------------------- */

KtAccessFilter *kt_arming_filter(KtArming *a)
{
    KtAccessFilter *f;

    g_mutex_lock(&a->lock);
    f = a->spec ? kt_access_filter_new(a->t, a->spec) : NULL;
    g_mutex_unlock(&a->lock);
    return f;
}

void kt_arming_begun(KtArming *a, uint64_t us)
{
    g_mutex_lock(&a->lock);
    a->armed = true;
    a->since_us = us;
    a->why_not = NULL;
    g_hash_table_remove_all(a->places);
    g_string_truncate(a->disarmed, 0);
    g_mutex_unlock(&a->lock);
}

void kt_arming_ended(KtArming *a, const char *why)
{
    g_mutex_lock(&a->lock);
    a->armed = false;
    a->why_not = why;
    g_mutex_unlock(&a->lock);
}

void kt_arming_disarmed(KtArming *a, KtCacheId cache)
{
    KtCacheInfo info;
    bool known = kt_tracer_cache(a->t, cache, &info);

    g_mutex_lock(&a->lock);
    g_string_append_printf(a->disarmed, "%s%s", a->disarmed->len ? ", " : "",
                           known ? info.name : "?");
    g_mutex_unlock(&a->lock);
}

void kt_arming_explain(KtArming *a, KtAccessReason why, uint64_t pc,
                       uint32_t era)
{
    const Place key = {
        .of = { pc, why | (uint64_t)era << ERA_SHIFT }, .n = 1,
    };
    Place *p;

    g_mutex_lock(&a->lock);
    p = g_hash_table_lookup(a->places, &key);
    if (p) {
        p->n++;
    } else if (g_hash_table_size(a->places) < PLACES_MAX) {
        g_hash_table_add(a->places, g_memdup2(&key, sizeof(key)));
    } else {
        kt_tracer_count(a->t, KT_CNT_ACCESS_PLACES, 1);
    }
    g_mutex_unlock(&a->lock);
}
