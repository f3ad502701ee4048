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
 * Execution. A free is recorded at the function's entry, before the memory
 * can be handed out again; an allocation when the function has returned,
 * after the memory is owned. Between the two no other event of that memory
 * can lie, on whatever vCPU, so the order of events is the order of ownership.
 *
 * Returns. At entry the return address is read off the stack and made a
 * return site: published first, then what is translated there is dropped, so
 * that no return is missed. A call under way is known by (stack pointer,
 * return address), see calls.h.
 *
 * Threads. Callbacks run on vCPU threads without the BQL and take no lock
 * that a monitor command holds for long: translation takes none at all,
 * execution the tracer's only when a queue is half full. The one exception is
 * the moment the kernel is found.
 */
#include "capture.h"

#include <stdlib.h>
#include <time.h>

#include "calls.h"
#include "sites.h"
#include "vcpu.h"

/* KASLR moves a kernel by multiples of this: CONFIG_PHYSICAL_ALIGN */
#define SLIDE_ALIGN     0x200000ull
#define KERNEL_SPACE    0xffffffff80000000ull   /* __START_KERNEL_map */

#define BULK_MAX        4096            /* pointers taken of one bulk call */
#define FRAMES_MAX      KT_MAX_FRAMES
#define ZERO_SIZE_PTR   16ull
#define ERR_PTR_MIN     ((uint64_t)-4095)
#define COST_PERIOD     64              /* one callback in so many is timed */

/* What is known of one boot; published when complete. */
typedef struct Boot {
    KtHooks *hooks;
    KtGuest *guest;
} Boot;

struct KtCapture {
    KtTracer *tracer;
    GsKernel *kernel;
    uint64_t start_kernel;              /* link time, 0 unknown */
    Boot *boot;                         /* NULL until the kernel is found */
    KtSites *sites;
    KtCalls *calls;
    KtVcpu **vcpu;
    unsigned max_vcpus;
    GMutex lock;
};

/* QEMU's execution callbacks carry one pointer: it packs (id, insns left). */
static KtCapture *capture;

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

static Boot *boot_now(const KtCapture *c)
{
    return __atomic_load_n(&c->boot, __ATOMIC_ACQUIRE);
}

/* ---- events ------------------------------------------------------------- */

/* What the events of one callback have in common. */
typedef struct Moment {
    KtCapture *c;
    Boot *boot;
    KtVcpu *v;
    unsigned insns_left;
    bool have_stack;
    uint64_t ra, sp_after;              /* of the call: where it returns to */
    KtHookId wrapper;                   /* outermost one that made the call */
    KtEvent ev;                         /* stack, task, cpu, time */
} Moment;

static const void *stack_page(void *opaque, uint64_t va)
{
    size_t avail;

    return qemu_plugin_vaddr_to_host(va & ~0xfffull, &avail);
}

static void count_stop(KtVcpu *v, GsStop stop)
{
    static const KtCounter counter[GS_STOP__COUNT] = {
        [GS_STOP_END] = KT_CNT_STACK_END,
        [GS_STOP_USER] = KT_CNT_STACK_USER,
        [GS_STOP_UNKNOWN_PC] = KT_CNT_STACK_UNKNOWN_PC,
        [GS_STOP_BAD_FRAME] = KT_CNT_STACK_BAD_FRAME,
        [GS_STOP_DEPTH] = KT_CNT_STACK_DEPTH,
    };

    kt_vcpu_count(v, counter[stop], 1);
}

/* Frames inside wrappers are dropped: the call is their caller's. */
static unsigned skip_wrappers(Moment *m, const uint64_t *frames, unsigned n)
{
    unsigned skip = 0;
    KtHookId wrapper = m->wrapper;

    while (wrapper.v && skip + 1 < n) {
        m->wrapper = wrapper;
        skip++;
        wrapper = kt_hooks_wrapper(m->boot->hooks, frames[skip]);
    }
    return skip;
}

