/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Other names of kmem_caches, a boot part: see kt-aliases.h. */
#include "kalloc-tracer/api/kt-aliases.h"

#include <string.h>

#include "kalloc-tracer/tracer/alias-frame.h"
#include "kalloc-tracer/tracer/tracer.h"

typedef struct Alias {
    KtCacheAlias alias;
    char name[KT_ALIAS_NAME_MAX];
} Alias;

/*
 * struct Aliases - the part
 * @lock: of @list. No GMutex: the thread sanitizer does not know it
 * @list: of Alias
 * @epoch: (atomic) changes of @list
 */
typedef struct Aliases {
    KtBudget *budget;
    pthread_mutex_t lock;
    GArray *list;
    unsigned epoch;
} Aliases;

static void *aliases_new(KtBudget *budget)
{
    Aliases *a = g_new0(Aliases, 1);

    a->budget = budget;
    pthread_mutex_init(&a->lock, NULL);
    a->list = g_array_new(FALSE, FALSE, sizeof(Alias));
    return a;
}

static void remove_locked(Aliases *a, unsigned i)
{
    g_array_remove_index(a->list, i);
    kt_budget_release(a->budget, KT_MEM_NAMES, sizeof(Alias));
    __atomic_add_fetch(&a->epoch, 1, __ATOMIC_RELEASE);
}

static void clear(Aliases *a)
{
    pthread_mutex_lock(&a->lock);
    while (a->list->len) {
        remove_locked(a, a->list->len - 1);
    }
    pthread_mutex_unlock(&a->lock);
}

static void aliases_free(void *part)
{
    Aliases *a = part;

    clear(a);
    g_array_unref(a->list);
    pthread_mutex_destroy(&a->lock);
    g_free(a);
}

static void aliases_reset(void *part, KtBootEnd why)
{
    if (why != KT_BOOT_CLEAR) {
        clear(part);
    }
}

static const KtBootPart part_row = {
    .name = "aliases", .new = aliases_new, .free = aliases_free,
    .reset = aliases_reset,
};

static Aliases *aliases_of(KtTracer *t)
{
    return kt_tracer_part(t, &part_row);
}

static Alias make_alias(const KtCacheAlias *from)
{
    Alias a = { .alias = *from };

    g_strlcpy(a.name, from->name, sizeof(a.name));
    for (char *p = a.name; *p; p++) {
        *p = g_ascii_isgraph(*p) ? *p : '?';
    }
    return a;
}

static Alias *at(const Aliases *a, unsigned i)
{
    return &g_array_index(a->list, Alias, i);
}

static bool has_locked(const Aliases *a, const Alias *alias)
{
    for (unsigned i = 0; i < a->list->len; i++) {
        if (at(a, i)->alias.cache_va == alias->alias.cache_va &&
            !strcmp(at(a, i)->name, alias->name)) {
            return true;
        }
    }
    return false;
}

/* What became of a name. */
typedef enum Added { ALIAS_IS_NEW, ALIAS_IS_KNOWN, ALIAS_FINDS_NO_ROOM } Added;

static Added add_locked(Aliases *a, const Alias *add)
{
    if (has_locked(a, add)) {
        return ALIAS_IS_KNOWN;
    }
    if (a->list->len >= KT_ALIASES_MAX ||
        !kt_budget_take(a->budget, KT_MEM_NAMES, sizeof(*add))) {
        return ALIAS_FINDS_NO_ROOM;
    }
    g_array_append_val(a->list, *add);
    __atomic_add_fetch(&a->epoch, 1, __ATOMIC_RELEASE);
    return ALIAS_IS_NEW;
}

static Added add_alias(KtTracer *t, const Alias *add)
{
    Aliases *a = aliases_of(t);
    Added added;

    pthread_mutex_lock(&a->lock);
    added = add_locked(a, add);
    pthread_mutex_unlock(&a->lock);
    if (added == ALIAS_FINDS_NO_ROOM) {
        kt_tracer_count(t, KT_CNT_ALIAS_DROPPED, 1);
    }
    return added;
}

void kt_cache_alias_add(KtTracer *t, const KtCacheAlias *alias)
{
    Alias add = make_alias(alias);

    add.alias.name = add.name;
    kt_tracer_settle_journal(t);
    kt_tasks_caches_grow_cache(t->names, alias->cache_va, alias->object_size);
    if (add_alias(t, &add) == ALIAS_IS_NEW && kt_tracer_has_journal(t)) {
        kt_tracer_save_frame(t, KT_MODULE_EVENT_ALIAS,
                             kt_alias_frame_added(t, &add.alias));
    }
}

void kt_cache_alias_restore(KtTracer *t, const KtCacheAlias *alias)
{
    Alias add = make_alias(alias);

    add_alias(t, &add);
}

void kt_cache_alias_drop(KtTracer *t, uint64_t cache_va)
{
    Aliases *a = aliases_of(t);
    bool any = false;

    pthread_mutex_lock(&a->lock);
    for (unsigned i = a->list->len; i; i--) {
        if (at(a, i - 1)->alias.cache_va == cache_va) {
            remove_locked(a, i - 1);
            any = true;
        }
    }
    pthread_mutex_unlock(&a->lock);
    if (any && kt_tracer_has_journal(t)) {
        kt_tracer_save_frame(t, KT_MODULE_EVENT_ALIAS,
                             kt_alias_frame_dropped(cache_va));
    }
}

void kt_cache_aliases(KtTracer *t, uint64_t cache_va,
                      bool (*fn)(const KtCacheAlias *alias, void *opaque),
                      void *opaque)
{
    Aliases *a = aliases_of(t);
    bool more = true;

    pthread_mutex_lock(&a->lock);
    for (unsigned i = 0; more && i < a->list->len; i++) {
        KtCacheAlias alias = at(a, i)->alias;

        alias.name = at(a, i)->name;
        more = alias.cache_va != cache_va || fn(&alias, opaque);
    }
    pthread_mutex_unlock(&a->lock);
}

void kt_cache_aliases_all(KtTracer *t,
                          void (*fn)(const KtCacheAlias *alias, void *opaque),
                          void *opaque)
{
    Aliases *a = aliases_of(t);

    pthread_mutex_lock(&a->lock);
    for (unsigned i = 0; i < a->list->len; i++) {
        KtCacheAlias alias = at(a, i)->alias;

        alias.name = at(a, i)->name;
        fn(&alias, opaque);
    }
    pthread_mutex_unlock(&a->lock);
}

typedef struct Search {
    const char *pattern;
    bool found;
} Search;

static bool compare(const KtCacheAlias *alias, void *opaque)
{
    Search *s = opaque;

    s->found = kt_name_matches(s->pattern, alias->name);
    return !s->found;
}

bool kt_cache_is_named(KtTracer *t, const KtCacheInfo *cache,
                       const char *pattern)
{
    Search s = { .pattern = pattern };

    if (cache->name && kt_name_matches(pattern, cache->name)) {
        return true;
    }
    if (!cache->destroyed) {
        kt_cache_aliases(t, cache->va, compare, &s);
    }
    return s.found;
}

unsigned kt_cache_aliases_epoch(KtTracer *t)
{
    return __atomic_load_n(&aliases_of(t)->epoch, __ATOMIC_ACQUIRE);
}
