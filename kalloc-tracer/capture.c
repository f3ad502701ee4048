/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Capture: from executed instructions to events.
 *
 * Translation. While no kernel is known, only blocks that may begin
 * start_kernel() are looked at; the first one that does tells the KASLR
 * slide. From then on a block is instrumented only if it holds the entry of a
 * hooked function or begins at a return site. Everything else is translated
 * as if there were no plugin.
 *
 * Execution. The callbacks of entries and return sites hand over to record.c.
 *
 * Threads. Callbacks run on vCPU threads without the BQL and take no lock
 * that a monitor command holds for long: translation takes none at all,
 * execution the tracer's only now and then, by trying. The one exception is
 * the moment the kernel is found.
 */
#include "capture.h"

#include <stdlib.h>
#include <time.h>

#include "record.h"

/* KASLR moves a kernel by multiples of this: CONFIG_PHYSICAL_ALIGN */
#define SLIDE_ALIGN     0x200000ull
#define KERNEL_SPACE    0xffffffff80000000ull   /* __START_KERNEL_map */

#define COST_PERIOD     64              /* one callback in so many is timed */

struct KtCapture {
    KtShared shared;
    KtBoot *boot;                       /* NULL until the kernel is found */
    KtVcpu *vcpu;                       /* @max_vcpus of them */
    unsigned max_vcpus;
    uint64_t start_kernel;              /* link time, 0 unknown */
    uint64_t clock_ns;                  /* that measuring itself takes */
    bool pages;                         /* trace the page allocator, too */
    bool applying;                      /* the tracer's thread was started */
    GMutex lock;
};

/* QEMU's execution callbacks carry one pointer: it packs (id, insns left). */
static KtCapture capture __attribute__((aligned(64)));

static void *pack(uint32_t id, unsigned insns_left)
{
    return (void *)(uintptr_t)((uint64_t)insns_left << 32 | id);
}

static uint32_t packed_id(void *udata)
{
    return (uintptr_t)udata;
}

static unsigned packed_left(void *udata)
{
    return (uint64_t)(uintptr_t)udata >> 32;
}

static KtBoot *boot_now(const KtCapture *c)
{
    return __atomic_load_n(&c->boot, __ATOMIC_ACQUIRE);
}

/* ---- callbacks ---------------------------------------------------------- */

static uint64_t host_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* Our own cost, measured on a sample: `ka stat` shows the mean. The first look
 * at the clock brings its code and data into the host's caches, which the
 * callback would be charged for. */
static uint64_t cost_begin(KtVcpu *v)
{
    if (v->cost_tick++ % COST_PERIOD) {
        return 0;
    }
    host_ns();
    return host_ns();
}

static void cost_end(KtVcpu *v, uint64_t since)
{
    uint64_t ns;

    if (since) {
        ns = host_ns() - since;
        kt_vcpu_count(v, KT_CNT_COST_NS, ns - MIN(ns, capture.clock_ns));
        kt_vcpu_count(v, KT_CNT_COST_CALLS, 1);
    }
}

/* Two looks at the clock with nothing in between: the shortest of many. */
static uint64_t measure_clock(void)
{
    uint64_t best = UINT64_MAX;

    for (unsigned i = 0; i < 1000; i++) {
        uint64_t since = host_ns();

        best = MIN(best, host_ns() - since);
    }
    return best;
}

static void on_entry(unsigned vcpu_index, void *udata)
{
    KtMoment m = {
        .c = &capture.shared,
        .boot = boot_now(&capture),
        .v = &capture.vcpu[vcpu_index],
        .insns_left = packed_left(udata),
    };
    KtHookId id = { packed_id(udata) };
    uint64_t since;

    if (!m.boot || !m.v->unwinder || !kt_tracer_enabled(m.c->tracer)) {
        return;
    }
    since = cost_begin(m.v);
    m.v->hits[id.v]++;
    kt_record_enter(&m, id);
    cost_end(m.v, since);
}

