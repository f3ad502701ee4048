/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tasks and caches: see tasks-and-caches.h.
 *
 * A task is an entry of a depot: one word for the pid, two for the name. There
 * are few caches: a mutex guards adding one, and a reader may use a cache as
 * soon as it sees a count that includes it (release store, acquire load).
 */
#include "kalloc-tracer/base/tasks-and-caches.h"

#include <pthread.h>
#include <string.h>

#include "guest-symbols/base/printable.h"
#include "kalloc-tracer/base/depot.h"

#define MAX_CACHES UINT16_MAX
/* Bytes of a cache besides its name: in the tables, and of malloc(). */
#define CACHE_MORE 128
#define TASK_WORDS 3
#define ESCAPED_MAX (KT_CACHE_ESCAPED_MAX + 1)

/* A cache that existed before a VM state was loaded, and does not exist in that
 * state. The guest may create it again. @revived: of all equal caches, how many
 * were created again; counted in the first of them */
typedef struct Undone {
    uint32_t id;
    uint32_t revived;
} Undone;

struct KtTasksCaches {
    KtDepot *tasks;
    KtCacheInfo **cache;    /* by id, set before n_caches is; names are
                             * owned, .destroyed and .object_size are
                             * atomic */
    uint32_t n_caches;      /* atomic */
    pthread_mutex_t lock;   /* of @by_va and of adding */
    GHashTable *by_va;      /* va of a cache not destroyed -> id */
    GArray *undone;         /* Undone, sorted by compare() */
    KtBudget *budget;
    uint64_t cache_bytes;   /* charged */
};

KtTasksCaches *kt_tasks_caches_new(KtBudget *budget)
{
    KtTasksCaches *n = g_new0(KtTasksCaches, 1);

    n->budget = budget;
    n->tasks = kt_depot_new(KT_MAX_TASKS);
    kt_depot_charge(n->tasks, budget, KT_MEM_NAMES);
    n->cache = g_new0(KtCacheInfo *, MAX_CACHES + 1);
    n->undone = g_array_new(FALSE, FALSE, sizeof(Undone));
    n->by_va = g_hash_table_new_full(gs_number_hash, g_int64_equal, g_free,
                                     NULL);
    pthread_mutex_init(&n->lock, NULL);
    return n;
}

void kt_tasks_caches_free(KtTasksCaches *n)
{
    if (!n) {
        return;
    }
    for (uint32_t i = 1; i <= n->n_caches; i++) {
        g_free((char *)n->cache[i]->name);
        g_free(n->cache[i]);
    }
    g_free(n->cache);
    g_array_unref(n->undone);
    kt_budget_release(n->budget, KT_MEM_NAMES, n->cache_bytes);
    g_hash_table_unref(n->by_va);
    kt_depot_free(n->tasks);
    pthread_mutex_destroy(&n->lock);
    g_free(n);
}

/* ---- tasks -------------------------------------------------------------- */

/* Copy the name up to the NUL. Bytes that cannot be printed are replaced: there
 * is no room to escape them. */
static void clean_comm(char out[KT_COMM_LEN], const char comm[KT_COMM_LEN])
{
    memset(out, 0, KT_COMM_LEN);
    for (unsigned i = 0; i < KT_COMM_LEN && comm[i]; i++) {
        out[i] = g_ascii_isprint(comm[i]) ? comm[i] : '?';
    }
}

KtTaskId kt_tasks_caches_intern_task(KtTasksCaches *n, uint32_t pid,
                                     const char comm[KT_COMM_LEN])
{
    uint64_t words[TASK_WORDS] = { pid };
    char clean[KT_COMM_LEN];

    clean_comm(clean, comm);
    memcpy(&words[1], clean, KT_COMM_LEN);
    return (KtTaskId) { kt_depot_intern(n->tasks, words, TASK_WORDS, 0) };
}

