/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Arming: see arming.h. */
#include "kalloc-tracer/access/arming.h"

#include "kalloc-tracer/base/pair.h"
#include "kalloc-tracer/tracer/tracer.h"

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
