/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The seam to KVM: QEMU makes instructions breakpoints, and emulates them.
 *
 *     MSR_LSTAR is set -> kernel unknown: kt_capture_on_unknown()
 *     the boot begins  -> plan(): the breakpoints of each hook's function, see
 *                         hooks/breakpoints.h; plant()
 *     one is hit       -> entry:  kt_capture_on_entry()
 *                         return: kt_capture_on_returning()
 *                         call inside an allocator: kt_capture_on_site()
 *
 * While it boots, the kernel patches its own text: returns, too, which it first
 * compares with what the compiler made. So there are no breakpoints on returns
 * while it does so. alternatives_patched tells when it is done:
 *
 *     alternative_instructions()            unplant all returns
 *       apply_returns(), ...
 *       alternatives_smp_module_add()       plan and plant anew, if the guest
 *                                           has one CPU: it calls kzalloc()
 *       alternatives_patched = 1
 *     the next entry of a hook              or here
 *
 * Threads. on_hook() runs on vCPU threads without a lock: the table only grows
 * during a boot. Breakpoints are planned on a vCPU's thread in a callback, with
 * the capture's lock, or while the guest has one CPU (when it patches its
 * text). They are dropped while no vCPU executes.
 */
#include "kalloc-tracer/capture/seam.h"

#include "kalloc-tracer/hooks/breakpoints.h"
#include "kalloc-tracer/kernel/kernel-finder.h"

#include <stdio.h>

#define SLOTS           4096            /* a power of two */
#define FULL            (SLOTS / 2)
#define TAIL_DEPTH      3               /* jumps from function to function */

/** What a breakpoint is for, as bits. */
typedef enum Use {
    USE_ENTRY = 1 << 0,
    USE_RETURN = 1 << 1,
    USE_SITE = 1 << 2,
    USE_PATCHING = 1 << 3,              /* alternative_instructions() */
    USE_PATCHED = 1 << 4,               /* alternatives_smp_module_add() */
} Use;

/** struct Slot - a breakpoint. @va: (atomic) 0: free; set last. @id: of the
 *  hook, or the number of the KtHookSite. @planted: QEMU has it */
typedef struct Slot {
    uint64_t va;
    uint32_t use, id;
    bool planted;
} Slot;

/**
 * struct Kvm - the breakpoints of a VM
 * @boot: (borrowed) whose breakpoints they are; only compared
 * @n: slots in use
 * @patching: the kernel patches its text: no return is planted
 * @unseen: names of functions whose calls are not all seen
 */
typedef struct Kvm {
    const KtBoot *boot;
    Slot slot[SLOTS];
    unsigned n;
    bool patching;
    GString *unseen;
} Kvm;

static Kvm kvm;

/* ---- the table ----------------------------------------------------------- */

static Slot *slot_of(uint64_t va)
{
    uint64_t at = va * 0x9e3779b97f4a7c15ull >> 52;

    for (;; at++) {
        Slot *s = &kvm.slot[at % SLOTS];
        uint64_t has = __atomic_load_n(&s->va, __ATOMIC_ACQUIRE);

        if (!has || has == va) {
            return s;
        }
    }
}

/* Remember that the function at @va is not seen completely. */
static void miss(const GsKernel *k, uint64_t va)
{
    GsSymbol sym;

    g_string_append_printf(kvm.unseen, "%s%s", kvm.unseen->len ? ", " : "",
                           gs_kernel_symbolize(k, va, &sym) ? sym.name : "?");
}

static void add(const GsKernel *k, uint64_t va, Use use, uint32_t id)
{
    Slot *s = slot_of(va);

    if (!s->va && kvm.n == FULL) {
        miss(k, va);
        return;
    }
    s->use |= use;
    s->id = id ? id : s->id;
    if (!s->va) {
        kvm.n++;
        __atomic_store_n(&s->va, va, __ATOMIC_RELEASE);
    }
}

static void unplant(Use use)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        Slot *s = &kvm.slot[i];

        if (s->planted && s->use & use) {
            qemu_plugin_remove_code_hook(s->va);
            s->planted = false;
        }
    }
}