/* Backtrace, task and time: once a callback, when an event is certain. */
static void complete_moment(Moment *m)
{
    uint64_t frames[FRAMES_MAX];
    GsRegs regs = {
        .ip = m->ra,
        .sp = m->sp_after,
        .bp = kt_vcpu_reg(m->v, KT_RBP),
    };
    unsigned n = 0, skip;
    GsStop stop;

    if (m->have_stack) {
        return;
    }
    stop = gs_unwind(m->v->unwinder, &regs, stack_page, NULL, frames,
                     FRAMES_MAX, &n);
    count_stop(m->v, stop);
    skip = skip_wrappers(m, frames, n);
    m->ev.stack = kt_tracer_intern_stack(m->c->tracer, frames + skip, n - skip,
                                         stop);
    m->ev.task = kt_guest_task(m->boot->guest, &m->v->seen,
                               kt_vcpu_reg(m->v, KT_GS_BASE));
    if (!m->ev.task.v) {
        kt_vcpu_count(m->v, KT_CNT_TASK_UNKNOWN, 1);
    }
    m->ev.us = qemu_plugin_get_virtual_ns(m->insns_left) / 1000;
    m->ev.cpu = m->v->index;
    m->have_stack = true;
}

static void push_event(Moment *m, KtEventKind kind, KtHookId hook, uint64_t va)
{
    m->ev.kind = kind;
    m->ev.hook = m->wrapper.v ? m->wrapper : hook;
    m->ev.va = va;
    kt_tracer_push(m->c->tracer, m->v->index, &m->ev);
}

/*
 * Something was not recorded: counted, and the model no longer takes a free of
 * an unknown address for an error.
 */
static void lose(Moment *m, KtCounter why)
{
    KtEvent gap = { .kind = KT_EV_GAP, .cpu = m->v->index };

    kt_vcpu_count(m->v, why, 1);
    kt_tracer_push(m->c->tracer, m->v->index, &gap);
}

/* NULL, ZERO_SIZE_PTR and ERR_PTR are no blocks. */
static bool is_block(uint64_t va)
{
    return va > ZERO_SIZE_PTR && va < ERR_PTR_MIN;
}

/* ---- entries ------------------------------------------------------------ */

static bool read_return_address(Moment *m, uint64_t sp)
{
    size_t avail;
    const void *at = qemu_plugin_vaddr_to_host(sp, &avail);

    if (!at || avail < sizeof(m->ra)) {
        lose(m, KT_CNT_CALL_UNREADABLE);
        return false;
    }
    memcpy(&m->ra, at, sizeof(m->ra));
    return true;
}

static KtHookId free_site_wrapper(Moment *m)
{
    unsigned i = m->ra % G_N_ELEMENTS(m->v->free_site);

    if (m->v->free_site[i].ra != m->ra) {
        m->v->free_site[i].ra = m->ra;
        m->v->free_site[i].wrapper =
            kt_hooks_wrapper(m->boot->hooks, m->ra);
    }
    return m->v->free_site[i].wrapper;
}

static void record_free(Moment *m, const KtHook *hook, KtHookId id,
                        uint64_t va, KtCacheId cache)
{
    if (!is_block(va)) {
        kt_vcpu_count(m->v, KT_CNT_FREE_NULL, 1);
        return;
    }
    m->wrapper = free_site_wrapper(m);
    complete_moment(m);
    m->ev.family = hook->family;
    m->ev.cache = cache;
    push_event(m, KT_EV_FREE, id, va);
    kt_guest_object_freed(m->boot->guest, cache, va);
}

static void record_queue(Moment *m, KtHookId id, uint64_t va)
{
    if (!is_block(va)) {
        kt_vcpu_count(m->v, KT_CNT_FREE_NULL, 1);
        return;
    }
    m->wrapper = free_site_wrapper(m);
    complete_moment(m);
    push_event(m, KT_EV_RCU_QUEUE, id, va);
}

static KtCacheId cache_arg(Moment *m, const KtHook *hook)
{
    uint64_t va = kt_vcpu_arg(m->v, hook->cache);

    return kt_guest_cache(m->boot->guest, &m->v->seen, va);
}

