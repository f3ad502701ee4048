/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Collect live blocks and roots: see leak-internal.h.
 *
 *     check()        is the VM stopped, and its kernel known?
 *     copy_blocks()  copy live blocks, under the tracer's lock
 *     find_vcpu()    find a vCPU that maps the kernel
 *     add_blocks()   add the blocks to the marker
 *     kt_roots_find(), add_pages()
 *
 * Only copy_blocks() holds the tracer's lock.
 */
#include "kalloc-tracer/leak/leak-internal.h"

#include "kalloc-tracer/base/host-memory.h"

#include <stdlib.h>

/* ---- the VM ------------------------------------------------------------- */

/* Return an address that each kernel page table maps: init_task, or, if there
 * is no such symbol, a block. */
static uint64_t landmark(const KtLiveSet *w)
{
    uint64_t va = kt_live_set_symbol(w, "init_task");

    for (uint32_t i = 0; !va && i < w->live->len; i++) {
        va = kt_live_set_block(w, i)->layer != KT_LAYER_PERCPU ?
             kt_live_set_block(w, i)->va : 0;
    }
    return va;
}

/* Find a vCPU whose page tables map the kernel. With page-table isolation,
 * those of user mode do not. */
static bool find_vcpu(KtLiveSet *w)
{
    uint64_t va = landmark(w), v;

    for (w->vcpu = 0; va && w->vcpu < w->plan->vm->n_vcpus; w->vcpu++) {
        if (kt_live_set_load(w, va, &v)) {
            return true;
        }
    }
    return false;
}

static bool check(const KtLiveSet *w, GError **errp)
{
    const char *why = NULL;

    if (w->plan->vm->running) {
        why = "the VM runs: stop it first, as what is read while it runs "
              "does not fit together";
    } else if (!w->plan->kernel) {
        why = "no kernel was recognised yet";
    }
    if (why) {
        g_set_error(errp, GS_ERROR, GS_ERROR_GUEST, "%s", why);
    }
    return !why;
}

/* ---- blocks ------------------------------------------------------------- */

/* Is the block examined? Of pages only those that the caller named. */
static bool is_wanted(const KtLiveSet *w, const KtBlock *b)
{
    const GArray *pages = w->plan->pages;

    return b->state == KT_BLOCK_ALLOCATED &&
           (b->layer != KT_LAYER_PAGES ||
            (pages && pages->len &&
             bsearch(&b->va, pages->data, pages->len, sizeof(uint64_t),
                     kt_by_address)));
}

static bool copy_block(const KtBlock *b, void *opaque)
{
    KtLiveSet *w = opaque;
    KtLiveBlock live = {
        .va = b->va, .len = kt_block_len(b), .requested = b->requested,
        .alloc_us = b->alloc_us, .stack = b->alloc_stack, .cache = b->cache,
        .layer = b->layer, .queued = b->rcu_queued,
    };

    if (is_wanted(w, b) && live.len && w->live->len < KT_MARKER_NONE - 1) {
        g_array_append_val(w->live, live);
    }
    return true;
}

static void copy_blocks(KtLiveSet *w)
{
    KtStats stats;

    kt_query_begin(w->tracer);
    kt_query_stats(w->tracer, &stats);
    kt_huge_reserve(w->live, MIN(stats.live_blocks, KT_MARKER_NONE - 1));
    kt_query_range(w->tracer, 0, UINT64_MAX, copy_block, w);
    kt_query_end(w->tracer);
}

/* Return the flags of per-CPU memory. Its address is a __percpu pointer: the
 * memory of a CPU is at that address + __per_cpu_offset[cpu]. */
static unsigned flags_of_percpu(const KtLiveSet *w, uint64_t va)
{
    return KT_MARKERF_HANDLE |
           (kt_live_set_is_exact(w, va) ? KT_MARKERF_EXACT : 0);
}

/*
 * Skip the word that the requested size ends in, such as bytes 8 to 15 of
 * kmalloc(12). It has no pointer of the owner. It may have a stale one: the
 * freelist pointer of the free object (plain without
 * CONFIG_SLAB_FREELIST_HARDENED), with the end of a short string in its low
 * bytes. Later words are not skipped: callers of ksize() use them.
 */
static void skip_last_word(KtLiveSet *w, uint32_t i, const KtLiveBlock *b)
{
    if (b->requested % 8 && b->requested < b->len) {
        kt_marker_skip(w->scan, i, b->requested, b->requested);
    }
}

static void add_blocks(KtLiveSet *w)
{
    kt_marker_reserve(w->scan, w->live->len);
    for (uint32_t i = 0; i < w->live->len; i++) {
        const KtLiveBlock *b = kt_live_set_block(w, i);
        unsigned flags = b->queued ? KT_MARKERF_ROOT : 0;

        flags |= b->layer == KT_LAYER_PERCPU ? flags_of_percpu(w, b->va) : 0;
        flags |= b->layer == KT_LAYER_LARGE || b->layer == KT_LAYER_PAGES ?
                     KT_MARKERF_BY_PAGE : 0;
        kt_marker_add(w->scan, b->va, b->len, flags);
        skip_last_word(w, i, b);
        for (unsigned cpu = 0; b->layer == KT_LAYER_PERCPU &&
             cpu < w->offset->len; cpu++) {
            kt_marker_alias(w->scan, kt_live_set_of_cpu(w, b->va, cpu));
        }
    }
}

static void add_pages(KtLiveSet *w)
{
    const KtPageUses *p = w->pages;

    if (p) {
        kt_marker_pages(w->scan, kt_page_use_struct(p, 0),
                        kt_page_use_struct(p, p->n), p->struct_page,
                        kt_page_use_va(p, 0), 1ull << p->page_shift);
    }
}

/* Blocks of pages that have another owner by now are in use: page cache, slabs,
 * memory of vmalloc. They are not scanned, because their owner is. */
static void set_owned_pages(KtLiveSet *w)
{
    for (uint32_t i = 0; w->plan->pages && i < w->live->len; i++) {
        const KtLiveBlock *b = kt_live_set_block(w, i);

        if (b->layer == KT_LAYER_PAGES &&
            (!w->pages || !kt_page_use_kernel(w->pages, b->va))) {
            kt_marker_set_flags(w->scan, i,
                                KT_MARKERF_ROOT | KT_MARKERF_NO_SCAN);
        }
    }
}

static bool collect(KtLiveSet *w, GError **errp)
{
    if (!find_vcpu(w)) {
        g_set_error(errp, GS_ERROR, GS_ERROR_GUEST,
                    "no vCPU maps the kernel's memory now (all are in user "
                    "mode, or it has not booted so far): let it run for a "
                    "moment");
        return false;
    }
    kt_roots_find_percpu(w);
    add_blocks(w);
    kt_roots_find(w);
    add_pages(w);
    set_owned_pages(w);
    return !w->ended || kt_live_set_fail(w, errp);
}

KtLiveSet *kt_leak_collect(KtTracer *t, const KtLeakPlan *plan, GError **errp)
{
    g_autoptr(KtLiveSet) w = kt_live_set_new(t, plan);

    if (!check(w, errp)) {
        return NULL;
    }
    copy_blocks(w);
    return collect(w, errp) ? g_steal_pointer(&w) : NULL;
}
