/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KtGuest: see guest.h. Almost all of this runs for each event.
 *
 *     kt_guest_task()    compare pid and comm with the last ones of this vCPU;
 *                        intern the task only if they differ
 *     kt_guest_cache()   KtGuestCpu.cache, a direct-mapped cache; only a miss
 *                        takes KtGuest.lock and reads the kmem_cache
 *
 * Guest memory is not trusted: it is read through the view only, names are
 * bounded, and sizes are reported but never used to copy.
 */
#include "kalloc-tracer/kernel/guest-internal.h"

#include <string.h>

#define CACHE_NAME_MAX  KT_ALIAS_NAME_MAX

KtGuest *kt_guest_new(const GsKernel *k, KtTracer *t, KtView view)
{
    KtGuest *g = g_new0(KtGuest, 1);

    kt_guest_find_layout(&g->at, k);
    g->tag_bits = gs_kernel_tag_bits(k);
    g->kernel = k;
    g->tracer = t;
    g->view = view;
    g->caches = g_hash_table_new_full(gs_number_hash, g_int64_equal, g_free,
                                      NULL);
    g_mutex_init(&g->lock);
    g->learner = kt_learner_new(g);
    return g;
}

void kt_guest_free(KtGuest *g)
{
    if (g) {
        kt_learner_free(g->learner);
        g_hash_table_destroy(g->caches);
        g_mutex_clear(&g->lock);
        g_free(g);
    }
}

/* ---- memory ------------------------------------------------------------- */

bool kt_view_read(KtView view, uint64_t va, void *buf, size_t len)
{
    uint8_t *to = buf;

    while (len) {
        size_t avail;
        const void *from = view(va, &avail);
        size_t n = MIN(len, avail);

        if (!from || !n) {
            return false;
        }
        memcpy(to, from, n);
        to += n;
        va += n;
        len -= n;
    }
    return true;
}

bool kt_guest_read(const KtGuest *g, uint64_t va, void *buf, size_t len)
{
    return kt_view_read(g->view, va, buf, len);
}

bool kt_guest_u64(const KtGuest *g, uint64_t va, uint64_t *out)
{
    size_t avail;
    const void *from = g->view(va, &avail);

    if (from && avail >= sizeof(*out)) {
        memcpy(out, from, sizeof(*out));
        return true;
    }
    return kt_guest_read(g, va, out, sizeof(*out));
}

bool kt_guest_pointer(const KtGuest *g, uint64_t va, uint64_t *out)
{
    if (!kt_guest_u64(g, va, out)) {
        return false;
    }
    *out = gs_untag(g->tag_bits, *out);
    return true;
}

/* ---- tasks -------------------------------------------------------------- */

static inline bool current_task(const KtGuest *g, uint64_t base, uint64_t *task)
{
    if (g->at.base_is_task) {
        *task = gs_untag(g->tag_bits, base);
        return true;
    }
    return g->at.current_task &&
           kt_guest_pointer(g, (base & g->at.percpu_mask) +
                            g->at.current_task, task);
}

bool kt_guest_current(const KtGuest *g, uint64_t base, uint64_t *task)
{
    return current_task(g, base, task);
}

/* pid and comm are mostly in one page: then one TLB lookup is enough. */
void kt_guest_find_task(const KtGuest *g, uint64_t base, KtTaskAt *at)
{
    uint32_t pid = __atomic_load_n(&g->at.task_pid, __ATOMIC_ACQUIRE);
    uint32_t comm = __atomic_load_n(&g->at.task_comm, __ATOMIC_ACQUIRE);
    uint64_t lo = MIN(pid, comm), hi = MAX(pid, comm);
    const char *host;
    uint64_t task;
    size_t avail;

    *at = (KtTaskAt) { 0 };
    if (hi == UNKNOWN || !current_task(g, base, &task)) {
        return;
    }
    at->va = task;
    host = g->view(task + lo, &avail);
    if (host && avail >= hi - lo + 16) {
        at->pid = host + (pid - lo);
        at->comm = host + (comm - lo);
        __builtin_prefetch(at->pid);
        __builtin_prefetch(at->comm);
    }
}