static void enter_free(Moment *m, const KtHook *hook, KtHookId id)
{
    uint64_t va = kt_vcpu_arg(m->v, hook->ptr);
    bool again = kt_hooks_vfree_called_again(m->boot->hooks);

    if ((hook->flags & KT_HOOK_DEFERRED) && again) {
        record_queue(m, id, va);
        return;
    }
    if ((hook->flags & KT_HOOK_NOT_IN_IRQ) && again &&
        kt_guest_in_interrupt(m->boot->guest,
                              kt_vcpu_reg(m->v, KT_GS_BASE))) {
        return;
    }
    record_free(m, hook, id, va, cache_arg(m, hook));
}

static void enter_free_bulk(Moment *m, const KtHook *hook, KtHookId id)
{
    uint64_t n = kt_vcpu_arg(m->v, hook->count);
    uint64_t array = kt_vcpu_arg(m->v, hook->array);
    KtCacheId cache = cache_arg(m, hook);
    KtHook kind = *hook;

    /* kfree_bulk() passes no cache: any object of any slab */
    if (!kt_vcpu_arg(m->v, hook->cache)) {
        kind.family = KT_FAMILY_KFREE;
    }
    for (uint64_t i = 0; i < n; i++) {
        uint64_t va;

        if (i == BULK_MAX ||
            !kt_guest_u64(m->boot->guest, array + 8 * i, &va)) {
            lose(m, KT_CNT_BULK_UNREADABLE);
            return;
        }
        record_free(m, &kind, id, va, cache);
    }
}

/*
 * kvfree_call_rcu(head, ptr) since 6.2; before, the second argument was the
 * offset of the rcu_head in the block, or the block itself without a head
 * (commit 04a522b7da3d). Offsets are less than a page.
 */
static void enter_rcu_queue(Moment *m, const KtHook *hook, KtHookId id)
{
    uint64_t head = kt_vcpu_arg(m->v, hook->array);
    uint64_t ptr = kt_vcpu_arg(m->v, hook->ptr);

    record_queue(m, id, ptr < 4096 ? head - ptr : ptr);
}

/*
 * Published first, then translated anew: no return is missed. A vCPU that
 * finds a site which another one has published, but not yet seen to, does the
 * same once more rather than wait.
 */
static bool hook_return_site(Moment *m)
{
    KtSites *sites = m->c->sites;
    uint32_t site = kt_sites_find(sites, m->ra);
    bool added = false;

    if (site == KT_SITE_NONE) {
        site = kt_sites_add(sites, m->ra,
                            kt_hooks_wrapper(m->boot->hooks, m->ra), &added);
    }
    if (site == KT_SITE_NONE) {
        return false;
    }
    if (!kt_sites_ready(sites, site)) {
        qemu_plugin_invalidate_vaddr(m->ra);
        kt_sites_set_ready(sites, site);
    }
    kt_vcpu_count(m->v, KT_CNT_RETURN_SITES, added);
    return true;
}

static void await_return(Moment *m, const KtHook *hook, KtHookId id,
                         uint64_t sp)
{
    int gfp = kt_hooks_gfp_arg(m->boot->hooks, id);
    KtCall call = {
        .sp = sp,
        .ra = m->ra,
        .hook = id,
        .size = kt_vcpu_arg(m->v, hook->count == KT_NO_ARG ? hook->size
                                                           : hook->count),
        .ptr = kt_vcpu_arg(m->v, hook->array == KT_NO_ARG ? hook->ptr
                                                          : hook->array),
        .cache = kt_vcpu_arg(m->v, hook->cache),
        .gfp = kt_vcpu_arg(m->v, gfp),
    };
    unsigned stale;

    if ((hook->flags & KT_HOOK_INNER) &&
        kt_hooks_in_allocator(m->boot->hooks, m->ra)) {
        return;
    }
    if (!hook_return_site(m) || !kt_calls_push(m->c->calls, &call, &stale)) {
        lose(m, KT_CNT_CALL_DROPPED);
        return;
    }
    if (stale) {
        kt_vcpu_count(m->v, KT_CNT_CALL_STALE, stale);
    }
}

