/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KtLearner: see guest-learn.h. It has the votes of the files *-witnesses.c,
 * and copies an offset to KtGuestLayout when the votes have decided.
 *
 * Publication. kmem_cache: all three offsets at once, with KtGuest.lock, which
 * a vCPU takes before it uses them for the first time. Tasks: each offset by
 * itself; a reader that does not have all of them reads no task.
 */
#include "kalloc-tracer/kernel/guest-internal.h"
#include "kalloc-tracer/kernel/guest-learn.h"
#include "kalloc-tracer/kernel/witnesses.h"

#include <inttypes.h>

/* What a snapshot has of struct page. */
enum {
    PAGES_LEARNED = 1,
    PAGES_BUT_HEAD = 2,
};

/* @caches, @tasks, @pages, @current: are these to be learned?
 * @wants: (atomic) by role: calls can still teach something. The direct map is
 *         learned from slabs before anything else of pages */
struct KtLearner {
    GMutex lock;
    bool caches, tasks, pages, current;
    bool wants[KT_ROLE__COUNT];
    unsigned contradicted;      /* members; they are counted */
    KtCacheWitnesses cache;
    KtTaskWitnesses task;
    KtPageWitnesses page;
    KtSlabWitnesses slab;
};

static uint64_t symbol(const GsKernel *k, const char *name)
{
    GsSymbol sym;

    return gs_kernel_variable(k, name, &sym) ? sym.va : 0;
}

static void set_wants(KtLearner *l, KtRole role, bool wants)
{
    __atomic_store_n(&l->wants[role], wants, __ATOMIC_RELAXED);
}

static bool does_want(const KtLearner *l, KtRole role)
{
    return __atomic_load_n(&l->wants[role], __ATOMIC_RELAXED);
}

static void set_wants_of_tasks(KtLearner *l, bool comm, bool pid, bool task)
{
    set_wants(l, KT_ROLE_WITNESS_NAME, comm);
    set_wants(l, KT_ROLE_WITNESS_THREAD, comm);
    set_wants(l, KT_ROLE_WITNESS_CLONE, pid);
    set_wants(l, KT_ROLE_WITNESS_WAKE, task);
}

/* Has the kernel no symbols that say where its struct pages are? */
static bool needs_slabs(const KtGuest *g)
{
    const GsDirectMapAt *at = &g->at.direct_map;

    return at->arch->direct_maps->in_variables &&
           !(at->vmemmap_base && at->page_offset_base) &&
           symbol(g->kernel, "__slab_free");
}

KtLearner *kt_learner_new(const KtGuest *g)
{
    const KtGuestLayout *at = &g->at;
    KtLearner *l;

    if (at->cache_object_size != UNKNOWN && at->task_pid != UNKNOWN) {
        return NULL;
    }
    l = g_new0(KtLearner, 1);
    g_mutex_init(&l->lock);
    l->caches = at->cache_object_size == UNKNOWN;
    l->tasks = at->task_pid == UNKNOWN;
    l->current = l->tasks && !at->base_is_task && !at->current_task;
    l->pages = !at->has_pages;
    set_wants(l, KT_ROLE_WITNESS_BOOT_CACHE, l->caches);
    set_wants_of_tasks(l, l->tasks, l->tasks, l->tasks);
    set_wants(l, KT_ROLE_WITNESS_SWITCH, l->current);
    set_wants(l, KT_ROLE_WITNESS_SLAB, l->pages && needs_slabs(g));
    l->slab.page_shift = at->page_shift;
    l->page.view = g->view;
    l->page.layout.tag_bits = g->tag_bits;
    l->page.at = at->direct_map;
    l->page.at.va_pa_offset = symbol(g->kernel, "kernel_map");
    l->cache.view = g->view;
    l->cache.tag_bits = g->tag_bits;
    l->cache.page_shift = at->page_shift;
    kt_task_witnesses_init(&l->task, g->view,
                           symbol(g->kernel, "__per_cpu_start"));
    return l;
}

void kt_learner_free(KtLearner *l)
{
    if (l) {
        g_mutex_clear(&l->lock);
        g_free(l);
    }
}

static void lock(KtLearner *l)
{
    g_mutex_lock(&l->lock);
}

/* Count new contradictions, and unlock. */
static void unlock(KtGuest *g)
{
    KtLearner *l = g->learner;
    unsigned n = l->cache.name.contradicted + l->cache.size.contradicted +
                 l->cache.object_size.contradicted +
                 l->task.current.contradicted + l->task.comm.contradicted +
                 l->task.pid.contradicted + l->page.votes.contradicted +
                 l->slab.contradicted;

    if (n > l->contradicted) {
        kt_tracer_count(g->tracer, KT_CNT_TYPES_CONTRADICTED,
                        n - l->contradicted);
        l->contradicted = n;
    }
    g_mutex_unlock(&l->lock);
}

