/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Accesses to one block: callbacks, translation. See watch-block.h. */
#include "kalloc-tracer/capture/watch-block.h"

#include "kalloc-tracer/access/block-watch.h"
#include "kalloc-tracer/capture/watch-stack.h"
#include "kalloc-tracer/tracer/tracer.h"

#define INSN_MAX 16

/**
 * struct Watch - the block; constant while vCPUs execute
 * @classes: (owned) of the kernel's code; NULL: no block is watched
 */
typedef struct Watch {
    KtCapture *c;
    KtBlockWatch *part;
    KtBlockWatchSpec spec;
    KtCodeClasses *classes;
} Watch;

/* The callbacks of all vCPUs use one object: their only argument is the address
 * of the instruction. */
static Watch watch;

/* ---- execution ----------------------------------------------------------- */

/* Return false if nothing can be recorded: the boot or the watch has ended, and
 * the code is not translated anew yet; the vCPU has no registers; tracing is
 * off. */
static bool begin(KtHookCall *m, unsigned vcpu_index, void *udata)
{
    *m = (KtHookCall) {
        .c = &watch.c->shared,
        .boot = kt_capture_boot(watch.c),
        .v = &watch.c->vcpu[vcpu_index],
        .insns_left = kt_watch_left(udata),
    };
    return m->boot && watch.c->block_watched && m->v->unwinder &&
           kt_tracer_is_on(m->c->tracer);
}

static bool overlaps(uint64_t va, uint64_t len)
{
    return va - watch.spec.va < watch.spec.len ||
           watch.spec.va - va < len;
}

/* Limit an access to the bytes of the block. */
static void clip(KtBlockAccess *a)
{
    uint64_t before = a->va < watch.spec.va ? watch.spec.va - a->va : 0;

    a->va += before;
    a->len = MIN(a->len - before,
                 watch.spec.len - (a->va - watch.spec.va));
}

static void add_stack(KtHookCall *m, uint64_t pc, KtBlockAccess *a)
{
    bool range = a->flags & KT_BLOCK_ACCESS_RANGE;
    uint64_t task = kt_watch_task(m);
    KtWatchStack st;
    unsigned i;

    kt_watch_walk(m, pc, range, task, &st);
    i = kt_watch_first(watch.classes, &st);
    if (i < st.n && kt_watch_frame_class(watch.classes, &st, i) ==
                    KT_CODE_ALLOCATOR) {
        a->flags |= KT_BLOCK_ACCESS_ALLOCATOR;
    }
    a->stack = kt_watch_intern(m, &st);
    a->task = m->ev.task;
}

static void record(KtHookCall *m, uint64_t pc, KtBlockAccess *a)
{
    const KtBlockPlace place = { pc, kt_vcpu_reg(m->v, GS_REG_SP) };

    clip(a);
    a->us = a->last_us = qemu_plugin_get_virtual_ns(m->insns_left) / 1000;
    a->cpu = m->v->index;
    a->count = 1;
    if (!kt_block_watch_repeat(watch.part, &place, a)) {
        add_stack(m, pc, a);
        kt_block_watch_add(watch.part, &place, a);
    }
}

/* After each access of an instruction. */
GS_HOT
static void on_access(unsigned vcpu_index, qemu_plugin_meminfo_t info,
                      uint64_t va, void *udata)
{
    KtBlockAccess a = {
        .va = kt_vcpu_untag(&watch.c->vcpu[vcpu_index], va),
        .len = 1ull << qemu_plugin_mem_size_shift(info),
    };
    KtHookCall m;

    if (G_LIKELY(!overlaps(a.va, a.len)) || !begin(&m, vcpu_index, udata)) {
        return;
    }
    a.flags = qemu_plugin_mem_is_store(info) ? KT_BLOCK_ACCESS_WRITE : 0;
    record(&m, kt_watch_pc(udata), &a);
}

static void record_range(KtHookCall *m, uint64_t pc, uint64_t va, uint64_t len,
                         bool write)
{
    KtBlockAccess a = {
        .va = va, .len = len,
        .flags = KT_BLOCK_ACCESS_RANGE | (write ? KT_BLOCK_ACCESS_WRITE : 0),
    };

    if (len && overlaps(va, len) && kt_record_find_return(m)) {
        record(m, pc, &a);
    }
}

