/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stacks of tasks and interrupts: kt_roots_find_stacks().
 *
 *     stack + stack_size  +-----------------+  high addresses
 *                         | frames in use   |  root (KT_PLACE_STACK)
 *                   sp -> +-----------------+
 *                         | stale frames    |  not scanned
 *     stack               +-----------------+  low addresses
 *
 * The memory below sp is full of stale pointers. So a block that is a stack
 * becomes KT_MARKERF_NO_SCAN, and its used part is added as a region. This also
 * holds for stacks without a task: the kernel caches stacks of ended tasks for
 * new ones. Each CPU has an interrupt stack, which is a root only while it is
 * in use.
 */
#include "kalloc-tracer/leak/leak-internal.h"

#include <string.h>

#define TASKS_MAX (1u << 22)

/*
 * struct Finding - state of the search
 * @sites: return addresses of the calls that allocated tasks' stacks
 * @free_rcu: address of thread_stack_free_rcu(), 0 if unknown
 */
typedef struct Finding {
    KtLiveSet *w;
    GHashTable *sites;
    uint64_t free_rcu;
} Finding;

static bool is_sp(const KtRegister *r)
{
    return !strcmp(r->name, "sp") || !strcmp(r->name, "rsp");
}

/* Find a register whose value is in the stack, or only an sp. */
static const KtRegister *find_in(const KtLiveSet *w, uint64_t stack,
                                 bool only_sp)
{
    for (unsigned i = 0; i < w->registers->len; i++) {
        const KtRegister *r = &g_array_index(w->registers, KtRegister, i);

        if (r->value - stack < w->stack_size && (!only_sp || is_sp(r))) {
            return r;
        }
    }
    return NULL;
}

/* Return the sp of the vCPU that runs on the stack now, 0 if none does. */
static uint64_t running_sp(const KtLiveSet *w, uint64_t stack)
{
    const KtRegister *sp = find_in(w, stack, true);

    return sp ? sp->value & ~7ull : 0;
}

static void set_no_scan(KtLiveSet *w, const KtLiveBlock *b)
{
    kt_marker_set_flags(w->scan, kt_live_set_index(w, b), KT_MARKERF_NO_SCAN);
}

static void set_stack(KtLiveSet *w, const KtLiveBlock *b)
{
    uint32_t i = kt_live_set_index(w, b);

    set_no_scan(w, b);
    g_array_index(w->live, KtLiveBlock, i).is_stack = true;
}

/* ---- tasks -------------------------------------------------------------- */

/* Return the innermost return address of the block's allocation, or NULL. */
static gpointer site_of(const KtLiveSet *w, const KtLiveBlock *b)
{
    GsStop stop;
    unsigned n;
    const uint64_t *frame = kt_tracer_stack(w->tracer, b->stack, &n, &stop);

    return n ? GSIZE_TO_POINTER(frame[0]) : NULL;
}

/* Exclude the stack from blocks and pages: its words are scanned as a stack. */
static void set_block_of_stack(const Finding *f, uint64_t stack)
{
    KtLiveSet *w = f->w;
    const KtLiveBlock *b = kt_live_set_find(w, stack);

    if (!b) {
        if (w->pages) {
            kt_page_use_set_aliased(w->pages, stack, w->stack_size);
        }
        return;
    }
    set_stack(w, b);
    if (b->layer == KT_LAYER_VMALLOC && site_of(w, b)) {
        g_hash_table_add(f->sites, site_of(w, b));
    }
}

/*
 * Add the stack of the task at @task as a root, from one of these on:
 *
 *     the sp of a vCPU          the task runs on this stack
 *     task_struct.thread.sp     the task sleeps
 *     the start of the stack    the task runs, but its vCPU is on another stack
 *                               (interrupt, exception) or in user mode
 *
 * on_cpu says if the task runs. In kernels without SMP there is no on_cpu: then
 * any register that points into the stack says so.
 */
static void add_stack(const Finding *f, uint64_t task)
{
    KtLiveSet *w = f->w;
    const uint32_t *at = w->layout.at;
    uint64_t stack, sp = 0, from;
    bool runs;

    if (!kt_live_set_load(w, task + at[KT_M_TASK_STACK], &stack) || !stack ||
        stack + w->stack_size < stack) {
        return;
    }
    set_block_of_stack(f, stack);
    if (w->plan->no_stacks) {
        return;
    }
    runs = kt_layout_has(&w->layout, KT_M_TASK_ON_CPU) ?
               kt_live_set_u32(w, task + at[KT_M_TASK_ON_CPU]) :
               find_in(w, stack, false) != NULL;
    from = running_sp(w, stack);
    if (!from && !runs && kt_layout_has(&w->layout, KT_M_TASK_SP) &&
        kt_live_set_load(w, task + at[KT_M_TASK_SP], &sp) &&
        sp - stack < w->stack_size) {
        from = sp & ~7ull;
    }
    w->tasks++;
    kt_live_set_add(w, KT_PLACE_STACK, from ? from : stack,
                    stack + w->stack_size,
                    kt_live_set_u32(w, task + at[KT_M_TASK_PID]));
}

/* Return (owned) an array by cache id: does the cache have task_structs? */
static bool *caches_of_tasks(const KtLiveSet *w)
{
    bool *is = g_new0(bool, UINT16_MAX + 1);
    KtCacheInfo info;

    for (unsigned id = 1; id <= UINT16_MAX &&
         kt_tracer_cache(w->tracer, (KtCacheId) { id }, &info); id++) {
        is[id] = !strcmp(info.name, "task_struct");
    }
    return is;
}