static bool read_pid_comm(const KtGuest *g, const KtTaskAt *at, uint32_t *pid,
                          char comm[16])
{
    if (G_LIKELY(at->comm)) {
        memcpy(pid, at->pid, sizeof(*pid));
        memcpy(comm, at->comm, 16);
        return true;
    }
    return at->va &&
           kt_guest_read(g, at->va + g->at.task_pid, pid, sizeof(*pid)) &&
           kt_guest_read(g, at->va + g->at.task_comm, comm, 16);
}

KtTaskId kt_guest_task(KtGuest *g, KtGuestCpu *cpu, const KtTaskAt *at)
{
    char comm[16];
    uint32_t pid;

    if (!read_pid_comm(g, at, &pid, comm)) {
        return (KtTaskId) { 0 };
    }
    if (at->va != cpu->task_va || pid != cpu->pid ||
        memcmp(comm, cpu->comm, sizeof(comm))) {
        if (kt_types_fit_is_open(g->fit) &&
            !kt_types_fit_task(g->fit, pid, comm)) {
            return (KtTaskId) { 0 };
        }
        cpu->task_va = at->va;
        cpu->pid = pid;
        memcpy(cpu->comm, comm, sizeof(comm));
        cpu->task = kt_tracer_intern_task(g->tracer, pid, comm);
    }
    return cpu->task;
}

static bool preempt_count(const KtGuest *g, uint64_t base, uint32_t *count)
{
    if (g->at.base_is_task) {
        return g->at.task_preempt != UNKNOWN &&
               kt_guest_read(g, base + g->at.task_preempt, count,
                             sizeof(*count));
    }
    return g->at.preempt_count &&
           kt_guest_read(g, (base & g->at.percpu_mask) + g->at.preempt_count,
                         count, sizeof(*count));
}

static bool softirq_count(const KtGuest *g, uint64_t base, uint32_t *count)
{
    uint64_t task;

    *count = 0;
    if (g->at.task_softirq == UNKNOWN) {
        return !g->at.softirq_unknown;
    }
    return current_task(g, base, &task) &&
           kt_guest_read(g, task + g->at.task_softirq, count, sizeof(*count));
}

KtAnswer kt_guest_in_interrupt(KtGuest *g, uint64_t base)
{
    uint32_t count, softirq;

    if (!preempt_count(g, base, &count) || !softirq_count(g, base, &softirq)) {
        return KT_UNKNOWN;
    }
    return (count & g->at.in_interrupt) || (softirq & IN_SOFTIRQ) ? KT_YES :
           KT_NO;
}

/* ---- caches ------------------------------------------------------------- */

/* Read a name, at most CACHE_NAME_MAX - 1 bytes. Return false if
 * it is empty or unreadable. */
static bool read_text(const KtGuest *g, uint64_t va, char name[CACHE_NAME_MAX])
{
    for (unsigned i = 0; i < CACHE_NAME_MAX - 1; i++) {
        if (!kt_guest_read(g, va + i, &name[i], 1)) {
            return false;
        }
        if (!name[i]) {
            return i > 0;
        }
    }
    name[CACHE_NAME_MAX - 1] = '\0';
    return true;
}

static bool read_name(const KtGuest *g, uint64_t cache_va,
                      char name[CACHE_NAME_MAX])
{
    uint64_t va;

    return kt_guest_pointer(g, cache_va + g->at.cache_name, &va) &&
           read_text(g, va, name);
}

bool kt_guest_alias(const KtGuest *g, uint64_t cache_va, uint64_t asked,
                    char name[KT_ALIAS_NAME_MAX])
{
    char own[CACHE_NAME_MAX];

    return g->at.cache_name != UNKNOWN && kt_is_memory(cache_va) &&
           read_text(g, asked, name) && read_name(g, cache_va, own) &&
           strcmp(own, name);
}

/*
 * "kmem_cache" and "kmem_cache_node" begin as static structs, and bootstrap()
 * in mm/slub.c copies each to an allocated one. Return the id of the static one
 * if @cache_va may be its copy, else 0. Only one copy of each is accepted, so
 * that a guest cannot create any number of aliases.
 */
static KtCacheId boot_alias_locked(KtGuest *g, uint64_t cache_va,
                                   const char *name)
{
    for (unsigned i = 0; i < KT_BOOT_CACHES; i++) {
        KtCacheInfo info;

        if ((!g->boot_copy[i] || g->boot_copy[i] == cache_va) &&
            kt_tracer_cache(g->tracer, g->boot_cache[i], &info) &&
            !strcmp(info.name, name)) {
            g->boot_copy[i] = cache_va;
            return g->boot_cache[i];
        }
    }
    return (KtCacheId) { 0 };
}