/* At the entry of memset(), memcpy() and the like: the instructions of these
 * functions have no callbacks. */
static void on_range(unsigned vcpu_index, void *udata)
{
    uint64_t pc = kt_watch_pc(udata);
    const KtCodeRow *row;
    uint64_t len;
    KtHookCall m;

    if (!begin(&m, vcpu_index, udata)) {
        return;
    }
    row = kt_code_classes_at(watch.classes, pc);
    if (!row) {
        return;
    }
    len = kt_watch_range_len(&m, row);
    if (row->src != KT_NO_ARG) {
        record_range(&m, pc, kt_vcpu_pointer(m.v, row->src), len, false);
    }
    if (row->dst != KT_NO_ARG) {
        record_range(&m, pc, kt_vcpu_pointer(m.v, row->dst), len, true);
    }
}

/* ---- translation --------------------------------------------------------- */

/* Add the callback that an instruction needs, if any. Returns: how many. An
 * instruction that modifies memory is a store. */
static unsigned add_callback(const KtCapture *c, const KtWatchFunction *f,
                             struct qemu_plugin_insn *insn, void *udata)
{
    uint8_t bytes[INSN_MAX];
    size_t len;

    if (f->class == KT_CODE_RANGE) {
        if (f->is_part || qemu_plugin_insn_vaddr(insn) != f->start) {
            return 0;
        }
        qemu_plugin_register_vcpu_insn_exec_cb(insn, on_range,
                                               QEMU_PLUGIN_CB_R_REGS, udata);
        return 1;
    }
    len = qemu_plugin_insn_data(insn, bytes, sizeof(bytes));
    if (!watch.spec.wide && !gs_arch_may_touch_objects(c->arch, bytes, len)) {
        return 0;
    }
    qemu_plugin_register_vcpu_mem_cb(
        insn, on_access, QEMU_PLUGIN_CB_R_REGS,
        gs_arch_modifies_memory(c->arch, bytes, len) ? QEMU_PLUGIN_MEM_W :
                                                       QEMU_PLUGIN_MEM_RW,
        udata);
    return 1;
}

void kt_capture_watch_block(const KtCapture *c, struct qemu_plugin_tb *tb,
                            size_t n)
{
    KtWatchFunction f = { 0 };
    unsigned added = 0;

    for (size_t i = 0; i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        uint64_t va = qemu_plugin_insn_vaddr(insn);

        kt_watch_function(&f, watch.classes, va);
        added += add_callback(c, &f, insn, kt_watch_pack(va, 0, n - i));
    }
    kt_tracer_count(c->shared.tracer, KT_CNT_COST_CALLBACKS, added);
}

/* ---- begin and end ------------------------------------------------------- */

static void end(KtCapture *c)
{
    c->block_watched = false;
    g_clear_pointer(&watch.classes, kt_code_classes_free);
}

void kt_capture_end_block_watch(KtCapture *c)
{
    end(c);
    kt_block_watch_end(watch.part);
}

/* No vCPU executes. */
static void change(void *userdata)
{
    KtCapture *c = userdata;

    kt_capture_lock(c);
    end(c);
    if (c->boot && kt_block_watch_wanted(watch.part, &watch.spec)) {
        watch.classes = kt_access_code(c->shared.tracer, c->shared.kernel);
        c->block_watched = true;
    }
    kt_capture_unlock(c);
}

/* The flush is last, so that code is translated for the new state. */
static void on_change(void *opaque)
{
    KtCapture *c = opaque;

    if (__atomic_load_n(&c->applying, __ATOMIC_ACQUIRE)) {
        qemu_plugin_request_exclusive(change, c);
        qemu_plugin_request_flush();
    }
}

void kt_capture_start_block_watch(KtCapture *c)
{
    watch.c = c;
    watch.part = kt_block_watch_of(c->shared.tracer);
    kt_block_watch_on_change(watch.part, on_change, c);
}
