/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Capture: what is done when the guest reaches a hooked function, returns from
 * one, or enters a call point. seam.h says how QEMU is made to call us.
 *
 * kt_capture_on_entry() and kt_capture_on_return() are the hot path; record.c
 * does the work.
 *
 * Threads. These callbacks run on vCPU threads without the BQL. They take no
 * lock that a monitor command holds for long: they only try the tracer's lock.
 * The exception is kt_capture_on_unknown(), which waits for our lock until the
 * kernel is found. QEMU calls on_vcpu_init() and on_vcpu_exit() on the vCPU's
 * thread, too.
 */
#include "kalloc-tracer/capture/capture.h"

#include <string.h>

#include "kalloc-tracer/capture/capture-internal.h"
#include "kalloc-tracer/capture/record-internal.h"
#include "kalloc-tracer/capture/seam.h"
#include "kalloc-tracer/kernel/kernel-finder.h"
#include "kalloc-tracer/tracer/tracer.h"

#define COST_PERIOD     64              /* time one callback in 64 */

/* One VM has one capture. Execution callbacks get one pointer of user data; we
 * pack (id, instructions left) into it, so the object is static. */
static KtCapture capture __attribute__((aligned(64)));

/* ---- callbacks ---------------------------------------------------------- */

static uint64_t host_ns(void)
{
    return kt_clock_ns(CLOCK_MONOTONIC);
}

/* Measure the cost of a sample of callbacks; `ka stat` shows the mean. The
 * first read of the clock warms the host's caches, so that the callback is not
 * charged for it. For the same reason cost_end() is near the callbacks: in a
 * page of its own it would add a TLB miss to each sample. */
GS_HOT
static uint64_t cost_begin(KtVcpu *v)
{
    if (v->cost_tick++ % COST_PERIOD) {
        return 0;
    }
    host_ns();
    return host_ns();
}

GS_HOT
static void cost_end(KtVcpu *v, uint64_t since)
{
    uint64_t ns;

    if (since) {
        ns = host_ns() - since;
        kt_vcpu_count(v, KT_CNT_COST_NS, ns - MIN(ns, capture.clock_ns));
        kt_vcpu_count(v, KT_CNT_COST_CALLS, 1);
    }
}

/* Measure the cost of reading the clock: the minimum of many. */
static uint64_t measure_clock(void)
{
    uint64_t best = UINT64_MAX;

    for (unsigned i = 0; i < 1000; i++) {
        uint64_t since = host_ns();

        best = MIN(best, host_ns() - since);
    }
    return best;
}

static bool is_wanted(const KtHookCall *m, KtHookId id)
{
    return G_LIKELY(kt_tracer_is_on(m->c->tracer)) ||
           kt_role_does(m->boot->row[id.v].role, KT_DOES_FOLLOW);
}

/*
 * A hooked entry can run twice for one call: the first instruction was an int3
 * (kprobe, or text being patched), the handler finds it gone and re-executes
 * it. Return true if this entry repeats the trapped one: same hook, sp, return
 * address, arguments. Only frees matter: an allocation returns once, and a loop
 * may repeat the same request.
 */
static bool is_retried(const KtHookCall *m, KtHookId id)
{
    const KtEntry now = kt_vcpu_entry(m->v, id.v);

    m->v->trapped = false;
    return kt_role_does(m->boot->row[id.v].role, KT_DOES_RETRY) &&
           !memcmp(&now, &m->v->trap, sizeof(now));
}

GS_HOT
void kt_capture_on_entry(unsigned vcpu_index, void *udata)
{
    KtHookCall m = {
        .c = &capture.shared,
        .boot = kt_capture_boot(&capture),
        .v = &capture.vcpu[vcpu_index],
        .insns_left = kt_packed_left(udata),
    };
    KtHookId id = { kt_packed_id(udata) };
    uint64_t since;

    if (!m.boot || !m.v->unwinder) {
        return;
    }
    if (!is_wanted(&m, id)) {
        m.v->trapped = false;
        kt_record_skip(&m, id);
        return;
    }
    if (G_UNLIKELY(m.v->trapped) && is_retried(&m, id)) {
        return;
    }
    since = cost_begin(m.v);
    m.v->hits[id.v]++;
    kt_record_enter(&m, id);
    cost_end(m.v, since);
}

