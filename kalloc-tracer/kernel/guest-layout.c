/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where a KtGuest finds tasks, caches and struct pages: offsets of members
 * from the kernel's types, addresses of variables from its symbols. Called once
 * for each kernel, by kt_guest_new(), and again if its types are dropped.
 */
#include "kalloc-tracer/kernel/guest-internal.h"

/*
 * in_interrupt() tests the softirq and hardirq bits of preempt_count, see
 * include/linux/preempt.h. An NMI sets the hardirq bits, too. Since 7.3 the
 * hardirq bits are higher: their old place has the count of
 * local_interrupt_disable(). With PREEMPT_RT the softirq bits are in the task's
 * softirq_disable_cnt.
 */
#define IN_HARDIRQ          0x00ff0000u
#define IN_HARDIRQ_MOVED    0x0f000000u

static uint64_t symbol(const GsKernel *k, const char *name)
{
    GsSymbol sym;

    return gs_kernel_lookup(k, name, &sym) ? sym.va : 0;
}

/*
 * Return the address of a per-CPU variable. From 6.2 (commits 7443b296e699,
 * d7b6d709a76a) to 6.14 it is a member of struct pcpu_hot.
 */
static uint64_t percpu(const GsKernel *k, const char *name, KtMember hot)
{
    uint64_t base = symbol(k, "pcpu_hot");
    uint32_t offset = kt_member(k, hot);

    if (base && offset != UNKNOWN) {
        return base + offset;
    }
    return symbol(k, name);
}

/* Is it an x86-64 kernel for one CPU? Its per-CPU variables are plain ones.
 * Only such kernels have this function. */
static bool is_up(const GsKernel *k)
{
    return symbol(k, "up_late_init") != 0;
}

/* The current task is exported to modules, which may be its only symbol. */
static uint64_t current_task(const GsKernel *k)
{
    uint64_t va = percpu(k, "current_task", KT_M_HOT_TASK);
    GsSymbol sym;

    return va ? va : gs_kernel_variable(k, "current_task", &sym) ? sym.va : 0;
}

/* Has preempt_count a count of local_interrupt_disable()? Without KALLSYMS_ALL
 * only functions have symbols, so a function is tried, too. */
static bool counts_disabled_interrupts(const GsKernel *k)
{
    GsSymbol sym;

    return gs_kernel_lookup(k, "local_interrupt_disable_state", &sym) ||
           gs_kernel_lookup(k, "_local_interrupt_enable", &sym);
}

/* Is it a kernel with PREEMPT_RT? Only those have this function. */
static bool is_rt(const GsKernel *k)
{
    return symbol(k, "rt_spin_lock") != 0;
}

static void find_task(KtGuestLayout *at, const GsKernel *k)
{
    at->base_is_task = gs_kernel_arch(k)->base == GS_BASE_TASK;
    if (!at->base_is_task) {
        at->current_task = current_task(k);
        at->preempt_count = percpu(k, "__preempt_count", KT_M_HOT_PREEMPT);
        at->percpu_mask = is_up(k) && at->current_task ? 0 : ~0ull;
    }
    at->in_interrupt = IN_SOFTIRQ | (counts_disabled_interrupts(k) ?
                                     IN_HARDIRQ_MOVED : IN_HARDIRQ);
    at->task_preempt = kt_member(k, KT_M_TASK_PREEMPT);
    if (!gs_kernel_has_all_symbols(k)) {
        /* Nothing says which bits of preempt_count are hard interrupts. */
        at->preempt_count = 0;
        at->task_preempt = UNKNOWN;
    }
    at->task_pid = kt_member(k, KT_M_TASK_PID);
    at->task_comm = kt_member(k, KT_M_TASK_COMM);
    at->task_softirq = kt_member(k, KT_M_TASK_SOFTIRQ);
    at->softirq_unknown = at->task_softirq == UNKNOWN && is_rt(k);
}

