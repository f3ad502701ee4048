/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The seam to KVM: QEMU makes instructions breakpoints, and emulates them.
 *
 *     MSR_LSTAR is set -> kernel unknown: kt_capture_on_unknown()
 *     the boot begins  -> plan: the breakpoints of each hook's function, see
 *                         hooks/breakpoints.h; plant
 *     a VM is loaded, and continues: the same, with its LSTAR
 *     points changed   -> the next breakpoint that is hit: plan and plant those
 *                         of call points
 *     one is hit       -> entry:  kt_capture_on_entry()
 *                         return: kt_capture_on_returning()
 *                         call inside an allocator: kt_capture_on_site()
 *                         call point: kt_capture_on_watched(), which says how
 *                         the vCPU goes on
 *
 * While it boots, the kernel patches its own text. It patches returns, too, and
 * first compares them with what the compiler made. So there are no breakpoints
 * on returns until the kernel has set alternatives_patched:
 *
 *     alternative_instructions()            remove all returns
 *       apply_returns(), ...
 *       alternatives_smp_module_add()       plan and plant anew, if the guest
 *                                           has one CPU: it calls kzalloc()
 *       alternatives_patched = 1
 *     the next entry of a hook              or here
 *
 * While recording is off, only breakpoints that are kept (KT_AT_KEPT) are in
 * the guest. If call points change then, all are, until one is hit: QEMU plants
 * on a vCPU's thread only.
 *
 * Threads. on_hook() runs on vCPU threads; it only tries the capture's lock,
 * which protects plans. A command may hold that lock and wait for a vCPU.
 * Breakpoints are disabled and enabled while no vCPU executes.
 */
#include "kalloc-tracer/capture/seam.h"

#include "kalloc-tracer/capture/breakpoint-table.h"
#include "kalloc-tracer/hooks/breakpoints.h"
#include "kalloc-tracer/kernel/kernel-finder.h"
#include "kalloc-tracer/tracer/tracer.h"

#include <stdio.h>

#define TAIL_DEPTH      3               /* jumps from function to function */
#define NAMES_MAX       32              /* of functions, that are listed */

/** struct Missed - functions whose calls are not all seen; @names: (owned) the
 *  first of them */
typedef struct Missed {
    unsigned n;
    GString *names;
} Missed;

/**
 * struct Kvm - what we know of a VM
 * @boot: (borrowed) the boot whose breakpoints are in the table, or NULL if
 *        the table is empty. It is compared with others, never read
 * @patching: the kernel patches its text: no return is planted
 * @off: only breakpoints that are kept are in the guest
 * @changed: (atomic) the call points are others than those that are planted
 * @hooks, @points: what is missed of them
 */
typedef struct Kvm {
    const KtBoot *boot;
    bool patching, off, changed;
    Missed hooks, points;
} Kvm;

static Kvm kvm;

/* This is a vCPU's thread, in a callback that can read memory and plant. */
static __thread bool in_callback;

/* ---- functions that are missed ------------------------------------------- */

static void miss(const GsKernel *k, Missed *m, uint64_t va)
{
    GsSymbol sym;

    if (m->n++ < NAMES_MAX) {
        g_string_append_printf(m->names, "%s%s", m->names->len ? ", " : "",
                               gs_kernel_symbolize(k, va, &sym) ? sym.name :
                                                                  "?");
    }
}

static void miss_none(Missed *m)
{
    m->n = 0;
    g_string_truncate(m->names, 0);
}

static char *unseen(KtCapture *c)
{
    unsigned n = kvm.hooks.n + kvm.points.n;
    bool more = kvm.hooks.n > NAMES_MAX || kvm.points.n > NAMES_MAX;

    return n ? g_strdup_printf("%s%s%s%s", kvm.hooks.names->str,
                               kvm.hooks.n && kvm.points.n ? ", " : "",
                               kvm.points.names->str, more ? ", ..." : "") :
               NULL;
}

/* ---- the plan ------------------------------------------------------------ */

/** struct Plan - whose breakpoints are planned. @returns: what those on returns
 *  are for */