static void add_boot_cache_locked(KtGuest *g, KtCacheId id)
{
    unsigned i = g->boot_cache[0].v ? 1 : 0;

    if (!g->boot_cache[i].v) {
        g->boot_cache[i] = id;
    }
}

static bool read_size(const KtGuest *g, uint64_t va, uint32_t *size)
{
    uint64_t wide = 0;

    if (!kt_guest_read(g, va, &wide, g->at.size_bytes)) {
        return false;
    }
    wide = GUINT64_FROM_LE(wide);
    *size = MIN(wide, UINT32_MAX);
    return true;
}

/* SLOB's first cache, a static struct, has no object_size: its objects are as
 * large as their slots. */
bool kt_guest_object_size(const KtGuest *g, uint64_t cache_va, uint32_t *size)
{
    uint32_t at = __atomic_load_n(&g->at.cache_object_size, __ATOMIC_ACQUIRE);
    uint32_t slot = __atomic_load_n(&g->at.cache_size, __ATOMIC_ACQUIRE);

    if (at == UNKNOWN || !read_size(g, cache_va + at, size)) {
        return false;
    }
    return *size || slot == UNKNOWN ||
           !gs_kernel_in_image(g->kernel, cache_va) ||
           read_size(g, cache_va + slot, size);
}

/* Read a cache of a kernel that is not Linux: its profile may say neither where
 * the name is nor the size. */
static KtCacheId read_profile_cache(KtGuest *g, uint64_t cache_va)
{
    char name[CACHE_NAME_MAX] = "";
    uint32_t size = 0;

    if ((g->at.cache_size != UNKNOWN &&
         !kt_guest_object_size(g, cache_va, &size)) ||
        (g->at.cache_name != UNKNOWN && !read_name(g, cache_va, name))) {
        return (KtCacheId) { 0 };
    }
    return kt_tracer_add_cache(g->tracer, cache_va, name, size, size);
}

/* Read the members of a kmem_cache. Return false if they are unreadable, or if
 * they prove that a types file does not fit. */
static bool read_members(const KtGuest *g, uint64_t cache_va,
                         char name[CACHE_NAME_MAX], uint32_t *object_size,
                         uint32_t *size)
{
    bool readable;

    if (g->at.cache_name == UNKNOWN || g->at.cache_size == UNKNOWN) {
        return false;
    }
    *object_size = *size = 0;
    readable = read_name(g, cache_va, name) &&
               kt_guest_object_size(g, cache_va, object_size) &&
               read_size(g, cache_va + g->at.cache_size, size);
    if (kt_types_fit_is_open(g->fit)) {
        readable = kt_types_fit_cache(g->fit, cache_va,
                                      readable ? name : NULL, *object_size,
                                      *size) && readable;
    }
    return readable;
}

/* A cache that a snapshot has is compared with a types file, too. */
static bool is_refuted(const KtGuest *g, uint64_t cache_va)
{
    char name[CACHE_NAME_MAX];
    uint32_t object_size, size;

    return kt_types_fit_is_open(g->fit) &&
           !read_members(g, cache_va, name, &object_size, &size);
}

static KtCacheId read_cache_locked(KtGuest *g, uint64_t cache_va)
{
    char name[CACHE_NAME_MAX];
    uint32_t object_size, size;
    KtCacheId id;

    if (g->from_profile) {
        return read_profile_cache(g, cache_va);
    }
    if (!read_members(g, cache_va, name, &object_size, &size)) {
        return (KtCacheId) { 0 };
    }
    id = boot_alias_locked(g, cache_va, name);
    if (!id.v) {
        id = kt_tracer_add_cache(g->tracer, cache_va, name, object_size, size);
    }
    if (gs_kernel_in_image(g->kernel, cache_va)) {
        add_boot_cache_locked(g, id);
    }
    if (!strcmp(name, "kmem_cache")) {
        g->kmem_cache = id;
    }
    return id;
}