bool kt_tasks_caches_task(const KtTasksCaches *n, KtTaskId id, uint32_t *pid,
                          char comm[KT_COMM_LEN + 1])
{
    unsigned len;
    uint64_t tag;
    const uint64_t *words = kt_depot_get(n->tasks, id.v, &len, &tag);

    if (!words) {
        return false;
    }
    *pid = words[0];
    memcpy(comm, &words[1], KT_COMM_LEN);
    comm[KT_COMM_LEN] = '\0';
    return true;
}

uint32_t kt_tasks_caches_n_tasks(const KtTasksCaches *n)
{
    return kt_depot_count(n->tasks);
}

/* ---- caches ------------------------------------------------------------- */

/* Copy printable ASCII, and escape everything else, also backslashes, as
 * \xNN. */
static void escape(char out[ESCAPED_MAX], const char *name)
{
    for (unsigned i = 0; i < KT_CACHE_NAME_MAX && name[i]; i++) {
        if (g_ascii_isprint(name[i]) && name[i] != '\\') {
            *out++ = name[i];
        } else {
            out += g_snprintf(out, 5, "\\x%02x", (uint8_t)name[i]);
        }
    }
    *out = '\0';
}

/* Compare two caches; 0: they are equal. */
static int compare(const KtCacheInfo *a, const KtCacheInfo *b)
{
    if (a->va != b->va) {
        return a->va < b->va ? -1 : 1;
    }
    if (a->object_size != b->object_size) {
        return a->object_size < b->object_size ? -1 : 1;
    }
    return a->size != b->size ? (a->size < b->size ? -1 : 1) :
                                strcmp(a->name, b->name);
}

static Undone *undone_at(const KtTasksCaches *n, guint i)
{
    return &g_array_index(n->undone, Undone, i);
}

static void set_destroyed(KtCacheInfo *c)
{
    __atomic_store_n(&c->destroyed, true, __ATOMIC_RELAXED);
}

/* Find the cache at an address. If it is another one than @info, its end was
 * not recorded: set it destroyed. */
static uint32_t find_locked(KtTasksCaches *n, const KtCacheInfo *info)
{
    uint32_t id = GPOINTER_TO_UINT(g_hash_table_lookup(n->by_va, &info->va));

    if (id && compare(n->cache[id], info)) {
        set_destroyed(n->cache[id]);
        g_hash_table_remove(n->by_va, &info->va);
        return 0;
    }
    return id;
}

static bool take_cache_locked(KtTasksCaches *n, size_t name_len)
{
    uint64_t bytes = sizeof(KtCacheInfo) + name_len + CACHE_MORE;

    if (!kt_budget_take(n->budget, KT_MEM_NAMES, bytes)) {
        return false;
    }
    n->cache_bytes += bytes;
    return true;
}

static uint32_t add_locked(KtTasksCaches *n, const KtCacheInfo *info)
{
    uint32_t id = n->n_caches + 1;
    KtCacheInfo *c;
    uint64_t *va;

    if (id > MAX_CACHES || !take_cache_locked(n, strlen(info->name))) {
        return 0;
    }
    c = g_new(KtCacheInfo, 1);
    *c = *info;
    c->name = g_strdup(info->name);
    n->cache[id] = c;
    va = g_new(uint64_t, 1);
    *va = info->va;
    g_hash_table_insert(n->by_va, va, GUINT_TO_POINTER(id));
    __atomic_store_n(&n->n_caches, id, __ATOMIC_RELEASE);
    return id;
}

static void set_life_locked(KtTasksCaches *n, uint32_t id, bool destroyed)
{
    KtCacheInfo *c = n->cache[id];

    __atomic_store_n(&c->destroyed, destroyed, __ATOMIC_RELAXED);
    if (!destroyed) {
        g_hash_table_replace(n->by_va, g_memdup2(&c->va, sizeof(c->va)),
                             GUINT_TO_POINTER(id));
    }
}

/* Return the place of the first undone cache that is equal to @info, or where
 * it would be. */