typedef struct Plan {
    const KtBoot *boot;
    const GsKernel *k;
    Missed *missed;
    uint32_t returns;
} Plan;

static void add(const Plan *p, uint64_t va, uint32_t use, uint32_t id,
                uint64_t function)
{
    if (!kt_breakpoints_add(va, use, id, function)) {
        miss(p->k, p->missed, va);
    }
}

static void refused(void *opaque, uint64_t va)
{
    const Plan *p = opaque;

    miss(p->k, p->missed, va);
}

static void plant(Plan *p)
{
    kt_breakpoints_plant(p->boot->guest, refused, p);
    if (kvm.off) {
        kt_breakpoints_enable(false);
    }
}

static bool read_code(void *opaque, uint64_t va, void *buf, size_t len)
{
    bool done = kt_guest_read(opaque, va, buf, len);

    if (done) {
        kt_breakpoints_hide(va, buf, len);
    }
    return done;
}

static bool find(const Plan *p, uint64_t va, KtBreakpoints *out)
{
    const KtCodeReader reader = { read_code, p->boot->guest };

    return kt_breakpoints_find(p->k, &reader, va, out);
}

/* Return true for code that the kernel frees after boot, to use the memory for
 * other things. */
static bool is_init(const GsKernel *k, uint64_t va)
{
    GsSymbol start, end;

    return gs_kernel_lookup(k, "_sinittext", &start) &&
           gs_kernel_lookup(k, "_einittext", &end) &&
           va - start.va < end.va - start.va;
}

/* A hooked or watched function, or one that such a function ends in. */
typedef struct Ending {
    uint64_t va;
    unsigned depth;                     /* jumps */
    KtBreakpoints at;
} Ending;

/* Add the returns of a function, and to @todo the functions it ends in. */
static void add_ending(const Plan *p, const Ending *f, GArray *todo)
{
    bool missed = f->at.incomplete;

    for (unsigned i = 0; i < f->at.n_returns; i++) {
        add(p, f->at.returns[i], p->returns, 0, 0);
    }
    for (unsigned i = 0; i < f->at.n_tails; i++) {
        Ending tail = { .va = f->at.tails[i], .depth = f->depth + 1 };

        if (tail.depth <= TAIL_DEPTH && find(p, tail.va, &tail.at)) {
            g_array_append_val(todo, tail);
        } else {
            missed = true;
        }
    }
    if (missed) {
        miss(p->k, p->missed, f->va);
    }
}

static void add_returns(const Plan *p, uint64_t va, const KtBreakpoints *b)
{
    g_autoptr(GArray) todo = g_array_new(FALSE, FALSE, sizeof(Ending));
    Ending f = { .va = va, .at = *b };

    g_array_append_val(todo, f);
    for (guint i = 0; i < todo->len; i++) {
        f = g_array_index(todo, Ending, i);
        add_ending(p, &f, todo);
    }
}

/* What the role of a hook adds to the uses of its breakpoints. */
static uint32_t kept(KtRole role)
{
    return kt_role_does(role, KT_DOES_FOLLOW) ? KT_AT_FOLLOWED : 0;
}

static void plan_hook(Plan *p, KtHookId id)
{
    uint64_t va = kt_hooks_va(p->boot->hooks, id);
    KtRole role = p->boot->row[id.v].role;
    KtBreakpoints b;

    if (!va || !kt_record_is_recorded(role) || is_init(p->k, va)) {
        return;
    }
    if (!find(p, va, &b) || !b.entry) {
        miss(p->k, p->missed, va);
        return;
    }
    add(p, b.entry, KT_AT_ENTRY | kept(role), id.v, 0);
    if (kt_record_awaits_return(role)) {
        p->returns = KT_AT_RETURN | kept(role);
        add_returns(p, va, &b);
    }
}

static void plan_hooks(const KtBoot *boot, const GsKernel *k)
{
    Plan p = { boot, k, &kvm.hooks, 0 };
    const KtHookSite *site;

    for (unsigned id = 1; id < G_N_ELEMENTS(boot->row); id++) {
        plan_hook(&p, (KtHookId) { id });
    }
    for (unsigned i = 0; (site = kt_hooks_site(boot->hooks, i)); i++) {
        add(&p, site->va, KT_AT_SITE, i, 0);
    }
}