void kt_capture_on_blind_entry(unsigned vcpu_index, void *udata)
{
    KtHookCall m = {
        .c = &capture.shared,
        .boot = kt_capture_boot(&capture),
        .v = &capture.vcpu[vcpu_index],
    };
    KtHookId id = { kt_packed_id(udata) };
    KtRole role;

    if (!m.boot || !m.v->unwinder) {
        return;
    }
    role = m.boot->row[id.v].role;
    if (role == KT_ROLE_LOG) {
        /* The line is read with the next one; its writer is not known. */
        return;
    }
    if (kt_record_awaits_return(role)) {
        kt_record_drop_call(&m, KT_CNT_CALL_DROPPED,
                            kt_role_does(role, KT_DOES_ALLOCATE));
    } else {
        kt_capture_on_entry(vcpu_index, udata);
    }
}

void kt_capture_on_trapped_entry(unsigned vcpu_index, void *udata)
{
    KtVcpu *v = &capture.vcpu[vcpu_index];

    kt_capture_on_entry(vcpu_index, udata);
    if (v->unwinder) {
        v->trap = kt_vcpu_entry(v, kt_packed_id(udata));
        v->trapped = true;
    }
}

/* See hooks-calls.c. */
void kt_capture_on_site(unsigned vcpu_index, void *udata)
{
    KtHookCall m = {
        .c = &capture.shared,
        .boot = kt_capture_boot(&capture),
        .v = &capture.vcpu[vcpu_index],
        .insns_left = kt_packed_left(udata),
    };
    const KtHookSite *site =
        m.boot ? kt_hooks_site(m.boot->hooks, kt_packed_id(udata)) : NULL;

    if (site && m.v->unwinder) {
        uint64_t since = cost_begin(m.v);
        bool wanted = is_wanted(&m, site->id);

        m.v->hits[site->id.v] += wanted;
        kt_record_enter_site(&m, site, wanted);
        cost_end(m.v, since);
    }
}

/* ---- call points --------------------------------------------------------- */

/* Return true if this entry repeats one that trapped: see is_retried(). A call
 * point that is still a breakpoint is entered by another call. */
static bool is_point_retried(KtVcpu *v, KtPointId id, bool trap)
{
    const KtEntry now = kt_vcpu_entry(v, id.v);
    bool retried = v->point_trapped && !trap &&
                   !memcmp(&now, &v->point_trap, sizeof(now));

    v->point_trapped = trap;
    v->point_trap = now;
    return retried;
}

/* Return true if the VM was stopped at this entry: the vCPU begins the
 * instruction anew. */
static bool is_point_resumed(KtVcpu *v, KtPointId id)
{
    const KtEntry now = kt_vcpu_entry(v, id.v);

    v->point_stopped = false;
    return !memcmp(&now, &v->point_trap, sizeof(now));
}

static KtLeave fault_point(KtHookCall *m, const KtCallPoint *point)
{
    KtLeave leave = kt_inject_fault(m, point);

    if (leave.how == KT_LEAVE_RETURN) {
        m->v->trapped = m->v->point_trapped = false;
    } else if (leave.how == KT_LEAVE_STOP) {
        m->v->point_stopped = true;
        m->v->point_trap = kt_vcpu_entry(m->v, point->id.v);
    }
    return leave;
}

/* @trap: a breakpoint replaces the instruction. Returns: how the callback has
 * to end. */
static KtLeave enter_point(unsigned vcpu_index, void *udata, bool trap)
{
    KtHookCall m = {
        .c = &capture.shared,
        .boot = kt_capture_boot(&capture),
        .v = &capture.vcpu[vcpu_index],
        .insns_left = kt_packed_left(udata),
    };
    const KtPointSet *set = kt_call_points_set(capture.shared.points);
    const KtCallPoint *point =
        set ? kt_point_set_get(set, kt_packed_point(udata)) : NULL;

    if (!m.boot || !m.v->unwinder || !point ||
        (G_UNLIKELY(m.v->point_stopped) &&
         is_point_resumed(m.v, point->id)) ||
        (G_UNLIKELY(trap || m.v->point_trapped) &&
         is_point_retried(m.v, point->id, trap)) ||
        !kt_record_point(&m, point) || !(point->uses & KT_POINT_FAULT) ||
        !kt_packed_may_leave(udata)) {
        return (KtLeave) { KT_LEAVE_NOT, 0 };
    }
    return fault_point(&m, point);
}