static guint undone_like(const KtTasksCaches *n, const KtCacheInfo *info)
{
    guint lo = 0, hi = n->undone->len;

    while (lo < hi) {
        guint mid = lo + (hi - lo) / 2;

        if (compare(n->cache[undone_at(n, mid)->id], info) < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/* If an undone cache is equal to @info, make it exist again with its old id. So
 * loading a VM state again and again does not use up the ids. Return 0 if there
 * is none. */
static uint32_t revive_locked(KtTasksCaches *n, const KtCacheInfo *info)
{
    guint first = undone_like(n, info), i = first;
    uint32_t id;

    if (first < n->undone->len) {
        i += undone_at(n, first)->revived;
    }
    if (i >= n->undone->len) {
        return 0;
    }
    id = undone_at(n, i)->id;
    if (compare(n->cache[id], info)) {
        return 0;
    }
    undone_at(n, first)->revived++;
    set_life_locked(n, id, false);
    return id;
}

KtCacheId kt_tasks_caches_add_cache(KtTasksCaches *n, const KtCacheInfo *info)
{
    char name[ESCAPED_MAX];
    KtCacheInfo clean = *info;
    uint32_t id;

    escape(name, info->name);
    clean.name = name;
    clean.destroyed = false;
    pthread_mutex_lock(&n->lock);
    id = find_locked(n, &clean);
    if (!id) {
        id = revive_locked(n, &clean);
    }
    if (!id) {
        id = add_locked(n, &clean);
    }
    pthread_mutex_unlock(&n->lock);
    return (KtCacheId) { id };
}

KtCacheId kt_tasks_caches_restore_cache(KtTasksCaches *n,
                                        const KtCacheInfo *info)
{
    uint32_t id = 0;

    if (strlen(info->name) < ESCAPED_MAX && gs_is_printable(info->name)) {
        pthread_mutex_lock(&n->lock);
        id = add_locked(n, info);
        pthread_mutex_unlock(&n->lock);
    }
    return (KtCacheId) { id };
}

KtCacheId kt_tasks_caches_find_cache(KtTasksCaches *n, const KtCacheInfo *info)
{
    uint32_t id;

    pthread_mutex_lock(&n->lock);
    id = GPOINTER_TO_UINT(g_hash_table_lookup(n->by_va, &info->va));
    if (id && compare(n->cache[id], info)) {
        id = 0;
    }
    pthread_mutex_unlock(&n->lock);
    return (KtCacheId) { id };
}

bool kt_tasks_caches_cache(const KtTasksCaches *n, KtCacheId id,
                           KtCacheInfo *out)
{
    const KtCacheInfo *info;

    if (id.v == 0 || id.v > kt_tasks_caches_n_caches(n)) {
        return false;
    }
    info = n->cache[id.v];
    *out = (KtCacheInfo) {
        .va = info->va,
        .name = info->name,
        .object_size = __atomic_load_n(&info->object_size, __ATOMIC_RELAXED),
        .size = info->size,
        .destroyed = __atomic_load_n(&info->destroyed, __ATOMIC_RELAXED),
    };
    return true;
}

void kt_tasks_caches_cache_destroyed(KtTasksCaches *n, KtCacheId id)
{
    KtCacheInfo *c;
    gpointer at;

    if (id.v == 0 || id.v > kt_tasks_caches_n_caches(n)) {
        return;
    }
    c = n->cache[id.v];
    pthread_mutex_lock(&n->lock);
    set_destroyed(c);
    at = g_hash_table_lookup(n->by_va, &c->va);
    if (GPOINTER_TO_UINT(at) == id.v) {
        g_hash_table_remove(n->by_va, &c->va);
    }
    pthread_mutex_unlock(&n->lock);
}

void kt_tasks_caches_grow_cache(KtTasksCaches *n, uint64_t va,
                                uint32_t object_size)
{
    uint32_t id;

    pthread_mutex_lock(&n->lock);
    id = GPOINTER_TO_UINT(g_hash_table_lookup(n->by_va, &va));
    if (id && object_size > n->cache[id]->object_size &&
        object_size <= n->cache[id]->size) {
        __atomic_store_n(&n->cache[id]->object_size, object_size,
                         __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&n->lock);
}

uint32_t kt_tasks_caches_n_caches(const KtTasksCaches *n)
{
    return __atomic_load_n(&n->n_caches, __ATOMIC_ACQUIRE);
}

/* ---- all caches at once ------------------------------------------------- */

/* A cache, and its id or its place in a list. */
typedef struct NumberedCache {
    const KtCacheInfo *info;
    uint32_t number;
} NumberedCache;

static int by_cache(const void *a, const void *b)
{
    const NumberedCache *x = a, *y = b;
    int order = compare(x->info, y->info);

    return order ? order : (x->number > y->number) - (x->number < y->number);
}

/* Return (owned) all known caches, sorted. */
static GArray *sort_known(const KtTasksCaches *n)
{
    GArray *sorted = g_array_new(FALSE, FALSE, sizeof(NumberedCache));

    for (uint32_t id = 1; id <= n->n_caches; id++) {
        NumberedCache entry = { n->cache[id], id };

        g_array_append_val(sorted, entry);
    }
    g_array_sort(sorted, by_cache);
    return sorted;
}

static GArray *sort_list(const KtCacheInfo *list, uint32_t n_list)
{
    GArray *sorted = g_array_new(FALSE, FALSE, sizeof(NumberedCache));

    for (uint32_t i = 0; i < n_list; i++) {
        NumberedCache entry = { &list[i], i };

        g_array_append_val(sorted, entry);
    }
    g_array_sort(sorted, by_cache);
    return sorted;
}

static const KtCacheInfo *cache_at(const GArray *sorted, uint32_t i)
{
    return g_array_index(sorted, NumberedCache, i).info;
}

static void add_undone(KtTasksCaches *n, const GArray *known, uint32_t i)
{
    Undone u = { .id = g_array_index(known, NumberedCache, i).number };

    g_array_append_val(n->undone, u);
}

/* Match known caches with @list. Of several equal ones, the first gets the
 * first id, and so on. Both are sorted and walked once, since a guest decides
 * how long they are. */
static void match_locked(KtTasksCaches *n, const KtCacheInfo *list,
                         uint32_t n_list, uint16_t *ids)
{
    g_autoptr(GArray) known = sort_known(n), wanted = sort_list(list, n_list);
    uint32_t k = 0;

    g_array_set_size(n->undone, 0);
    for (uint32_t i = 0; i < n_list; i++) {
        const NumberedCache *w = &g_array_index(wanted, NumberedCache, i);

        while (k < known->len && compare(cache_at(known, k), w->info) < 0) {
            add_undone(n, known, k++);
        }
        ids[w->number] = 0;
        if (k < known->len && !compare(cache_at(known, k), w->info)) {
            ids[w->number] = g_array_index(known, NumberedCache, k++).number;
        }
    }
    while (k < known->len) {
        add_undone(n, known, k++);
    }
}

void kt_tasks_caches_set_caches(KtTasksCaches *n, const KtCacheInfo *list,
                                uint32_t n_list, uint16_t *ids)
{
    pthread_mutex_lock(&n->lock);
    match_locked(n, list, n_list, ids);
    for (uint32_t i = 0; i < n_list; i++) {
        ids[i] = ids[i] ? ids[i] : add_locked(n, &list[i]);
    }
    g_hash_table_remove_all(n->by_va);
    for (uint32_t id = 1; id <= n->n_caches; id++) {
        set_life_locked(n, id, true);
    }
    for (uint32_t i = 0; i < n_list; i++) {
        if (ids[i]) {
            set_life_locked(n, ids[i], list[i].destroyed);
        }
    }
    pthread_mutex_unlock(&n->lock);
}
