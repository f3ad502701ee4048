/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Accesses to one block: the trap of its pages, begin and end. See
 * capture-internal.h. */
#include "kalloc-tracer/capture/capture-internal.h"

#include "kalloc-tracer/access/block-watch.h"
#include "kalloc-tracer/capture/replay-stop.h"
#include "kalloc-tracer/capture/watch-internal.h"
#include "kalloc-tracer/capture/seam.h"
#include "kalloc-tracer/tracer/tracer.h"

#include <string.h>

#define INSN_MAX 16

/* QEMU's pages are these, whatever the guest's are. */
#define PAGE 4096u

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

/* The callbacks of all vCPUs use one object. */
static Watch watch;

/* ---- execution ----------------------------------------------------------- */

static bool overlaps(uint64_t va, uint64_t len)
{
    return va - watch.spec.va < watch.spec.len ||
           watch.spec.va - va < len;
}

/* With the lock of a TLB held, for each page that is brought into it. */
GS_HOT
static bool is_trapped(uint64_t page, void *userdata)
{
    const KtReplayStop *stop = watch.c->shared.stop;

    return (G_UNLIKELY(watch.c->block_watched) && overlaps(page, PAGE)) ||
           (G_UNLIKELY(stop) && kt_replay_stop_traps(stop, page));
}

/* Return false if nothing can be recorded: the boot or the watch has ended; the
 * vCPU has no registers; tracing is off. */
static bool begin(KtHookCall *m, unsigned vcpu_index)
{
    *m = (KtHookCall) {
        .c = &watch.c->shared,
        .boot = kt_capture_boot(watch.c),
        .v = &watch.c->vcpu[vcpu_index],
    };
    return m->boot && watch.c->block_watched && m->v->unwinder &&
           kt_tracer_is_on(m->c->tracer);
}

/* Limit an access to the bytes of the block. */
static void clip(KtBlockAccess *a)
{
    uint64_t before = a->va < watch.spec.va ? watch.spec.va - a->va : 0;

    a->va += before;
    a->len = MIN(a->len - before,
                 watch.spec.len - (a->va - watch.spec.va));
}

/* Read up to INSN_MAX bytes of code. Returns: how many. */
static size_t read_code(uint64_t pc, uint8_t *to)
{
    size_t done = 0;

    while (done < INSN_MAX) {
        size_t n;
        const void *from = qemu_plugin_vaddr_to_host(pc + done, &n);

        if (!from) {
            break;
        }
        n = MIN(n, INSN_MAX - done);
        memcpy(to + done, from, n);
        done += n;
    }
    return done;
}

/* Return true if the load at @pc is the first half of an instruction that then
 * stores: only the store is recorded. */
static bool is_half(uint64_t pc)
{
    uint8_t bytes[INSN_MAX];
    size_t len = read_code(pc, bytes);

    return watch.c->arch->modifies_memory(bytes, len);
}

/* Set the place to the entry of memset() and the like: all their accesses are
 * one record. */
static void find_function(uint64_t pc, KtBlockPlace *place, KtBlockAccess *a)
{
    uint64_t end;

    place->pc = pc;
    if (kt_watch_class(watch.classes, pc) == KT_CODE_RANGE) {
        a->flags |= KT_BLOCK_ACCESS_RANGE;
        kt_code_classes_function(watch.classes, pc, &place->pc, &end);
    }
}

/* Memory functions have no frame. Where the link register has the caller, the
 * walk begins as at their entry. */
static void walk(KtHookCall *m, uint64_t pc, bool range, KtWatchStack *st)
{
    bool entry = range && m->v->reg[GS_REG_LINK] && kt_record_find_return(m);

    kt_watch_walk(m, pc, entry, kt_watch_task(m), st);
}

static void add_stack(KtHookCall *m, const KtBlockPlace *place, uint64_t pc,
                      KtBlockAccess *a)
{
    KtWatchStack st;
    unsigned i;

    walk(m, pc, a->flags & KT_BLOCK_ACCESS_RANGE, &st);
    st.frame[0] = place->pc;
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
    KtBlockPlace place = { .sp = kt_vcpu_reg(m->v, GS_REG_SP) };

    clip(a);
    find_function(pc, &place, a);
    a->us = a->last_us = qemu_plugin_get_virtual_ns(m->insns_left) / 1000;
    a->cpu = m->v->index;
    a->count = 1;
    if (!kt_block_watch_repeat(watch.part, &place, a)) {
        add_stack(m, &place, pc, a);
        kt_block_watch_add(watch.part, &place, a);
    }
}

/* Before each access to a page of the block. */
static void on_access(unsigned vcpu_index, uint64_t va, unsigned size,
                      enum qemu_plugin_mem_rw rw, void *userdata)
{
    KtBlockAccess a = {
        .va = kt_vcpu_untag(&watch.c->vcpu[vcpu_index], va), .len = size,
        .flags = rw & QEMU_PLUGIN_MEM_W ? KT_BLOCK_ACCESS_WRITE : 0,
    };
    KtHookCall m;
    uint64_t pc;

    if (G_UNLIKELY(watch.c->shared.stop)) {
        a.cpu = vcpu_index;
        kt_replay_stop_access(watch.c->shared.stop, &a);
    }
    if (!overlaps(a.va, a.len) || !begin(&m, vcpu_index)) {
        return;
    }
    if (!qemu_plugin_page_access_insn(&pc, &m.insns_left)) {
        kt_vcpu_count(m.v, KT_CNT_ACCESS_WATCH_UNKNOWN, 1);
    } else if (a.flags || !is_half(pc)) {
        record(&m, pc, &a);
    }
}

/* ---- begin and end ------------------------------------------------------- */

static void update_pages(void)
{
    uint64_t first = watch.spec.va & ~(uint64_t)(PAGE - 1);

    for (uint64_t at = first; at - first < watch.spec.va - first +
                                           watch.spec.len; at += PAGE) {
        qemu_plugin_update_page_trap(at);
    }
}

static void end(KtCapture *c)
{
    if (c->block_watched) {
        c->block_watched = false;
        update_pages();
        g_clear_pointer(&watch.classes, kt_code_classes_free);
    }
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
    if (!c->boot) {             /* a snapshot's kernel is not found yet */
        kt_block_watch_end(watch.part);
    } else if (kt_block_watch_wanted(watch.part, &watch.spec)) {
        watch.classes = kt_access_code(c->shared.tracer, c->shared.kernel);
        c->block_watched = true;
        update_pages();
    }
    kt_capture_unlock(c);
}

static void on_change(void *opaque)
{
    KtCapture *c = opaque;

    if (__atomic_load_n(&c->applying, __ATOMIC_ACQUIRE)) {
        qemu_plugin_request_exclusive(change, c);
    }
}

void kt_capture_start_block_watch(KtCapture *c, qemu_plugin_id_t id)
{
    watch.c = c;
    watch.part = kt_block_watch_of(c->shared.tracer);
    kt_block_watch_on_change(watch.part, on_change, c);
    kt_block_watch_refuse(watch.part, c->seam->sees_accesses ? NULL :
                                                               KT_NO_ACCESSES);
    qemu_plugin_register_vcpu_page_trap(id, is_trapped, on_access, NULL);
}