/* Find the id of a cache in the table; read and add it if it is new. */
static KtCacheId find_cache(KtGuest *g, uint64_t cache_va)
{
    gpointer value;
    KtCacheId id;

    g_mutex_lock(&g->lock);
    value = g_hash_table_lookup(g->caches, &cache_va);
    id.v = GPOINTER_TO_UINT(value);
    if (id.v && is_refuted(g, cache_va)) {
        id.v = 0;
    } else if (!id.v) {
        id = read_cache_locked(g, cache_va);
        if (id.v) {
            g_hash_table_insert(g->caches,
                                g_memdup2(&cache_va, sizeof(cache_va)),
                                GUINT_TO_POINTER(id.v));
        }
    }
    g_mutex_unlock(&g->lock);
    return id;
}

static unsigned cache_slot(uint64_t cache_va)
{
    return (cache_va >> 6 ^ cache_va >> 12) % KT_GUEST_CACHES;
}

/* With SLUB's red zones (slub_debug=Z) an object does not begin where its slot
 * begins. Return the bytes from an object to the end of its slot. */
static uint32_t bytes_from_object(const KtGuest *g, uint64_t cache_va,
                                  const KtCacheInfo *info)
{
    uint32_t pad;

    if (g->at.cache_left_pad == UNKNOWN ||
        !read_size(g, cache_va + g->at.cache_left_pad, &pad) ||
        pad > info->size || info->size - pad < info->object_size) {
        return info->size;
    }
    return info->size - pad;
}

static G_GNUC_NO_INLINE bool
read_cache(KtGuest *g, KtGuestCache *c, uint64_t cache_va)
{
    KtCacheId id = find_cache(g, cache_va);
    KtCacheInfo info;

    if (!kt_tracer_cache(g->tracer, id, &info)) {
        return false;
    }
    *c = (KtGuestCache) { cache_va, bytes_from_object(g, cache_va, &info),
                          info.object_size, id };
    return true;
}

const KtGuestCache *kt_guest_cache(KtGuest *g, KtGuestCpu *cpu,
                                   uint64_t cache_va)
{
    unsigned epoch = __atomic_load_n(&g->cache_epoch, __ATOMIC_ACQUIRE);
    KtGuestCache *c = &cpu->cache[cache_slot(cache_va)];

    if (!cache_va) {
        return NULL;
    }
    if (cpu->cache_epoch != epoch) {
        memset(cpu->cache, 0, sizeof(cpu->cache));
        cpu->cache_epoch = epoch;
    }
    return c->va == cache_va || read_cache(g, c, cache_va) ? c : NULL;
}

void kt_guest_object_freed(KtGuest *g, KtCacheId cache, uint64_t object)
{
    gpointer value;

    if (cache.v != g->kmem_cache.v) {
        return;
    }
    if (!cache.v) {         /* no kmem_cache was read yet */
        kt_learner_freed(g->learner, object);
        return;
    }
    kt_cache_alias_drop(g->tracer, object);
    g_mutex_lock(&g->lock);
    value = g_hash_table_lookup(g->caches, &object);
    if (value) {
        kt_tracer_cache_destroyed(g->tracer,
                                  (KtCacheId) { GPOINTER_TO_UINT(value) });
        g_hash_table_remove(g->caches, &object);
        __atomic_fetch_add(&g->cache_epoch, 1, __ATOMIC_RELEASE);
    }
    g_mutex_unlock(&g->lock);
}

/* Return true if there is a cache of that name and size at @cache_va. Members
 * that a profile does not have are no difference. */
static bool is_still(const KtGuest *g, uint64_t cache_va, KtCacheId id)
{
    char name[CACHE_NAME_MAX];
    uint32_t size;
    KtCacheInfo info;

    return kt_tracer_cache(g->tracer, id, &info) &&
           (g->at.cache_name == UNKNOWN ||
            (read_name(g, cache_va, name) && !strcmp(name, info.name))) &&
           (g->at.cache_object_size == UNKNOWN ||
            (kt_guest_object_size(g, cache_va, &size) &&
             size == info.object_size));
}