static void plan_point(const Plan *p, const KtCallPoint *point)
{
    KtBreakpoints b;

    if (is_init(p->k, point->va) || !find(p, point->va, &b) || !b.entry) {
        miss(p->k, p->missed, point->va);
        return;
    }
    add(p, b.entry, KT_AT_POINT, 0, point->va);
    if (point->uses & KT_POINT_WATCH) {
        add_returns(p, point->va, &b);
    }
}

/* Plan those of call points anew. */
static void plan_points(const KtCapture *c, const KtBoot *boot)
{
    const KtPointSet *set = kt_call_points_set(c->shared.points);
    const Plan p = {
        boot, c->shared.kernel, &kvm.points, KT_AT_POINT_RETURN
    };

    kt_breakpoints_end_uses(KT_AT_POINTS);
    miss_none(&kvm.points);
    for (unsigned i = 0; set && i < kt_point_set_count(set); i++) {
        plan_point(&p, kt_point_set_nth(set, i));
    }
}

/* ---- the kernel patches its text ----------------------------------------- */

/* Return true if the kernel has yet to patch its text. */
static bool is_to_be_patched(const KtBoot *boot, const GsKernel *k)
{
    GsSymbol done;
    int32_t value = 1;

    return gs_kernel_lookup(k, "alternatives_patched", &done) &&
           kt_guest_read(boot->guest, done.va, &value, sizeof(value)) &&
           !value;
}

static bool plan_entry(const Plan *p, const char *name, KtBreakpointUse use)
{
    KtBreakpoints b;
    GsSymbol sym;

    if (!gs_kernel_lookup(p->k, name, &sym) || !find(p, sym.va, &b) ||
        !b.entry) {
        return false;
    }
    add(p, b.entry, use, 0, 0);
    return true;
}

/* Returns that are patched without our knowledge would be wrong in the guest:
 * none is seen then until the kernel is done. */
static void plan_patching(const Plan *p)
{
    if (plan_entry(p, "alternative_instructions", KT_AT_PATCHING)) {
        plan_entry(p, "alternatives_smp_module_add", KT_AT_PATCHED);
    } else {
        kvm.patching = true;
    }
}

static void begin_patching(void)
{
    kt_breakpoints_remove(KT_AT_RETURNS | KT_AT_PATCHING);
    kvm.patching = true;
}

static void clear(void)
{
    kt_breakpoints_clear();
    kvm.patching = false;
    miss_none(&kvm.hooks);
    miss_none(&kvm.points);
}

static void plan_all(const KtCapture *c, const KtBoot *boot)
{
    __atomic_store_n(&kvm.changed, false, __ATOMIC_SEQ_CST);
    plan_hooks(boot, c->shared.kernel);
    plan_points(c, boot);
}

/* The lock is held. */
static void begin_boot(const KtCapture *c, const KtBoot *boot)
{
    Plan p = { boot, c->shared.kernel, &kvm.hooks, 0 };

    kvm.off = !kt_tracer_is_on(c->shared.tracer);
    plan_all(c, boot);
    if (is_to_be_patched(boot, p.k)) {
        plan_patching(&p);
    }
    plant(&p);
    if (kvm.patching) {
        kt_breakpoints_remove(KT_AT_RETURNS);
    }
}

static void end_patching(KtCapture *c)
{
    const KtBoot *boot = kt_capture_boot(c);
    Plan p = { boot, c->shared.kernel, &kvm.hooks, 0 };

    if (boot && kt_capture_trylock(c)) {
        clear();
        plan_all(c, boot);
        plant(&p);
        kt_capture_unlock(c);
    }
}

/* ---- call points --------------------------------------------------------- */

static void plant_points(KtCapture *c)
{
    const KtBoot *boot = kt_capture_boot(c);
    Plan p = { boot, c->shared.kernel, &kvm.points, 0 };

    if (kvm.patching || !boot || !kt_capture_trylock(c)) {
        return;
    }
    __atomic_store_n(&kvm.changed, false, __ATOMIC_SEQ_CST);
    plan_points(c, boot);
    plant(&p);
    kt_capture_unlock(c);
}