static void enter(Moment *m, KtHookId id)
{
    const KtHook *hook = kt_hook(id);
    uint64_t sp = kt_vcpu_reg(m->v, KT_RSP);

    if (!read_return_address(m, sp)) {
        return;
    }
    m->sp_after = sp + 8;
    switch (hook->role) {
    case KT_ROLE_FREE:
        enter_free(m, hook, id);
        break;
    case KT_ROLE_FREE_BULK:
        enter_free_bulk(m, hook, id);
        break;
    case KT_ROLE_RCU_QUEUE:
        enter_rcu_queue(m, hook, id);
        break;
    case KT_ROLE_MODULE_DROP:
        gs_kernel_drop_module(m->c->kernel, kt_vcpu_arg(m->v, hook->ptr));
        break;
    default:
        await_return(m, hook, id, sp);
        break;
    }
}

/* ---- returns ------------------------------------------------------------ */

static uint64_t round_up_pages(uint64_t size)
{
    return (size + 4095) & ~4095ull;
}

/* The page allocator hands out powers of two. */
static uint64_t large_size(uint64_t size)
{
    uint64_t actual = 4096;

    while (actual < size && actual < 1ull << 40) {
        actual <<= 1;
    }
    return actual;
}

static void set_slab_size(Moment *m, uint64_t cache_va)
{
    KtGuest *g = m->boot->guest;
    KtCacheInfo info;
    uint32_t now;

    m->ev.cache = kt_guest_cache(g, &m->v->seen, cache_va);
    if (!kt_tracer_cache(m->c->tracer, m->ev.cache, &info)) {
        kt_vcpu_count(m->v, KT_CNT_CACHE_UNKNOWN, 1);
        return;
    }
    m->ev.actual = info.size;
    if (m->ev.layer == KT_LAYER_CACHE) {
        m->ev.size = kt_guest_object_size(g, cache_va, &now) &&
            now <= info.size ? now : info.object_size;
    }
}

static void set_sizes(Moment *m, const KtCall *call, KtLayer layer,
                      uint64_t va)
{
    KtGuest *g = m->boot->guest;
    uint64_t cache = call->cache;

    if (layer == KT_LAYER_KMALLOC && !cache &&
        call->size > kt_guest_large_above(g)) {
        layer = KT_LAYER_LARGE;
    }
    m->ev.layer = layer;
    m->ev.size = call->size;
    m->ev.actual = 0;
    m->ev.cache = (KtCacheId) { 0 };
    switch (layer) {
    case KT_LAYER_KMALLOC:
        cache = cache ? cache : kt_guest_cache_of(g, va);
        /* fall through */
    case KT_LAYER_CACHE:
        set_slab_size(m, cache);
        break;
    case KT_LAYER_LARGE:
        m->ev.actual = large_size(call->size);
        break;
    case KT_LAYER_VMALLOC:
        m->ev.actual = round_up_pages(call->size);
        break;
    default:
        break;
    }
}

static void record_alloc(Moment *m, const KtCall *call, uint64_t va)
{
    if (!is_block(va)) {
        kt_vcpu_count(m->v, va == ZERO_SIZE_PTR ? KT_CNT_ZERO_SIZE
                                                : KT_CNT_ALLOC_FAILED, 1);
        return;
    }
    complete_moment(m);
    m->ev.gfp = call->gfp;
    set_sizes(m, call, kt_hook(call->hook)->layer, va);
    push_event(m, KT_EV_ALLOC, call->hook, va);
}

static void leave_alloc_bulk(Moment *m, const KtCall *call, uint64_t result)
{
    uint64_t n = MIN(result & UINT32_MAX, call->size);

    if (!n) {
        kt_vcpu_count(m->v, KT_CNT_ALLOC_FAILED, 1);
    }
    for (uint64_t i = 0; i < n; i++) {
        uint64_t va;

        if (i == BULK_MAX ||
            !kt_guest_u64(m->boot->guest, call->ptr + 8 * i, &va)) {
            lose(m, KT_CNT_BULK_UNREADABLE);
            return;
        }
        record_alloc(m, call, va);
    }
}