static void on_return(unsigned vcpu_index, void *udata)
{
    uint32_t site = packed_id(udata);
    KtMoment m = {
        .c = &capture.shared,
        .boot = boot_now(&capture),
        .v = &capture.vcpu[vcpu_index],
        .insns_left = packed_left(udata),
        .ra = kt_sites_va(capture.shared.sites, site),
    };
    uint64_t since;
    KtCall call;

    if (!m.boot || !m.v->unwinder) {
        return;
    }
    since = cost_begin(m.v);
    m.sp_after = kt_vcpu_reg(m.v, KT_RSP);
    if (!kt_calls_pop(m.c->calls, m.sp_after - 8, m.ra, &call)) {
        kt_vcpu_count(m.v, KT_CNT_RETURN_FOREIGN, 1);
        cost_end(m.v, since);
        return;
    }
    do {
        if (kt_tracer_enabled(m.c->tracer)) {
            m.wrapper = m.have_stack ? m.wrapper
                                     : kt_sites_wrapper(m.c->sites, site);
            kt_record_leave(&m, &call);
        }
    } while (kt_calls_pop(m.c->calls, m.sp_after - 8, m.ra, &call));
    cost_end(m.v, since);
}

/* ---- finding the kernel ------------------------------------------------- */

static bool banner_matches(const KtCapture *c, uint64_t slide)
{
    const char *banner = gs_kernel_banner(c->shared.kernel);
    size_t left = banner ? strlen(banner) : 0;
    GsSymbol sym;
    uint64_t va;

    if (!banner) {
        return true;        /* a System.map has none */
    }
    if (!gs_kernel_lookup(c->shared.kernel, "linux_banner", &sym)) {
        return false;
    }
    for (va = sym.va - gs_kernel_slide(c->shared.kernel) + slide; left;) {
        size_t avail;
        const void *at = qemu_plugin_vaddr_to_host(va, &avail);
        size_t n = MIN(left, avail);

        if (!at || memcmp(at, banner, n)) {
            return false;
        }
        va += n;
        banner += n;
        left -= n;
    }
    return true;
}

static bool may_be_start(const KtCapture *c, uint64_t va)
{
    return va >= KERNEL_SPACE && c->start_kernel &&
           !((va - c->start_kernel) & (SLIDE_ALIGN - 1));
}

static void begin_boot(KtCapture *c, uint64_t slide)
{
    KtBoot *boot = g_aligned_alloc0(1, sizeof(KtBoot), 64);

    gs_kernel_set_slide(c->shared.kernel, slide);
    boot->guest = kt_guest_new(c->shared.kernel, c->shared.tracer,
                               qemu_plugin_vaddr_to_host);
    if (c->pages) {
        boot->pages = kt_pages_new(c->shared.kernel, boot->guest);
    }
    boot->hooks = kt_hooks_resolve(c->shared.kernel, boot->pages);
    for (unsigned id = 0; id < G_N_ELEMENTS(boot->row); id++) {
        boot->row[id] = kt_hooks_row(boot->hooks, (KtHookId) { id });
    }
    kt_tracer_set_complete(c->shared.tracer, true);
    __atomic_store_n(&c->boot, boot, __ATOMIC_RELEASE);
}

/* A block at @va is translated; the kernel has not been found yet. */
static void look_for_kernel(KtCapture *c, uint64_t va)
{
    uint64_t slide = va - c->start_kernel;

    if (!may_be_start(c, va)) {
        return;
    }
    g_mutex_lock(&c->lock);
    if (!c->boot && banner_matches(c, slide)) {
        begin_boot(c, slide);
    }
    g_mutex_unlock(&c->lock);
}

/* ---- translation -------------------------------------------------------- */

static bool want_block(uint64_t va, void *userdata)
{
    KtCapture *c = userdata;
    const KtBoot *boot = boot_now(c);

    if (!(va >> 63)) {                  /* the user's half */
        return false;
    }
    kt_sites_note_block(c->shared.sites, va);
    if (!boot) {
        return may_be_start(c, va);
    }
    return kt_hooks_page(boot->hooks, va) ||
           kt_sites_find(c->shared.sites, va) != KT_SITE_NONE;
}

/* int3: the guest is about to patch that entry; it traps before it runs */
static bool is_breakpoint(const struct qemu_plugin_insn *insn)
{
    uint8_t byte = 0;

    return qemu_plugin_insn_data(insn, &byte, 1) == 1 && byte == 0xcc;
}