/* Drop all. A vCPU may be at a breakpoint: it then finds none, and goes on. */
static void clear(void)
{
    unplant((Use)~0u);
    for (unsigned i = 0; i < SLOTS; i++) {
        __atomic_store_n(&kvm.slot[i].va, 0, __ATOMIC_RELEASE);
        kvm.slot[i].use = kvm.slot[i].id = 0;
    }
    kvm.n = 0;
    kvm.patching = false;
    g_string_truncate(kvm.unseen, 0);
}

static void plant(const GsKernel *k)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        Slot *s = &kvm.slot[i];

        if (s->va && !s->planted) {
            s->planted = qemu_plugin_add_code_hook(s->va);
            if (!s->planted) {
                miss(k, s->va);
            }
        }
    }
}

/* ---- the plan ------------------------------------------------------------ */

static bool read_code(void *opaque, uint64_t va, void *buf, size_t len)
{
    return kt_guest_read(opaque, va, buf, len);
}

static bool find(const KtBoot *boot, const GsKernel *k, uint64_t va,
                 KtBreakpoints *out)
{
    const KtCodeReader reader = { read_code, boot->guest };

    return kt_breakpoints_find(k, &reader, va, out);
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

static void add_returns(const KtBoot *boot, const GsKernel *k, uint64_t va,
                        const KtBreakpoints *b, unsigned depth)
{
    KtBreakpoints tail;
    bool missed = b->incomplete;

    for (unsigned i = 0; i < b->n_returns; i++) {
        add(k, b->returns[i], USE_RETURN, 0);
    }
    for (unsigned i = 0; i < b->n_tails; i++) {
        if (depth < TAIL_DEPTH && find(boot, k, b->tails[i], &tail)) {
            add_returns(boot, k, b->tails[i], &tail, depth + 1);
        } else {
            missed = true;
        }
    }
    if (missed) {
        miss(k, va);
    }
}

static void plan_hook(const KtBoot *boot, const GsKernel *k, KtHookId id)
{
    uint64_t va = kt_hooks_va(boot->hooks, id);
    KtRole role = boot->row[id.v].role;
    KtBreakpoints b;

    if (!va || !kt_record_is_recorded(role) || is_init(k, va)) {
        return;
    }
    if (!find(boot, k, va, &b) || !b.entry) {
        miss(k, va);
        return;
    }
    add(k, b.entry, USE_ENTRY, id.v);
    if (kt_record_awaits_return(role)) {
        add_returns(boot, k, va, &b, 0);
    }
}

/* Return true if the kernel has yet to patch its text. */
static bool is_to_be_patched(const KtBoot *boot, const GsKernel *k)
{
    GsSymbol done;
    int32_t value = 1;

    return gs_kernel_lookup(k, "alternatives_patched", &done) &&
           kt_guest_read(boot->guest, done.va, &value, sizeof(value)) &&
           !value;
}

static bool plan_entry(const KtBoot *boot, const GsKernel *k, const char *name,
                       Use use)
{
    KtBreakpoints b;
    GsSymbol sym;

    if (!gs_kernel_lookup(k, name, &sym) || !find(boot, k, sym.va, &b) ||
        !b.entry) {
        return false;
    }
    add(k, b.entry, use, 0);
    return true;
}

/* Returns that are patched without our knowledge would be wrong in the guest:
 * no return of this boot is seen then. */
static void plan_patching(const KtBoot *boot, const GsKernel *k)
{
    if (plan_entry(boot, k, "alternative_instructions", USE_PATCHING)) {
        plan_entry(boot, k, "alternatives_smp_module_add", USE_PATCHED);
    } else {
        kvm.patching = true;
    }
}

/* Plan all first, and plant then: a breakpoint changes the code that is
 * read. */
static void plan(const KtBoot *boot, const GsKernel *k)
{
    const KtHookSite *site;

    for (unsigned id = 1; id < G_N_ELEMENTS(boot->row); id++) {
        plan_hook(boot, k, (KtHookId) { id });
    }
    for (unsigned i = 0; (site = kt_hooks_site(boot->hooks, i)); i++) {
        add(k, site->va, USE_SITE, i);
    }
}

static void report(void)
{
    if (kvm.unseen->len) {
        fprintf(stderr, "ka: KVM: not all calls of these functions are seen: "
                        "%s\n", kvm.unseen->str);
    }
}

/* ---- the kernel patches its text ----------------------------------------- */

static bool is_patched(const KtCapture *c)
{
    const KtBoot *boot = kt_capture_boot(c);

    return boot && !is_to_be_patched(boot, c->shared.kernel);
}

static void begin_patching(void)
{
    unplant(USE_RETURN | USE_PATCHING);
    kvm.patching = true;
}

static void end_patching(const KtCapture *c)
{
    const KtBoot *boot = kt_capture_boot(c);

    clear();
    if (boot) {
        plan(boot, c->shared.kernel);
        plant(c->shared.kernel);
        report();
    }
}

static void begin_boot(const KtBoot *boot, const GsKernel *k)
{
    plan(boot, k);
    if (is_to_be_patched(boot, k)) {
        plan_patching(boot, k);
        plant(k);
        if (kvm.patching) {
            unplant(USE_RETURN);
        }
    } else {
        plant(k);
        report();
    }
}

/* ---- callbacks ----------------------------------------------------------- */

GS_HOT
static enum qemu_plugin_code_hook_action on_hook(unsigned vcpu, uint64_t va,
                                                 uint64_t *next, void *opaque)
{
    const Slot *s = slot_of(va);
    uint32_t use = s->use, id = s->id;

    if (__atomic_load_n(&s->va, __ATOMIC_ACQUIRE) != va) {
        return QEMU_PLUGIN_CODE_HOOK_EXECUTE;
    }
    if (G_UNLIKELY(kvm.patching) &&
        (use & USE_PATCHED || is_patched(opaque))) {
        end_patching(opaque);
    }
    if (use & USE_ENTRY) {
        (kvm.patching ? kt_capture_on_blind_entry :
                        kt_capture_on_entry)(vcpu, kt_pack(id, 0));
    }
    if (use & USE_SITE) {
        kt_capture_on_site(vcpu, kt_pack(id, 0));
    }
    if (use & USE_RETURN) {
        kt_capture_on_returning(vcpu);
    }
    if (G_UNLIKELY(use & USE_PATCHING)) {
        begin_patching();
    }
    return QEMU_PLUGIN_CODE_HOOK_EXECUTE;
}

static void on_syscall_entry(unsigned vcpu, uint64_t va, void *opaque)
{
    kt_capture_on_unknown(vcpu, (void *)(uintptr_t)va);
}

static bool start(KtCapture *c, qemu_plugin_id_t id)
{
    if (!qemu_plugin_register_vcpu_code_hook_cb ||
        !qemu_plugin_register_vcpu_code_hook_cb(id, on_hook, c)) {
        return false;
    }
    if (!kvm.unseen) {
        kvm.unseen = g_string_new(NULL);
    }
    if (!qemu_plugin_register_vcpu_syscall_entry_cb(id, on_syscall_entry, c)) {
        fprintf(stderr, "ka: KVM: the host's kernel has no filter of MSRs "
                        "(Linux 5.10 has): nothing is traced\n");
    }
    fprintf(stderr, "ka: KVM: accesses, ka calls and ka fault need -accel "
                    "tcg\n");
    /* The first code that we see is not that of start_kernel(). */
    if (c->finder) {
        kt_finder_late(c->finder, false);
    }
    return true;
}

/* Only the boot matters: hooks of a boot keep their places, and breakpoints on
 * call points are not planted. A boot begins in a callback on a vCPU's thread,
 * and ends while no vCPU executes. */
static void update(KtCapture *c)
{
    const KtBoot *boot = kt_capture_boot(c);

    if (boot != kvm.boot) {
        kvm.boot = boot;
        clear();
        if (boot) {
            begin_boot(boot, c->shared.kernel);
        }
    }
}

const KtSeam kt_seam_kvm = {
    .accel = "kvm",
    .start = start,
    .update = update,
};