/* No vCPU executes. */
static void await_any(void *unused)
{
    if (kvm.off && __atomic_load_n(&kvm.changed, __ATOMIC_RELAXED)) {
        kt_breakpoints_enable(true);
    }
}

static void points_changed(KtCapture *c, bool added)
{
    __atomic_store_n(&kvm.changed, true, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&c->applying, __ATOMIC_ACQUIRE)) {
        qemu_plugin_request_exclusive(await_any, NULL);
    }
}

/* @b: the entry of a call point. Returns: how the vCPU goes on. */
static enum qemu_plugin_code_hook_action enter_point(
    const KtCapture *c, unsigned vcpu, const KtBreakpoint *b, uint64_t *next)
{
    const KtPointSet *set = kt_call_points_set(c->shared.points);
    const KtCallPoint *point =
        set ? kt_point_set_at(set, __atomic_load_n(&b->function,
                                                   __ATOMIC_RELAXED)) : NULL;
    KtLeave leave = { KT_LEAVE_NOT, 0 };

    if (point) {
        leave = kt_capture_on_watched(
            vcpu, kt_pack(kt_pack_point(point, (KtHookId) { 0 }), 0));
    }
    *next = leave.to;
    return leave.how == KT_LEAVE_RETURN ? QEMU_PLUGIN_CODE_HOOK_GOTO :
           leave.how == KT_LEAVE_STOP ? QEMU_PLUGIN_CODE_HOOK_STOP :
                                        QEMU_PLUGIN_CODE_HOOK_EXECUTE;
}

/* ---- recording is off ---------------------------------------------------- */

static bool is_followed(void *boot, KtHookId id)
{
    return kt_role_does(((const KtBoot *)boot)->row[id.v].role, KT_DOES_FOLLOW);
}

/*
 * No vCPU executes. Calls that are in an allocator now are not followed: while
 * recording is off nobody sees their returns. Those that are when it is
 * switched on are not known, and may return memory that was freed since.
 */
static void follow_switch(void *opaque)
{
    const KtEvent gap = { .kind = KT_EV_GAP, .flags = KT_EVF_UNSEEN };
    KtCapture *c = opaque;
    KtBoot *boot = kt_capture_boot(c);
    bool on = kt_tracer_is_on(c->shared.tracer);

    if (!boot || on == !kvm.off) {
        return;
    }
    kvm.off = !on;
    if (on) {
        kt_tracer_push(c->shared.tracer, 0, &gap);
    } else {
        kt_pending_calls_filter(c->shared.calls, is_followed, boot);
    }
    kt_breakpoints_enable(on);
}

static void on_switch(void *opaque)
{
    KtCapture *c = opaque;

    if (__atomic_load_n(&c->applying, __ATOMIC_ACQUIRE)) {
        qemu_plugin_request_exclusive(follow_switch, c);
    }
}

/* ---- callbacks ----------------------------------------------------------- */

static void look_patched(KtCapture *c, uint32_t use)
{
    const KtBoot *boot = kt_capture_boot(c);

    if (use & KT_AT_PATCHED ||
        (boot && !is_to_be_patched(boot, c->shared.kernel))) {
        end_patching(c);
    }
}

GS_HOT
static void record(unsigned vcpu, uint32_t use, uint32_t id)
{
    if (G_UNLIKELY(kvm.off) && !(use & KT_AT_FOLLOWED)) {
        use &= KT_AT_POINTS;
    }
    if (use & KT_AT_ENTRY) {
        (kvm.patching ? kt_capture_on_blind_entry :
                        kt_capture_on_entry)(vcpu, kt_pack(id, 0));
    }
    if (use & KT_AT_SITE) {
        kt_capture_on_site(vcpu, kt_pack(id, 0));
    }
    if (use & KT_AT_RETURNS) {
        kt_capture_on_returning(vcpu);
    }
}