void kt_guest_check_caches(KtGuest *g)
{
    GHashTableIter it;
    gpointer va, id;

    g_mutex_lock(&g->lock);
    g_hash_table_iter_init(&it, g->caches);
    while (g_hash_table_iter_next(&it, &va, &id)) {
        KtCacheId cache = { GPOINTER_TO_UINT(id) };
        uint64_t at = *(uint64_t *)va;

        if (!is_still(g, at, cache)) {
            kt_cache_alias_drop(g->tracer, at);
            kt_tracer_cache_destroyed(g->tracer, cache);
            g_hash_table_iter_remove(&it);
        }
    }
    __atomic_fetch_add(&g->cache_epoch, 1, __ATOMIC_RELEASE);
    g_mutex_unlock(&g->lock);
}

/* ---- slab pages --------------------------------------------------------- */

/* Does no word that may be the head lead to a known cache? */
static bool is_no_slab(KtGuest *g, uint64_t object)
{
    uint64_t va[KT_PAGE_HEADS];
    unsigned n = kt_guest_possible_caches(g, object, va);
    bool known = !n;

    g_mutex_lock(&g->lock);
    for (unsigned i = 0; i < n && !known; i++) {
        known = g_hash_table_contains(g->caches, &va[i]);
    }
    g_mutex_unlock(&g->lock);
    return !known;
}

/* If the page is no slab, the word at slab_cache is anything. So it is never
 * dereferenced, only compared with known caches. */
bool kt_guest_slab(KtGuest *g, KtGuestCpu *cpu, uint64_t object,
                   KtCacheId *cache)
{
    uint64_t va = kt_guest_cache_of(g, object);
    unsigned i = cache_slot(va);

    *cache = (KtCacheId) { 0 };
    if (!va) {
        return kt_guest_has_direct_map(g) || is_no_slab(g, object);
    }
    if (cpu->cache[i].va == va &&
        cpu->cache_epoch == __atomic_load_n(&g->cache_epoch,
                                            __ATOMIC_ACQUIRE)) {
        *cache = cpu->cache[i].id;
        return true;
    }
    g_mutex_lock(&g->lock);
    cache->v = GPOINTER_TO_UINT(g_hash_table_lookup(g->caches, &va));
    g_mutex_unlock(&g->lock);
    return true;
}

/* ---- snapshots ----------------------------------------------------------- */
/*
 * The part of a VM snapshot that belongs to a KtGuest: see kt_guest_pack().
 *
 * A cache must keep its id even if its members change: object_size grows when
 * the kernel merges another cache into it. So the table address -> id is
 * stored, and not read from guest memory again.
 */

#define CACHES_MAX (UINT16_MAX + KT_BOOT_CACHES)

void kt_guest_pack(KtGuest *g, GsOut *p)
{
    GHashTableIter it;
    gpointer va, id;

    g_mutex_lock(&g->lock);
    gs_out_varint(p, g->vmemmap);
    gs_out_varint(p, g->page_offset);
    for (unsigned i = 0; i < KT_BOOT_CACHES; i++) {
        gs_out_varint(p, g->boot_cache[i].v);
    }
    gs_out_varint(p, g->kmem_cache.v);
    gs_out_varint(p, g_hash_table_size(g->caches));
    g_hash_table_iter_init(&it, g->caches);
    while (g_hash_table_iter_next(&it, &va, &id)) {
        gs_out_varint(p, *(uint64_t *)va);
        gs_out_varint(p, GPOINTER_TO_UINT(id));
    }
    g_mutex_unlock(&g->lock);
}

void kt_guest_unpack(KtGuest *g, GsBytes *u, const KtIdMap *ids)
{
    uint64_t n;

    g->vmemmap = gs_bytes_varint(u, UINT64_MAX);
    g->page_offset = gs_bytes_varint(u, UINT64_MAX);
    for (unsigned i = 0; i < KT_BOOT_CACHES; i++) {
        g->boot_cache[i] = kt_id_map_cache(ids, gs_bytes_varint(u, UINT64_MAX));
    }
    g->kmem_cache = kt_id_map_cache(ids, gs_bytes_varint(u, UINT64_MAX));
    n = gs_bytes_upto(u, CACHES_MAX, "the number of caches");
    for (uint64_t i = 0; i < n && gs_bytes_ok(u); i++) {
        uint64_t va = gs_bytes_varint(u, UINT64_MAX);
        KtCacheId id = kt_id_map_cache(ids, gs_bytes_varint(u, UINT64_MAX));

        if (id.v) {
            g_hash_table_insert(g->caches, g_memdup2(&va, sizeof(va)),
                                GUINT_TO_POINTER(id.v));
        }
    }
}
