/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The live blocks, copied under the tracer's lock, and the scan that is made
 * of them: see live-set.h.
 */
#include "kalloc-tracer/base/host-memory.h"
#include "kalloc-tracer/leak/leak-rules.h"
#include "kalloc-tracer/leak/live-set.h"
#include "kalloc-tracer/leak/roots.h"

#define READS_A_LOOK    4096        /* at the clock */
#define SMALL           (1ull << 31)

/* ---- memory ------------------------------------------------------------- */

bool kt_live_set_goes_on(KtLiveSet *w, uint64_t bytes)
{
    const KtLeakPlan *plan = w->plan;

    w->bytes = MAX(w->bytes, bytes);
    w->ended = w->ended || g_get_monotonic_time() > w->deadline ||
               (plan->progress && !plan->progress(plan->opaque, w->bytes));
    return !w->ended;
}

static unsigned seconds_max(const KtLiveSet *w)
{
    return w->plan->seconds ? w->plan->seconds : KT_LEAK_SECONDS;
}

bool kt_live_set_fail(const KtLiveSet *w, GError **errp)
{
    if (g_get_monotonic_time() > w->deadline) {
        g_set_error(errp, GS_ERROR, GS_ERROR_GUEST,
                    "given up after %u s: there is too much memory in use, or "
                    "the guest says so", seconds_max(w));
    } else {
        g_set_error(errp, GS_ERROR, GS_ERROR_GUEST, "the search was ended");
    }
    return false;
}

/* Whatever a guest says of itself, looking at it ends. */
static bool read_mem(void *opaque, uint64_t va, void *buf, size_t len)
{
    KtLiveSet *w = opaque;
    const KtVm *vm = w->plan->vm;

    if (++w->reads % READS_A_LOOK == 0) {
        kt_live_set_goes_on(w, 0);
    }
    return !w->ended && vm->read(vm->opaque, w->vcpu, va, buf, len);
}

bool kt_live_set_load(const KtLiveSet *w, uint64_t va, uint64_t *out)
{
    return w->mem.read(w->mem.opaque, va, out, sizeof(*out));
}

uint64_t kt_live_set_symbol(const KtLiveSet *w, const char *name)
{
    GsSymbol sym;

    return gs_kernel_lookup(w->plan->kernel, name, &sym) ? sym.va : 0;
}

void kt_live_set_add(KtLiveSet *w, KtPlace place, uint64_t va, uint64_t end,
                     uint32_t number)
{
    KtRegion r = { place, va, end - va, number };

    if (va >= end) {
        return;
    }
    if (w->region->len >= KT_REGIONS_MAX) {
        w->left_out += end - va;
        return;
    }
    g_array_append_val(w->region, r);
}

void kt_live_set_lack(KtLiveSet *w, char *what)
{
    g_ptr_array_add(w->missing, what);
    w->blind = w->blind ? w->blind : what;
}

/* Of memory that the kernel has for as long as it runs; or of a block. */
static uint64_t landmark(const KtLiveSet *w)
{
    uint64_t va = kt_live_set_symbol(w, "init_task");

    for (uint32_t i = 0; !va && i < w->live->len; i++) {
        va = kt_leak_live(w, i)->layer != KT_LAYER_PERCPU ?
             kt_leak_live(w, i)->va : 0;
    }
    return va;
}

/* A vCPU in user mode may have page tables without the kernel's memory. */
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

static bool take(const KtBlock *b, void *opaque)
{
    KtLiveSet *w = opaque;
    KtLeakLive live = {
        .va = b->va, .len = kt_block_len(b), .requested = b->requested,
        .alloc_us = b->alloc_us, .stack = b->alloc_stack, .cache = b->cache,
        .layer = b->layer, .queued = b->rcu_queued,
    };

    if (b->state == KT_BLOCK_ALLOCATED && b->layer != KT_LAYER_PAGES &&
        live.len && w->live->len < KT_MARKER_NONE - 1) {
        g_array_append_val(w->live, live);
    }
    return true;
}

static void take_all(KtLiveSet *w)
{
    KtStats stats;

    kt_query_begin(w->tracer);
    kt_query_stats(w->tracer, &stats);
    kt_huge_reserve(w->live, MIN(stats.live_blocks, KT_MARKER_NONE - 1));
    kt_query_range(w->tracer, 0, UINT64_MAX, take, w);
    kt_query_end(w->tracer);
}