static void find_pages(KtGuestLayout *at, const GsKernel *k)
{
    at->page_shift = gs_kernel_page_shift(k);
    at->page_head = kt_member(k, KT_M_PAGE_HEAD);
    at->slab_cache = kt_member(k, KT_M_SLAB_CACHE);
    at->has_pages = gs_direct_map_init(&at->direct_map, k) &&
                    at->page_head != UNKNOWN && at->slab_cache != UNKNOWN;
}

void kt_guest_find_layout(KtGuestLayout *at, const GsKernel *k)
{
    find_task(at, k);
    find_pages(at, k);
    at->sheaf_head = kt_member(k, KT_M_SHEAF_HEAD);
    at->sheaf_size = kt_member(k, KT_M_SHEAF_SIZE);
    at->sheaf_objects = kt_member(k, KT_M_SHEAF_OBJECTS);
    at->cache_name = kt_member(k, KT_M_CACHE_NAME);
    at->cache_object_size = kt_member(k, KT_M_CACHE_OBJECT_SIZE);
    at->cache_size = kt_member(k, KT_M_CACHE_SIZE);
    at->cache_left_pad = kt_member(k, KT_M_CACHE_LEFT_PAD);
    at->size_bytes = sizeof(uint32_t);
}

/* ---- a kernel profile ---- */

void kt_guest_set_caches(KtGuest *g, const KtCacheLayout *at)
{
    g->from_profile = true;
    g_clear_pointer(&g->learner, kt_learner_free);
    g->at = (KtGuestLayout) {
        .base_is_task = true, .page_shift = g->at.page_shift,
        .task_pid = UNKNOWN, .task_comm = UNKNOWN, .task_softirq = UNKNOWN,
        .task_preempt = UNKNOWN, .page_head = UNKNOWN, .slab_cache = UNKNOWN,
        .sheaf_head = UNKNOWN,
        .cache_name = at->name, .cache_size = at->size,
        .cache_object_size = at->size, .cache_left_pad = UNKNOWN,
        .size_bytes = at->size_bytes,
    };
}

/* ---- types from a file ---- */

void kt_guest_check_types(KtGuest *g, KtTypesFit *fit)
{
    g->fit = fit;
}

void kt_guest_drop_types(KtGuest *g)
{
    g->at = (KtGuestLayout) { 0 };
    kt_guest_find_layout(&g->at, g->kernel);
    g->vmemmap = g->page_offset = 0;
    g_hash_table_remove_all(g->caches);
    memset(g->boot_cache, 0, sizeof(g->boot_cache));
    memset(g->boot_copy, 0, sizeof(g->boot_copy));
    g->kmem_cache = (KtCacheId) { 0 };
    g->cache_epoch++;
    kt_learner_free(g->learner);
    g->learner = kt_learner_new(g);
}

/* ---- answers ---- */

void kt_guest_task_members(const KtGuest *g, uint32_t *pid, uint32_t *comm)
{
    *pid = __atomic_load_n(&g->at.task_pid, __ATOMIC_ACQUIRE);
    *comm = __atomic_load_n(&g->at.task_comm, __ATOMIC_ACQUIRE);
    *pid = *pid == UNKNOWN ? 0 : *pid;
    *comm = *comm == UNKNOWN ? 0 : *comm;
}

bool kt_guest_sheaf(const KtGuest *g, uint64_t head, uint64_t *objects,
                    uint32_t *n)
{
    const KtGuestLayout *at = &g->at;
    uint64_t sheaf = head - at->sheaf_head;

    *objects = sheaf + at->sheaf_objects;
    return at->sheaf_head != UNKNOWN && at->sheaf_size != UNKNOWN &&
           at->sheaf_objects != UNKNOWN &&
           kt_guest_read(g, sheaf + at->sheaf_size, n, sizeof(*n));
}

unsigned kt_guest_page_shift(const KtGuest *g)
{
    return g->at.page_shift;
}

/* SLUB serves kmalloc of more than two pages from the page allocator:
 * KMALLOC_SHIFT_HIGH in include/linux/slab.h */
uint64_t kt_guest_large_above(const KtGuest *g)
{
    return 2ull << g->at.page_shift;
}