static void hook_entries(const KtBoot *boot, struct qemu_plugin_tb *tb,
                         size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        KtHookId id = kt_hooks_at(boot->hooks, qemu_plugin_insn_vaddr(insn));

        if (id.v && !is_breakpoint(insn)) {
            qemu_plugin_register_vcpu_insn_exec_cb(insn, on_entry,
                                                   QEMU_PLUGIN_CB_R_REGS,
                                                   pack(id.v, n - i));
        }
    }
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    KtCapture *c = &capture;
    uint64_t va = qemu_plugin_tb_vaddr(tb);
    size_t n = qemu_plugin_tb_n_insns(tb);
    const KtBoot *boot = boot_now(c);
    uint32_t site;

    if (!boot) {
        look_for_kernel(c, va);
        return;
    }
    site = kt_sites_find(c->shared.sites, va);
    if (site != KT_SITE_NONE && n) {
        qemu_plugin_register_vcpu_insn_exec_cb(
            qemu_plugin_tb_get_insn(tb, 0), on_return, QEMU_PLUGIN_CB_R_REGS,
            pack(site, n));
    }
    if (kt_hooks_page(boot->hooks, va)) {
        hook_entries(boot, tb, n);
    }
}

/* Not earlier: QEMU may go to the background before it makes vCPUs. */
static void start_applying(KtCapture *c)
{
    g_mutex_lock(&c->lock);
    if (!c->applying) {
        c->applying = true;
        kt_tracer_start(c->shared.tracer);
    }
    g_mutex_unlock(&c->lock);
}

static void on_vcpu_init(qemu_plugin_id_t id, unsigned int index)
{
    KtCapture *c = &capture;

    if (index >= c->max_vcpus || !c->shared.kernel) {
        return;
    }
    start_applying(c);
    if (!kt_vcpu_init(&c->vcpu[index], index, c->shared.kernel)) {
        qemu_plugin_outs("ka: this target's registers cannot be read: "
                         "nothing is traced\n");
    }
}

/* ---- outside ------------------------------------------------------------ */

KtCapture *kt_capture_start(qemu_plugin_id_t id, KtTracer *t, GsKernel *k,
                            unsigned max_vcpus, bool pages)
{
    KtCapture *c = &capture;
    GsSymbol sym;

    c->shared.tracer = t;
    c->shared.kernel = k;
    c->max_vcpus = max_vcpus;
    c->clock_ns = measure_clock();
    c->pages = pages;
    c->vcpu = g_aligned_alloc0(max_vcpus, sizeof(KtVcpu), 64);
    c->shared.sites = kt_sites_new();
    c->shared.calls = kt_calls_new();
    g_mutex_init(&c->lock);
    if (k && gs_kernel_lookup(k, "start_kernel", &sym)) {
        c->start_kernel = sym.va;
    }
    qemu_plugin_register_vcpu_init_cb(id, on_vcpu_init);
    qemu_plugin_register_vcpu_tb_filter(id, want_block, c);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
    return c;
}

void kt_capture_reset(KtCapture *c)
{
    KtBoot *boot = c->boot;

    if (!boot) {
        return;
    }
    __atomic_store_n(&c->boot, NULL, __ATOMIC_RELEASE);
    kt_calls_clear(c->shared.calls);
    kt_sites_clear(c->shared.sites);
    for (unsigned i = 0; i < c->max_vcpus; i++) {
        if (c->vcpu[i].unwinder) {
            kt_vcpu_forget(&c->vcpu[i]);
        }
    }
    kt_hooks_free(boot->hooks);
    kt_pages_free(boot->pages);
    kt_guest_free(boot->guest);
    g_aligned_free(boot);
    kt_tracer_reset(c->shared.tracer);
    qemu_plugin_request_flush();
}

void kt_capture_lock(KtCapture *c)
{
    g_mutex_lock(&c->lock);
}

void kt_capture_unlock(KtCapture *c)
{
    g_mutex_unlock(&c->lock);
}

bool kt_capture_found(const KtCapture *c)
{
    return c->boot != NULL;
}

uint64_t kt_capture_hook_va(const KtCapture *c, KtHookId id)
{
    return c->boot ? kt_hooks_va(c->boot->hooks, id) : 0;
}

uint64_t kt_capture_hook_hits(const KtCapture *c, KtHookId id)
{
    uint64_t hits = 0;

    for (unsigned i = 0; i < c->max_vcpus; i++) {
        hits += __atomic_load_n(&c->vcpu[i].hits[id.v], __ATOMIC_RELAXED);
    }
    return hits;
}

void kt_capture_sync_counters(KtCapture *c)
{
    for (unsigned i = 0; i < c->max_vcpus; i++) {
        KtVcpu *v = &c->vcpu[i];

        for (unsigned n = 0; n < KT_CNT__COUNT; n++) {
            uint64_t now = __atomic_load_n(&v->count[n], __ATOMIC_RELAXED);

            kt_tracer_count(c->shared.tracer, n, now - v->counted[n]);
            v->counted[n] = now;
        }
    }
}