/* ---- kmem_caches --------------------------------------------------------- */

/* Learner's lock held. */
static void publish_caches(KtGuest *g)
{
    const KtCacheWitnesses *w = &g->learner->cache;
    uint32_t object_size = w->object_size.n ? w->object_size.at[0] : UNKNOWN;

    if (!w->learned || object_size == g->at.cache_object_size) {
        return;
    }
    g_mutex_lock(&g->lock);
    g->at.cache_name = w->name.at[0];
    g->at.cache_size = w->size.at[0];
    __atomic_store_n(&g->at.cache_object_size, object_size, __ATOMIC_RELEASE);
    g_mutex_unlock(&g->lock);
}

uint32_t kt_guest_witness_clock(KtGuest *g)
{
    return g->learner ? __atomic_load_n(&g->learner->cache.clock,
                                        __ATOMIC_RELAXED) : 0;
}

void kt_guest_cache_made(KtGuest *g, const KtCacheMade *made)
{
    if (g->learner && g->learner->caches) {
        lock(g->learner);
        kt_cache_witnesses_made(&g->learner->cache, made);
        publish_caches(g);
        unlock(g);
    }
}

void kt_guest_object_made(KtGuest *g, uint64_t cache, uint64_t object)
{
    if (g->learner && g->learner->caches && cache) {
        lock(g->learner);
        kt_cache_witnesses_object(&g->learner->cache, cache, object);
        publish_caches(g);
        unlock(g);
    }
}

void kt_guest_kmalloc_made(KtGuest *g, uint64_t cache, uint64_t size)
{
    if (g->learner && g->learner->caches && cache && size <= UINT32_MAX) {
        lock(g->learner);
        kt_cache_witnesses_kmalloc(&g->learner->cache, cache, size);
        publish_caches(g);
        unlock(g);
    }
}

void kt_learner_freed(KtLearner *l, uint64_t object)
{
    if (l && l->caches) {
        lock(l);
        kt_cache_witnesses_freed(&l->cache, object);
        g_mutex_unlock(&l->lock);
    }
}

/* ---- tasks --------------------------------------------------------------- */

/* Learner's lock held. */
static void publish_tasks(KtGuest *g)
{
    const KtTaskWitnesses *w = &g->learner->task;

    if (g->learner->current && w->learned_current != UNKNOWN) {
        __atomic_store_n(&g->at.current_task,
                         w->percpu_start + w->learned_current,
                         __ATOMIC_RELEASE);
        set_wants(g->learner, KT_ROLE_WITNESS_SWITCH, false);
    }
    __atomic_store_n(&g->at.task_comm, w->learned_comm, __ATOMIC_RELEASE);
    __atomic_store_n(&g->at.task_pid, w->learned_pid, __ATOMIC_RELEASE);
    set_wants_of_tasks(g->learner, w->learned_comm == UNKNOWN,
                       kt_task_witnesses_want_pid(w),
                       kt_task_witnesses_want_new(w));
}

void kt_guest_task_named(KtGuest *g, uint64_t task, uint64_t name)
{
    if (g->learner && g->learner->tasks) {
        lock(g->learner);
        kt_task_witnesses_named(&g->learner->task, task, name);
        publish_tasks(g);
        unlock(g);
    }
}

void kt_guest_thread(KtGuest *g, uint64_t sp, uint64_t name)
{
    if (g->learner && g->learner->tasks) {
        lock(g->learner);
        kt_task_witnesses_thread(&g->learner->task, sp, name);
        unlock(g);
    }
}

void kt_guest_task_switch(KtGuest *g, uint64_t base, uint64_t prev)
{
    if (g->learner && g->learner->current) {
        lock(g->learner);
        kt_task_witnesses_switch(&g->learner->task, base, prev);
        publish_tasks(g);
        unlock(g);
    }
}

void kt_guest_new_task(KtGuest *g, uint64_t sp, uint64_t task, uint64_t base)
{
    uint64_t current;

    if (g->learner && g->learner->tasks) {
        lock(g->learner);
        kt_task_witnesses_new_task(&g->learner->task, sp, task,
                                   kt_guest_current(g, base, &current) ?
                                       current : 0);
        publish_tasks(g);
        unlock(g);
    }
}

void kt_guest_cloned(KtGuest *g, uint64_t sp, uint64_t result)
{
    if (g->learner && g->learner->tasks) {
        lock(g->learner);
        kt_task_witnesses_cloned(&g->learner->task, sp, (int32_t)result);
        publish_tasks(g);
        unlock(g);
    }
}

/* ---- slab pages ---------------------------------------------------------- */