GS_HOT
void kt_capture_on_point(unsigned vcpu_index, void *udata)
{
    KtHookId hook = kt_packed_hook(udata);
    KtLeave leave = enter_point(vcpu_index, udata, false);

    if (G_UNLIKELY(leave.how)) {
        kt_leave_call(leave);
    }
    if (hook.v) {
        kt_capture_on_entry(vcpu_index,
                            kt_pack(hook.v, kt_packed_left(udata)));
    }
}

void kt_capture_on_trapped_point(unsigned vcpu_index, void *udata)
{
    KtHookId hook = kt_packed_hook(udata);
    KtLeave leave = enter_point(vcpu_index, udata, true);

    if (leave.how) {
        kt_leave_call(leave);
    }
    if (hook.v) {
        kt_capture_on_trapped_entry(vcpu_index,
                                    kt_pack(hook.v, kt_packed_left(udata)));
    }
}

/* ---- returns ------------------------------------------------------------- */

/* The calls that return to @m->ra have returned. @site: of that address */
GS_HOT
static void returned(KtHookCall *m, uint32_t site)
{
    unsigned left;
    KtPendingCall call;

    kt_pending_calls_expect(m->c->calls, m->sp_after);
    gs_unwind_expect(m->v->unwinder, m->ra);
    left = kt_pending_calls_pop(m->c->calls, m->sp_after, m->ra, &call);
    if (!kt_record_point_return(m) && !left) {
        kt_vcpu_count(m->v, KT_CNT_RETURN_FOREIGN, 1);
    }
    while (left) {
        if (is_wanted(m, call.hook)) {
            m->wrapper = m->have_stack ?
                             m->wrapper :
                             kt_return_sites_wrapper(m->c->sites, site);
            kt_record_return(m, &call);
        }
        left = left > 1 ?
                   kt_pending_calls_pop(m->c->calls, m->sp_after, m->ra,
                                        &call) :
                   0;
    }
}

GS_HOT
void kt_capture_on_return(unsigned vcpu_index, void *udata)
{
    uint32_t site = kt_packed_id(udata);
    KtHookCall m = {
        .c = &capture.shared,
        .boot = kt_capture_boot(&capture),
        .v = &capture.vcpu[vcpu_index],
        .insns_left = kt_packed_left(udata),
        .ra = kt_return_sites_va(capture.shared.sites, site),
    };
    uint64_t since;

    if (!m.boot || !m.v->unwinder) {
        return;
    }
    since = cost_begin(m.v);
    m.sp_after = kt_vcpu_reg(m.v, GS_REG_SP);
    returned(&m, site);
    cost_end(m.v, since);
}

/* A function that is hooked can be called from a place where nothing awaits its
 * return, and a function that others end in by a jump has other callers. */
GS_HOT
static void returning(KtHookCall *m)
{
    uint32_t site = kt_return_sites_find(m->c->sites, m->ra, KT_SITE_ANY);

    if (site != KT_RETURN_SITE_NONE) {
        returned(m, site);
    }
}

GS_HOT
void kt_capture_on_returning(unsigned vcpu_index)
{
    KtHookCall m = {
        .c = &capture.shared,
        .boot = kt_capture_boot(&capture),
        .v = &capture.vcpu[vcpu_index],
    };
    uint64_t since;

    if (!m.boot || !m.v->unwinder) {
        return;
    }
    since = cost_begin(m.v);
    if (kt_record_find_return(&m)) {
        returning(&m);
    }
    cost_end(m.v, since);
}

/* A call that is made to fail has no return of its own. Functions that ended in
 * it by a jump have returned, too. */
GS_HOT
KtLeave kt_capture_on_watched(unsigned vcpu_index, void *udata)
{
    KtLeave leave = enter_point(vcpu_index, udata, false);

    if (G_UNLIKELY(leave.how == KT_LEAVE_RETURN)) {
        KtHookCall m = {
            .c = &capture.shared,
            .boot = kt_capture_boot(&capture),
            .v = &capture.vcpu[vcpu_index],
            .ra = leave.to,
        };

        m.sp_after = kt_vcpu_reg(m.v, GS_REG_SP);
        returning(&m);
    }
    return leave;
}