/*
 * Since 5.18 (kernel/fork.c) the stack of an ended task is freed after a grace
 * period. Until then, its first words are a struct vm_stack, whose rcu_head
 * links it to other callbacks that wait:
 *
 *     stack of an ended task         another object
 *     +-------------------+          +---------------+
 *     | rcu.next ---------|--------->| rcu.next, ... |
 *     | rcu.func          |          +---------------+
 *     | stale frames      |
 *
 * So rcu.next is scanned, and nothing else. A stack that was cached instead of
 * freed keeps the old words.
 */
static void find_free_rcu(Finding *f)
{
    const KtLiveSet *w = f->w;

    if (kt_layout_has(&w->layout, KT_M_VM_STACK_RCU)) {
        f->free_rcu = kt_live_set_symbol(w, "thread_stack_free_rcu");
    }
}

static bool waits_for_rcu(const Finding *f, const KtLiveBlock *b)
{
    uint64_t at = b->va + f->w->layout.at[KT_M_VM_STACK_RCU], func;

    return f->free_rcu && kt_live_set_load(f->w, at + 8, &func) &&
           func == f->free_rcu;
}

/* Exclude a stack without a task. */
static void set_unused(const Finding *f, const KtLiveBlock *b)
{
    KtLiveSet *w = f->w;
    uint32_t i = kt_live_set_index(w, b);
    uint32_t rcu = w->layout.at[KT_M_VM_STACK_RCU];

    if (waits_for_rcu(f, b)) {
        g_array_index(w->live, KtLiveBlock, i).is_stack = true;
        kt_marker_area(w->scan, (KtMarkerArea) { i, rcu, rcu + 8ull });
    } else {
        set_stack(w, b);
    }
}

/* Find stacks without a task: blocks of the size of a stack, allocated by the
 * same call as the stack of a task. */
static void find_unused_stacks(const Finding *f)
{
    KtLiveSet *w = f->w;

    for (uint32_t i = 0; i < w->live->len && !w->ended; i++) {
        const KtLiveBlock *b = kt_live_set_block(w, i);

        if (b->layer == KT_LAYER_VMALLOC && b->requested == w->stack_size &&
            !b->is_stack && g_hash_table_contains(f->sites, site_of(w, b))) {
            set_unused(f, b);
        }
    }
}

static void find_tasks(const Finding *f)
{
    KtLiveSet *w = f->w;
    uint64_t init = kt_live_set_symbol(w, "init_task");
    g_autofree bool *has_tasks = caches_of_tasks(w);

    if (init) {
        add_stack(f, init);
    }
    for (uint32_t i = 0; i < w->live->len && w->tasks < TASKS_MAX; i++) {
        const KtLiveBlock *b = kt_live_set_block(w, i);

        if (b->layer == KT_LAYER_CACHE && has_tasks[b->cache.v]) {
            add_stack(f, b->va);
        }
    }
    find_unused_stacks(f);
}

/* ---- interrupts --------------------------------------------------------- */

/* Per-CPU variables with the address of the CPU's interrupt stack. */
static const struct {
    const char *symbol;
    bool hot;                   /* in struct pcpu_hot */
    bool last;                  /* address of the last word, not the first */
} irq_stack[] = {
    { .symbol = "irq_stack_ptr" },                      /* arm64, riscv64 */
    { .symbol = "hardirq_stack_ptr", .last = true },    /* x86-64 */
    { "pcpu_hot", true, true },
};

/* Add the interrupt stack of a CPU from its sp on if it is in use; else exclude
 * the block that it is in, if any. */
static void add_irq_stack(KtLiveSet *w, uint64_t stack, uint32_t cpu)
{
    const KtLiveBlock *b = kt_live_set_find(w, stack);
    uint64_t from = w->plan->no_stacks ? 0 : running_sp(w, stack);

    if (!from && !w->plan->no_stacks && find_in(w, stack, false)) {
        from = stack;           /* an exception interrupted its user */
    }
    if (!b && from) {
        kt_live_set_add(w, KT_PLACE_PERCPU, from, stack + w->stack_size, cpu);
    } else if (b && from) {
        kt_marker_area(w->scan, (KtMarkerArea) { kt_live_set_index(w, b),
                                                 from - stack, UINT64_MAX });
    } else if (b) {
        set_no_scan(w, b);
    }
}

static void find_irq_stacks(KtLiveSet *w)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(irq_stack); i++) {
        uint64_t va = kt_live_set_symbol(w, irq_stack[i].symbol), stack;
        uint32_t at = irq_stack[i].hot ? w->layout.at[KT_M_HOT_IRQ_STACK] : 0;

        if (!va || at == KT_NO_MEMBER) {
            continue;
        }
        for (unsigned cpu = 0; cpu < w->offset->len; cpu++) {
            uint64_t off = g_array_index(w->offset, uint64_t, cpu);

            if (kt_live_set_load(w, off + va + at, &stack) && stack) {
                add_irq_stack(w, irq_stack[i].last ?
                                 stack + 8 - w->stack_size : stack, cpu);
            }
        }
    }
}

void kt_roots_find_stacks(KtLiveSet *w)
{
    g_autoptr(GHashTable) sites = g_hash_table_new(gs_number_hash_direct,
                                                   NULL);
    Finding f = { .w = w, .sites = sites };

    if (kt_layout_has(&w->layout, KT_M_TASK_STACK) &&
        kt_layout_has(&w->layout, KT_M_TASK_PID)) {
        find_free_rcu(&f);
        find_tasks(&f);
    } else {
        kt_live_set_add_missing(w, g_strdup("stacks of tasks: no type "
                                     "task_struct"));
    }
    find_irq_stacks(w);
}