GS_HOT
static enum qemu_plugin_code_hook_action on_hook(unsigned vcpu, uint64_t va,
                                                 uint64_t *next, void *opaque)
{
    KtCapture *c = opaque;
    const KtBreakpoint *b = kt_breakpoint_at(va);
    uint32_t use = b ? kt_breakpoint_uses(b) : 0;
    uint32_t id = b ? __atomic_load_n(&b->id, __ATOMIC_RELAXED) : 0;
    enum qemu_plugin_code_hook_action action = QEMU_PLUGIN_CODE_HOOK_EXECUTE;

    kt_vcpu_count(&c->vcpu[vcpu], KT_CNT_KVM_HITS, 1);
    if (G_UNLIKELY(kvm.patching)) {
        look_patched(c, use);
    }
    if (G_UNLIKELY(use & KT_AT_POINT)) {
        action = enter_point(c, vcpu, b, next);
    }
    if (action == QEMU_PLUGIN_CODE_HOOK_EXECUTE) {
        record(vcpu, use, id);
    }
    if (G_UNLIKELY(use & KT_AT_PATCHING)) {
        begin_patching();
    }
    if (G_UNLIKELY(__atomic_load_n(&kvm.changed, __ATOMIC_RELAXED))) {
        plant_points(c);
    }
    return action;
}

/* Only the boot matters: its hooks keep their places. A boot ends while no vCPU
 * executes. That of a loaded snapshot begins on another thread: a vCPU plants
 * its breakpoints when the VM continues. */
static void update(KtCapture *c)
{
    const KtBoot *boot = kt_capture_boot(c);

    if (boot != kvm.boot) {
        kvm.boot = NULL;
        clear();
        if (boot && in_callback) {
            kvm.boot = boot;
            begin_boot(c, boot);
        }
    }
}

/* A vCPU sets the entry of system calls, or has set it and continues. */
static void on_syscall_entry(unsigned vcpu, uint64_t va, void *opaque)
{
    KtCapture *c = opaque;

    in_callback = true;
    kt_capture_on_unknown(vcpu, (void *)(uintptr_t)va);
    if (kt_capture_boot(c) != kvm.boot && kt_capture_trylock(c)) {
        update(c);
        kt_capture_unlock(c);
    }
    in_callback = false;
}

static bool start(KtCapture *c, qemu_plugin_id_t id)
{
    if (!qemu_plugin_register_vcpu_code_hook_cb ||
        !qemu_plugin_register_vcpu_code_hook_cb(id, on_hook, c)) {
        return false;
    }
    if (!kvm.hooks.names) {
        kvm.hooks.names = g_string_new(NULL);
        kvm.points.names = g_string_new(NULL);
    }
    kt_tracer_on_switch(c->shared.tracer, on_switch, c);
    if (!qemu_plugin_register_vcpu_syscall_entry_cb(id, on_syscall_entry, c)) {
        fprintf(stderr, "ka: KVM: the host's kernel has no filter of MSRs "
                        "(Linux 5.10 has): nothing is traced\n");
    }
    fprintf(stderr, "ka: KVM: accesses (ka access) need -accel tcg\n");
    /* We are called first when the kernel sets MSR_LSTAR, which is after
     * start_kernel() has begun. */
    if (c->finder) {
        kt_finder_late(c->finder, false);
    }
    return true;
}

/* A loaded snapshot has set it to the value of then. */
static void gauge(KtCapture *c, KtCounter id, uint64_t now)
{
    KtTracer *t = c->shared.tracer;

    kt_tracer_count(t, id, now - kt_tracer_counter(t, id));
}

static void sync_counters(KtCapture *c)
{
    gauge(c, KT_CNT_KVM_BREAKPOINTS, kt_breakpoints_count());
    gauge(c, KT_CNT_KVM_WITHDRAWN, qemu_plugin_code_hooks_withdrawn());
    gauge(c, KT_CNT_KVM_UNSEEN, kvm.hooks.n + kvm.points.n);
}

const KtSeam kt_seam_kvm = {
    .accel = "kvm",
    .pauses = true,
    .start = start,
    .update = update,
    .points_changed = points_changed,
    .sync = sync_counters,
    .unseen = unseen,
};