void kt_capture_on_unknown(unsigned vcpu_index, void *udata)
{
    kt_capture_look(&capture, (uintptr_t)udata);
}

/* ---- vCPUs -------------------------------------------------------------- */

static void on_vcpu_init(qemu_plugin_id_t id, unsigned int index)
{
    kt_capture_add_vcpu(&capture, index);
}

static void on_vcpu_exit(qemu_plugin_id_t id, unsigned int index)
{
    kt_capture_remove_vcpu(&capture, index);
}

static void on_kexec(void)
{
    qemu_plugin_request_exclusive(kt_capture_end_by_kexec, &capture);
}

static void on_image(KtImageStep step)
{
    kt_hibernation_step(&capture, step);
}

/* Before the first vCPU runs, nobody reads a set. The flush is last, so that
 * code is translated after the sites of removed points are gone. */
static void on_points_changed(void *opaque, bool flush)
{
    KtCapture *c = opaque;

    if (__atomic_load_n(&c->applying, __ATOMIC_ACQUIRE)) {
        qemu_plugin_request_exclusive(kt_capture_reclaim_points, c);
    } else {
        kt_capture_reclaim_points(c);
    }
    c->seam->points_changed(c, flush);
}

/* ---- start -------------------------------------------------------------- */

static void account_for(const KtCapture *c)
{
    KtBudget *b = kt_tracer_budget(c->shared.tracer);

    kt_budget_charge(b, KT_MEM_FIXED,
                     kt_return_sites_bytes() + c->max_vcpus * sizeof(KtVcpu));
    kt_pending_calls_charge(c->shared.calls, b);
}

KtCapture *kt_capture_start(qemu_plugin_id_t id, const GsArch *arch,
                            KtTracer *t, KtFinder *finder,
                            const KtProfile *profile, unsigned max_vcpus,
                            bool pages)
{
    KtCapture *c = &capture;

    c->shared.tracer = t;
    c->shared.profile = profile;
    c->shared.kexec = on_kexec;
    c->shared.image = on_image;
    c->arch = arch;
    c->finder = finder;
    c->lowest = finder ? kt_finder_lowest(finder) : UINT64_MAX;
    c->max_vcpus = max_vcpus;
    c->clock_ns = measure_clock();
    c->pages = pages;
    c->vcpu = g_aligned_alloc0(max_vcpus, sizeof(KtVcpu), 64);
    c->shared.sites = kt_return_sites_new();
    c->shared.calls = kt_pending_calls_new();
    c->shared.watched = kt_tracer_calls(t);
    c->shared.points = c->shared.watched->points;
    kt_call_points_on_change(c->shared.points, on_points_changed, c);
    kt_tracer_add_check(t, KT_CHECK_CALLS, kt_pending_calls_check,
                        c->shared.calls);
    account_for(c);
    g_mutex_init(&c->lock);
    qemu_plugin_register_vcpu_init_cb(id, on_vcpu_init);
    qemu_plugin_register_vcpu_exit_cb(id, on_vcpu_exit);
    c->seam = kt_seam_kvm.start(c, id) ? &kt_seam_kvm : &kt_seam_tcg;
    if (c->seam == &kt_seam_tcg) {
        kt_seam_tcg.start(c, id);
    }
    kt_access_watch_start(c);
    kt_capture_start_block_watch(c, id);
    return c;
}

void kt_capture_on_moment(KtCapture *c, KtMomentFn fn, void *opaque)
{
    c->shared.moments = (KtMoments) { fn, opaque };
}

void kt_capture_lock(KtCapture *c)
{
    g_mutex_lock(&c->lock);
}

bool kt_capture_trylock(KtCapture *c)
{
    return g_mutex_trylock(&c->lock);
}

void kt_capture_unlock(KtCapture *c)
{
    g_mutex_unlock(&c->lock);
}

const GsKernel *kt_capture_kernel(const KtCapture *c)
{
    return c->shared.kernel;
}

bool kt_capture_found(const KtCapture *c)
{
    return c->boot != NULL;
}