static void leave_realloc(Moment *m, const KtCall *call, uint64_t result)
{
    if (result != call->ptr || !is_block(result)) {
        return;             /* moved: the copy's own events tell */
    }
    complete_moment(m);
    m->ev.size = call->size;
    push_event(m, KT_EV_RESIZE, call->hook, result);
}

static bool read_module(void *opaque, uint64_t va, void *buf, size_t len)
{
    return kt_guest_read(opaque, va, buf, len);
}

static void leave_module_add(Moment *m, const KtCall *call)
{
    const GsMem mem = { .read = read_module, .opaque = m->boot->guest };

    if (!gs_kernel_add_module(m->c->kernel, &mem, call->ptr, NULL)) {
        kt_vcpu_count(m->v, KT_CNT_MODULES_FAILED, 1);
    }
}

static void leave(Moment *m, const KtCall *call)
{
    uint64_t result = kt_vcpu_reg(m->v, KT_RAX);

    switch (kt_hook(call->hook)->role) {
    case KT_ROLE_ALLOC:
        record_alloc(m, call, result);
        break;
    case KT_ROLE_ALLOC_BULK:
        leave_alloc_bulk(m, call, result);
        break;
    case KT_ROLE_REALLOC:
        leave_realloc(m, call, result);
        break;
    default:
        leave_module_add(m, call);
        break;
    }
}

/* ---- callbacks ---------------------------------------------------------- */

static uint64_t host_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* Our own cost, measured on a sample: `ka stat` shows the mean. */
static uint64_t cost_begin(KtVcpu *v)
{
    return v->cost_tick++ % COST_PERIOD ? 0 : host_ns();
}

static void cost_end(KtVcpu *v, uint64_t since)
{
    if (since) {
        kt_vcpu_count(v, KT_CNT_COST_NS, host_ns() - since);
        kt_vcpu_count(v, KT_CNT_COST_CALLS, 1);
    }
}

static void on_entry(unsigned vcpu_index, void *udata)
{
    Moment m = {
        .c = capture,
        .boot = boot_now(capture),
        .v = capture->vcpu[vcpu_index],
        .insns_left = packed_left(udata),
    };
    KtHookId id = { packed_id(udata) };
    uint64_t since;

    if (!m.boot || !m.v || !kt_tracer_enabled(m.c->tracer)) {
        return;
    }
    since = cost_begin(m.v);
    m.v->hits[id.v]++;
    enter(&m, id);
    cost_end(m.v, since);
}

static void on_return(unsigned vcpu_index, void *udata)
{
    uint32_t site = packed_id(udata);
    Moment m = {
        .c = capture,
        .boot = boot_now(capture),
        .v = capture->vcpu[vcpu_index],
        .insns_left = packed_left(udata),
        .ra = kt_sites_va(capture->sites, site),
    };
    uint64_t since;
    KtCall call;

    if (!m.boot || !m.v) {
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
            leave(&m, &call);
        }
    } while (kt_calls_pop(m.c->calls, m.sp_after - 8, m.ra, &call));
    cost_end(m.v, since);
}

/* ---- finding the kernel ------------------------------------------------- */