/* Learner's lock held. The direct map is stored last, with release. */
static void publish_pages(KtGuest *g)
{
    const KtPageLayout *layout = &g->learner->page.layout;

    g->at.page_head = layout->page_head;
    g->at.slab_cache = layout->slab_cache;
    g->at.direct_map.struct_page = layout->struct_page;
    __atomic_store_n(&g->at.page_heads, g->learner->page.heads,
                     __ATOMIC_RELEASE);
    kt_guest_set_direct_map(g, &layout->map);
}

/* Learner's lock held. If calls contradict each other, the places of a kernel
 * that is not randomised are tried. */
static void slab_freed(KtLearner *l, uint64_t slab, uint64_t object)
{
    const KtSlabBase *found;

    kt_slab_witnesses_freed(&l->slab, slab, object);
    found = kt_slab_witnesses_learned(&l->slab);
    if (found) {
        l->page.at.learned_size = found->struct_page;
        l->page.at.learned_base = found->base;
    }
    if (found || l->slab.contradicted) {
        set_wants(l, KT_ROLE_WITNESS_SLAB, false);
    }
}

void kt_guest_slab_freed(KtGuest *g, uint64_t slab, uint64_t object)
{
    KtLearner *l = g->learner;

    if (l && does_want(l, KT_ROLE_WITNESS_SLAB)) {
        lock(l);
        if (does_want(l, KT_ROLE_WITNESS_SLAB)) {
            slab_freed(l, slab, object);
        }
        unlock(g);
    }
}

void kt_guest_learn_pages(KtGuest *g, uint64_t object, uint64_t cache_va)
{
    KtLearner *l = g->learner;

    if (!l || !l->pages || does_want(l, KT_ROLE_WITNESS_SLAB)) {
        return;
    }
    lock(l);
    if (!l->page.learned) {
        kt_page_witnesses_object(&l->page, cache_va, object);
        if (l->page.learned || l->page.heads) {
            publish_pages(g);
        } else if (l->page.votes.contradicted) {
            kt_guest_set_direct_map(g, &(GsDirectMap) { 0 });
        }
    }
    unlock(g);
}

/* ---- snapshots ----------------------------------------------------------- */

static void pack_votes(const KtVotes *votes, GsOut *p)
{
    gs_out_varint(p, votes->n);
    for (unsigned i = 0; i < votes->n; i++) {
        gs_out_varint(p, votes->at[i]);
    }
}

/* Store the learned offsets of struct page. If the offset of compound_head is
 * not known yet, store those that are left, too. */
static void pack_pages(const KtPageWitnesses *w, GsOut *p)
{
    gs_out_varint(p, w->learned ? PAGES_LEARNED :
                     w->heads ? PAGES_BUT_HEAD : 0);
    if (w->learned || w->heads) {
        gs_out_varint(p, w->layout.struct_page);
        gs_out_varint(p, w->layout.page_head);
        gs_out_varint(p, w->layout.slab_cache);
    }
    if (w->heads) {
        gs_out_varint(p, w->heads);
        pack_votes(&w->votes, p);
    }
}

/* Only members that are known are stored. What is not known yet is learned from
 * the calls after the load. */
void kt_guest_pack_learned(KtGuest *g, GsOut *p)
{
    KtLearner *l = g->learner;

    if (!l) {
        return;
    }
    lock(l);
    gs_out_varint(p, l->cache.learned);
    if (l->cache.learned) {
        gs_out_varint(p, l->cache.name.at[0]);
        gs_out_varint(p, l->cache.size.at[0]);
        pack_votes(&l->cache.object_size, p);
    }
    gs_out_varint(p, l->task.learned_current);
    gs_out_varint(p, l->task.learned_comm);
    gs_out_varint(p, l->task.learned_pid != UNKNOWN);
    if (l->task.learned_pid != UNKNOWN) {
        pack_votes(&l->task.pid, p);
    }
    pack_pages(&l->page, p);
    unlock(g);
}

static void unpack_votes(KtVotes *votes, GsBytes *u, uint32_t max)
{
    votes->n = gs_bytes_upto(u, KT_VOTES_MAX, "the number of offsets");
    for (unsigned i = 0; i < votes->n; i++) {
        votes->at[i] = gs_bytes_upto(u, max, "an offset");
    }
    votes->contradicted = !votes->n;
}

static uint32_t unpack_offset(GsBytes *u, uint32_t max)
{
    uint32_t at = gs_bytes_upto(u, UNKNOWN, "an offset");

    return at < max ? at : UNKNOWN;
}

static void unpack_caches(KtCacheWitnesses *w, GsBytes *u)
{
    w->learned = gs_bytes_upto(u, 1, "a flag");
    if (w->learned) {
        w->name.n = w->size.n = 1;
        w->name.at[0] = gs_bytes_upto(u, KT_CACHE_BYTES - 8, "an offset");
        w->size.at[0] = gs_bytes_upto(u, KT_CACHE_BYTES - 4, "an offset");
        unpack_votes(&w->object_size, u, KT_CACHE_BYTES - 4);
    }
}