static int by_start(const void *key, const void *b)
{
    uint64_t va = *(const uint64_t *)key, start = ((const KtLeakLive *)b)->va;

    return (va > start) - (va < start);
}

const KtLeakLive *kt_live_set_live(const KtLiveSet *w, uint64_t va)
{
    return !w->live->len ? NULL :
           bsearch(&va, w->live->data, w->live->len, sizeof(KtLeakLive),
                   by_start);
}

/* Per-CPU memory of the first chunk is counted from where the variables are:
 * from 0, or within the kernel's image. */
static unsigned flags_of_percpu(const KtLiveSet *w, uint64_t va)
{
    return KT_MARKERF_COOKIE |
           (va < SMALL || gs_kernel_in_image(w->plan->kernel, va) ?
                KT_MARKERF_NUMBER :
                0);
}

/* The word that a block's size ends in was asked for in part, so it has no
 * pointer. It may look like one, of the free object that was there before,
 * with a short string's bytes over its lowest, where free lists are not
 * encoded. Words behind it may be in use: ksize() tells the kernel of them. */
static void cut_odd_word(KtLiveSet *w, uint32_t i, const KtLeakLive *b)
{
    if (b->requested % 8 && b->requested < b->len) {
        kt_marker_cut(w->scan, i, b->requested, b->requested);
    }
}

static void add_blocks(KtLiveSet *w)
{
    kt_marker_reserve(w->scan, w->live->len);
    for (uint32_t i = 0; i < w->live->len; i++) {
        const KtLeakLive *b = kt_leak_live(w, i);
        unsigned flags = b->queued ? KT_MARKERF_HELD : 0;

        flags |= b->layer == KT_LAYER_PERCPU ? flags_of_percpu(w, b->va) : 0;
        flags |= b->layer == KT_LAYER_LARGE ? KT_MARKERF_PAGES : 0;
        kt_marker_add(w->scan, b->va, b->len, flags);
        cut_odd_word(w, i, b);
        for (unsigned cpu = 0; b->layer == KT_LAYER_PERCPU &&
             cpu < w->offset->len; cpu++) {
            kt_marker_alias(w->scan,
                            b->va + g_array_index(w->offset, uint64_t, cpu));
        }
    }
}

static void tell_pages(KtLiveSet *w)
{
    const KtPageUses *p = w->pages;

    if (p) {
        kt_marker_pages(w->scan, kt_page_use_struct(p, 0),
                        kt_page_use_struct(p, p->n), p->struct_page,
                        kt_page_use_va(p, 0), 1ull << p->page_shift);
    }
}

static bool look_around(KtLiveSet *w, GError **errp)
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
    tell_pages(w);
    return !w->ended || kt_live_set_fail(w, errp);
}

KtLiveSet *kt_live_set_new(KtTracer *t, const KtLeakPlan *plan, GError **errp)
{
    g_autoptr(KtLiveSet) w = g_new0(KtLiveSet, 1);

    w->plan = plan;
    w->tracer = t;
    w->deadline = g_get_monotonic_time() + seconds_max(w) * G_USEC_PER_SEC;
    w->mem = (GsMem) { .read = read_mem, .opaque = w };
    w->live = g_array_new(FALSE, FALSE, sizeof(KtLeakLive));
    w->region = g_array_new(FALSE, FALSE, sizeof(KtRegion));
    w->sheaf = g_array_new(FALSE, FALSE, sizeof(KtLeakSheaf));
    w->registers = g_array_new(FALSE, FALSE, sizeof(KtRegister));
    w->vcpu_of = g_array_new(FALSE, FALSE, sizeof(unsigned));
    w->offset = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    w->missing = g_ptr_array_new_with_free_func(g_free);
    w->scan = kt_marker_new();
    if (!check(w, errp)) {
        return NULL;
    }
    take_all(w);
    return look_around(w, errp) ? g_steal_pointer(&w) : NULL;
}

void kt_live_set_free(KtLiveSet *w)
{
    if (!w) {
        return;
    }
    g_array_unref(w->live);
    g_array_unref(w->region);
    g_array_unref(w->sheaf);
    g_array_unref(w->registers);
    g_array_unref(w->vcpu_of);
    g_array_unref(w->offset);
    g_ptr_array_unref(w->missing);
    kt_page_use_free(w->pages);
    kt_marker_free(w->scan);
    g_free(w);
}
