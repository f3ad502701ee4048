/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The live set, and reads of guest memory for it: see leak-internal.h.
 */
#include "kalloc-tracer/leak/leak-internal.h"

#define READS_PER_CHECK 4096        /* of the deadline */
#define SMALL           (1ull << 31)    /* no kernel memory is below */

/* ---- memory ------------------------------------------------------------- */

bool kt_live_set_progress(KtLiveSet *w, uint64_t bytes)
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

/* Every walk of a list in guest memory reads through here. So each walk ends at
 * the deadline, even if the guest made the list endless. */
static bool read_mem(void *opaque, uint64_t va, void *buf, size_t len)
{
    KtLiveSet *w = opaque;
    const KtVm *vm = w->plan->vm;

    if (++w->reads % READS_PER_CHECK == 0) {
        kt_live_set_progress(w, 0);
    }
    return !w->ended && vm->read(vm->opaque, w->vcpu, va, buf, len);
}

bool kt_live_set_load(const KtLiveSet *w, uint64_t va, uint64_t *out)
{
    if (!w->mem.read(w->mem.opaque, va, out, sizeof(*out))) {
        return false;
    }
    *out = gs_untag(w->tag_bits, *out);
    return true;
}

uint32_t kt_live_set_u32(const KtLiveSet *w, uint64_t va)
{
    uint32_t v;

    return w->mem.read(w->mem.opaque, va, &v, sizeof(v)) ? v : 0;
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
        w->skipped += end - va;
        return;
    }
    g_array_append_val(w->region, r);
}

void kt_live_set_add_missing(KtLiveSet *w, char *what)
{
    g_ptr_array_add(w->missing, what);
    w->unknown_roots = w->unknown_roots ? w->unknown_roots : what;
}

/* ---- blocks ------------------------------------------------------------- */

const KtLiveBlock *kt_live_set_find(const KtLiveSet *w, uint64_t va)
{
    return !w->live->len ? NULL :
           bsearch(&va, w->live->data, w->live->len, sizeof(KtLiveBlock),
                   kt_by_address);
}

bool kt_live_set_is_exact(const KtLiveSet *w, uint64_t va)
{
    return va < SMALL || gs_kernel_in_image(w->plan->kernel, va);
}

/* ---- begin and end ------------------------------------------------------ */

KtLiveSet *kt_live_set_new(KtTracer *t, const KtLeakPlan *plan)
{
    KtLiveSet *w = g_new0(KtLiveSet, 1);

    w->plan = plan;
    w->tracer = t;
    w->deadline = g_get_monotonic_time() + seconds_max(w) * G_USEC_PER_SEC;
    w->mem = (GsMem) { .read = read_mem, .opaque = w };
    kt_layout_init(&w->layout, plan->kernel);
    w->tag_bits = plan->kernel ? gs_kernel_tag_bits(plan->kernel) : 0;
    w->live = g_array_new(FALSE, FALSE, sizeof(KtLiveBlock));
    w->region = g_array_new(FALSE, FALSE, sizeof(KtRegion));
    w->sheaf = g_array_new(FALSE, FALSE, sizeof(KtLiveSheaf));
    w->code = g_array_new(FALSE, FALSE, sizeof(KtCodeWord));
    w->registers = g_array_new(FALSE, FALSE, sizeof(KtRegister));
    w->vcpu_of = g_array_new(FALSE, FALSE, sizeof(unsigned));
    w->offset = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    w->missing = g_ptr_array_new_with_free_func(g_free);
    w->scan = kt_marker_new();
    return w;
}

void kt_live_set_free(KtLiveSet *w)
{
    if (!w) {
        return;
    }
    g_array_unref(w->live);
    g_array_unref(w->region);
    g_array_unref(w->sheaf);
    g_array_unref(w->code);
    g_array_unref(w->registers);
    g_array_unref(w->vcpu_of);
    g_array_unref(w->offset);
    g_ptr_array_unref(w->missing);
    kt_page_use_free(w->pages);
    kt_marker_free(w->scan);
    g_free(w);
}