static bool banner_matches(const KtCapture *c, uint64_t slide)
{
    const char *banner = gs_kernel_banner(c->kernel);
    size_t left = banner ? strlen(banner) : 0;
    GsSymbol sym;
    uint64_t va;

    if (!banner) {
        return true;        /* a System.map has none */
    }
    if (!gs_kernel_lookup(c->kernel, "linux_banner", &sym)) {
        return false;
    }
    for (va = sym.va - gs_kernel_slide(c->kernel) + slide; left;) {
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
    Boot *boot = g_new0(Boot, 1);

    gs_kernel_set_slide(c->kernel, slide);
    boot->hooks = kt_hooks_resolve(c->kernel);
    boot->guest = kt_guest_new(c->kernel, c->tracer,
                               qemu_plugin_vaddr_to_host);
    kt_tracer_set_complete(c->tracer, true);
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
    const Boot *boot = boot_now(c);

    if (!boot) {
        return may_be_start(c, va);
    }
    return va >> 63 &&                  /* the kernel's half */
           (kt_hooks_page(boot->hooks, va) ||
            kt_sites_find(c->sites, va) != KT_SITE_NONE);
}

/* int3: the guest is about to patch that entry; it traps before it runs */
static bool is_breakpoint(const struct qemu_plugin_insn *insn)
{
    uint8_t byte = 0;

    return qemu_plugin_insn_data(insn, &byte, 1) == 1 && byte == 0xcc;
}

static void hook_entries(const Boot *boot, struct qemu_plugin_tb *tb, size_t n)
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
    KtCapture *c = capture;
    uint64_t va = qemu_plugin_tb_vaddr(tb);
    size_t n = qemu_plugin_tb_n_insns(tb);
    const Boot *boot = boot_now(c);
    uint32_t site;

    if (!boot) {
        look_for_kernel(c, va);
        return;
    }
    site = kt_sites_find(c->sites, va);
    if (site != KT_SITE_NONE && n) {
        qemu_plugin_register_vcpu_insn_exec_cb(
            qemu_plugin_tb_get_insn(tb, 0), on_return, QEMU_PLUGIN_CB_R_REGS,
            pack(site, n));
    }
    if (kt_hooks_page(boot->hooks, va)) {
        hook_entries(boot, tb, n);
    }
}

static void on_vcpu_init(qemu_plugin_id_t id, unsigned int index)
{
    KtCapture *c = capture;

    if (index >= c->max_vcpus || !c->kernel) {
        return;
    }
    c->vcpu[index] = kt_vcpu_new(index, c->kernel);
    if (!c->vcpu[index]) {
        qemu_plugin_outs("ka: this target's registers cannot be read: "
                         "nothing is traced\n");
    }
}

/* ---- outside ------------------------------------------------------------ */

KtCapture *kt_capture_start(qemu_plugin_id_t id, KtTracer *t, GsKernel *k,
                            unsigned max_vcpus)
{
    KtCapture *c = g_new0(KtCapture, 1);
    GsSymbol sym;

    c->tracer = t;
    c->kernel = k;
    c->max_vcpus = max_vcpus;
    c->vcpu = g_new0(KtVcpu *, max_vcpus);
    c->sites = kt_sites_new();
    c->calls = kt_calls_new();
    g_mutex_init(&c->lock);
    if (k && gs_kernel_lookup(k, "start_kernel", &sym)) {
        c->start_kernel = sym.va;
    }
    capture = c;
    qemu_plugin_register_vcpu_init_cb(id, on_vcpu_init);
    qemu_plugin_register_vcpu_tb_filter(id, want_block, c);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
    return c;
}

void kt_capture_reset(KtCapture *c)
{
    Boot *boot = c->boot;

    if (!boot) {
        return;
    }
    __atomic_store_n(&c->boot, NULL, __ATOMIC_RELEASE);
    kt_calls_clear(c->calls);
    kt_sites_clear(c->sites);
    for (unsigned i = 0; i < c->max_vcpus; i++) {
        if (c->vcpu[i]) {
            kt_vcpu_forget(c->vcpu[i]);
        }
    }
    kt_hooks_free(boot->hooks);
    kt_guest_free(boot->guest);
    g_free(boot);
    kt_tracer_reset(c->tracer);
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
        if (c->vcpu[i]) {
            hits += __atomic_load_n(&c->vcpu[i]->hits[id.v],
                                    __ATOMIC_RELAXED);
        }
    }
    return hits;
}

void kt_capture_sync_counters(KtCapture *c)
{
    for (unsigned i = 0; i < c->max_vcpus; i++) {
        KtVcpu *v = c->vcpu[i];

        for (unsigned n = 0; v && n < KT_CNT__COUNT; n++) {
            uint64_t now = __atomic_load_n(&v->count[n], __ATOMIC_RELAXED);

            kt_tracer_count(c->tracer, n, now - v->counted[n]);
            v->counted[n] = now;
        }
    }
}