static void unpack_tasks(KtTaskWitnesses *w, GsBytes *u)
{
    w->learned_current = unpack_offset(u, KT_PERCPU_BYTES);
    w->learned_comm = unpack_offset(u, KT_TASK_BYTES - 16);
    if (gs_bytes_upto(u, 1, "a flag")) {
        unpack_votes(&w->pid, u, KT_TASK_BYTES - 4);
        kt_task_witnesses_resume_pid(w);
    }
}

static void unpack_pages(KtPageWitnesses *w, GsBytes *u)
{
    unsigned known = gs_bytes_upto(u, PAGES_BUT_HEAD, "a flag");

    w->learned = known == PAGES_LEARNED;
    if (known) {
        w->layout.struct_page = gs_bytes_upto(u, 4096, "a size");
        w->layout.page_head = gs_bytes_upto(u, 4096, "an offset");
        w->layout.slab_cache = gs_bytes_upto(u, 4096, "an offset");
    }
    if (known == PAGES_BUT_HEAD) {
        w->heads = gs_bytes_upto(u, UINT8_MAX, "words");
        unpack_votes(&w->votes, u, KT_PAGE_LAYOUTS - 1);
        kt_page_witnesses_resume(w);
    }
}

void kt_guest_unpack_learned(KtGuest *g, GsBytes *u)
{
    g_autofree KtLearner *unused = NULL;
    KtLearner *l = g->learner;

    if (!l) {
        l = unused = g_new0(KtLearner, 1);
    }
    unpack_caches(&l->cache, u);
    unpack_tasks(&l->task, u);
    unpack_pages(&l->page, u);
    if (unused) {
        return;
    }
    if (!gs_bytes_ok(u)) {
        g_clear_pointer(&g->learner, kt_learner_free);
        return;
    }
    publish_caches(g);
    publish_tasks(g);
    if (l->pages && !l->page.learned && !l->page.heads) {
        g->vmemmap = g->page_offset = 0;
    }
    if (l->page.learned || l->page.heads) {
        set_wants(l, KT_ROLE_WITNESS_SLAB, false);
        l->page.layout.map = (GsDirectMap) { g->page_offset, g->vmemmap };
        publish_pages(g);
    }
}

/* ---- status -------------------------------------------------------------- */

bool kt_guest_learns(const KtGuest *g, KtRole role)
{
    return role == KT_ROLE_WITNESS_CACHE ||    /* names of merged caches */
           (g->learner && does_want(g->learner, role));
}

/* Add "name=offset" to a line. */
static void put_offset(GString *line, const char *name, const KtVotes *votes,
                       bool known, uint64_t at)
{
    g_string_append_printf(line, "%s%s=", line->len ? " " : "", name);
    if (known) {
        g_string_append_printf(line, "%" PRIu64, at);
    } else {
        g_string_append(line, votes->contradicted ? "contradicted" : "unknown");
    }
}

static void put_caches(GString *line, const KtGuest *g)
{
    const KtCacheWitnesses *w = &g->learner->cache;

    put_offset(line, "cache.name", &w->name, w->learned, g->at.cache_name);
    put_offset(line, "cache.object_size", &w->object_size,
               w->learned && w->object_size.n, g->at.cache_object_size);
    put_offset(line, "cache.size", &w->size, w->learned, g->at.cache_size);
}

static void put_tasks(GString *line, const KtGuest *g)
{
    const KtTaskWitnesses *w = &g->learner->task;

    if (g->learner->current) {
        put_offset(line, "current", &w->current, g->at.current_task,
                   g->at.current_task);
    }
    put_offset(line, "task.comm", &w->comm, w->learned_comm != UNKNOWN,
               w->learned_comm);
    put_offset(line, "task.pid", &w->pid, w->learned_pid != UNKNOWN,
               w->learned_pid);
}

static void put_pages(GString *line, const KtGuest *g)
{
    const KtPageWitnesses *w = &g->learner->page;

    bool known = w->learned || w->heads;

    put_offset(line, "page.slab_cache", &w->votes, known,
               w->layout.slab_cache);
    if (known) {
        g_string_append_printf(line, " page.bytes=%u", w->layout.struct_page);
    }
}

char *kt_guest_learned(KtGuest *g)
{
    KtLearner *l = g->learner;
    GString *line;

    if (!l) {
        return NULL;
    }
    line = g_string_new(NULL);
    lock(l);
    if (l->caches) {
        put_caches(line, g);
    }
    if (l->tasks) {
        put_tasks(line, g);
    }
    if (l->pages) {
        put_pages(line, g);
    }
    g_mutex_unlock(&l->lock);
    return g_string_free(line, FALSE);
}
