/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Access checks that verify (`ka access on --verify`): the last check
 * before an error, in the allocator's lists of free objects. access/verify.h
 * has the rules of the decision.
 *
 *     on the vCPU     a list that is read at once has the object: event
 *                     else the access is held
 *     no vCPU runs    all lists of the cache are read, up to four times
 *
 * An event asks for the next look when it is due. An idle guest has no events:
 * a timer of QEMU's main loop asks, too. While the VM stands, so does its
 * clock, and the timer is not set again until the VM runs.
 *
 * An allocation can hand out memory to which held accesses were made. These
 * accesses become events first, then the allocation does.
 */
#include "kalloc-tracer/access/quarantine.h"
#include "kalloc-tracer/capture/watch-internal.h"
#include "kalloc-tracer/objects/slab-slots.h"
#include "kalloc-tracer/tracer/tracer.h"

#define TIMER_MAX_MS 1000u

/** struct Tell - the argument of on_verdict(). @cpu: events go into the queue
 *  of this vCPU; UINT_MAX: into the queue of the vCPU that made the access */
typedef struct Tell {
    KtAccessWatch *w;
    const KtShared *c;
    unsigned cpu;
} Tell;

static void on_verdict(void *opaque, const KtHeldAccess *held,
                       KtVerifyVerdict verdict, bool first)
{
    const Tell *to = opaque;
    KtEvent ev = held->ev;

    if (first) {
        kt_arming_disarmed(to->w->arming, held->cache);
    }
    if (verdict == KT_VERDICT_UNSEEN) {
        kt_tracer_count(to->c->tracer, KT_CNT_ACCESS_UNSEEN_ALLOC, 1);
        kt_arming_explain(to->w->arming, KT_ACCESS_UNSEEN_ALLOC, held->pc,
                          gs_kernel_era(to->c->kernel, &held->pc, 1).all);
        return;
    }
    if (verdict == KT_VERDICT_UNVERIFIED) {
        kt_tracer_count(to->c->tracer, KT_CNT_ACCESS_UNVERIFIED, 1);
    }
    kt_tracer_push(to->c->tracer, to->cpu == UINT_MAX ? ev.cpu : to->cpu, &ev);
}

/* ---- on the vCPU --------------------------------------------------------- */

/* @bad: an address in the object that is looked for */
typedef struct Find {
    uint64_t bad;
    bool found;
} Find;

static void on_free_slot(void *opaque, const KtSlabCache *cache, uint64_t va)
{
    Find *f = opaque;

    f->found |= f->bad - va < cache->object_size;
}

/* Return true if a list that can be read now has the object. */
static bool is_listed(KtAccessWatch *w, KtHookCall *m, uint64_t bad)
{
    KtSlabs *s = kt_access_watch_slabs(w, m->c, m->boot->guest);
    Find f = { .bad = bad };

    if (s) {
        kt_slabs_free_slots(s, bad, on_free_slot, &f);
    }
    return f.found;
}

static void hold(KtAccessWatch *w, KtHookCall *m, const KtSuspect *s,
                 KtCacheId now)
{
    const KtHeldAccess held = {
        .ev = m->ev, .pc = s->pc, .bad = s->bad, .cache = now,
    };

    if (!kt_verify_hold(w->verify, &held)) {
        kt_vcpu_count(m->v, KT_CNT_ACCESS_DROPPED, 1);
    } else if (kt_verify_claim(w->verify, m->ev.us)) {
        qemu_plugin_request_exclusive(w->read_lists, NULL);
    }
}

bool kt_access_watch_verify(KtAccessWatch *w, KtHookCall *m,
                            const KtSuspect *s, KtCacheId now)
{
    switch (kt_verify_ask(w->verify, s->pc, now)) {
    case KT_VERIFY_STANDS:
        return true;
    case KT_VERIFY_FULL:
        kt_vcpu_count(m->v, KT_CNT_ACCESS_UNVERIFIED, 1);
        return true;
    case KT_VERIFY_UNSEEN:
        kt_vcpu_count(m->v, KT_CNT_ACCESS_UNSEEN_ALLOC, 1);
        kt_arming_explain(w->arming, KT_ACCESS_UNSEEN_ALLOC, s->pc,
                          gs_kernel_era(m->c->kernel, &s->pc, 1).all);
        return false;
    case KT_VERIFY_LOOK:
        if (is_listed(w, m, s->bad)) {
            kt_verify_stands(w->verify, s->pc, now);
            return true;
        }
        break;
    case KT_VERIFY_HOLD:
        break;
    }
    hold(w, m, s, now);
    return false;
}

/* The event is about to be pushed. */
void kt_access_watch_release(KtAccessWatch *w, KtHookCall *m)
{
    Tell to = { w, m->c, m->v->index };

    if (m->ev.kind == KT_EV_ALLOC) {
        kt_verify_release(w->verify, m->ev.va,
                          MAX(m->ev.size, m->ev.actual), on_verdict, &to);
    }
    if (m->ev.us && kt_verify_claim(w->verify, m->ev.us)) {
        qemu_plugin_request_exclusive(w->read_lists, NULL);
    }
}

/* ---- no vCPU executes ---------------------------------------------------- */

/* @guest: whose lists are read */
typedef struct Look {
    Tell to;
    KtGuest *guest;
} Look;

static KtLook look_of(const Look *k, const KtHeldAccess *h,
                      const KtFreeQuestion *q)
{
    KtShadowState state = kt_shadow_state(k->to.w->shadow, h->bad);
    KtQuarantine *waiting = kt_quarantine_of(k->to.c->tracer);

    if (state != KT_SHADOW_FREED && state != KT_SHADOW_FRESH) {
        return KT_LOOK_REUSED;
    }
    return q->answer == KT_YES ||
           (q->object && kt_quarantine_has(waiting, q->object)) ?
               KT_LOOK_LISTED :
           q->answer == KT_NO ? KT_LOOK_MISSING : KT_LOOK_UNREADABLE;
}

static void look(void *opaque, KtHeldAccess *held, unsigned n)
{
    Look *k = opaque;
    g_autofree KtFreeQuestion *q = g_new0(KtFreeQuestion, n);
    KtSlabs *s = kt_access_watch_slabs(k->to.w, k->to.c, k->guest);
    KtCacheInfo info;

    for (unsigned i = 0; i < n; i++) {
        q[i].va = held[i].bad;
        q[i].answer = KT_UNKNOWN;
        q[i].cache = kt_tracer_cache(k->to.c->tracer, held[i].cache, &info) ?
                         info.va : 0;
    }
    if (s) {
        kt_slabs_ask_free(s, q, n);
    }
    for (unsigned i = 0; i < n; i++) {
        held[i].look = look_of(k, &held[i], &q[i]);
    }
}

void kt_access_watch_release_all(KtAccessWatch *w, const KtShared *c)
{
    Tell to = { w, c, UINT_MAX };

    kt_verify_release(w->verify, 0, UINT64_MAX, on_verdict, &to);
}

/* ---- looks in time ------------------------------------------------------- */

static void stop_timer(KtAccessWatch *w)
{
    if (w->timer) {
        g_source_remove(w->timer);
    }
    w->timer = 0;
    w->timer_us = UINT64_MAX;
}

/* Set the timer for the next look, unless it is set for an earlier one. Guest
 * time can be slower than the host's: then the timer is set again. */
static void set_timer(KtAccessWatch *w, uint64_t us)
{
    uint64_t due = kt_verify_due(w->verify);
    uint64_t ms = (due - MIN(us, due)) / 1000 + 1;

    if (due < w->timer_us) {
        stop_timer(w);
        w->timer_us = due;
        w->timer = g_timeout_add((unsigned)MIN(ms, TIMER_MAX_MS), w->on_timer,
                                 NULL);
    }
}

void kt_access_watch_on_time(KtAccessWatch *w)
{
    uint64_t us = qemu_plugin_get_virtual_ns(0) / 1000;
    bool stands = kt_verify_waits(w->verify) && !qemu_plugin_vm_is_running();

    stop_timer(w);
    __atomic_store_n(&w->stands, stands, __ATOMIC_RELAXED);
    if (stands) {
        return;
    }
    if (kt_verify_claim(w->verify, us)) {
        qemu_plugin_request_exclusive(w->read_lists, NULL);
    } else {
        set_timer(w, us);
    }
}

void kt_access_watch_look(KtAccessWatch *w, const KtShared *c, KtGuest *g)
{
    uint64_t us = qemu_plugin_get_virtual_ns(0) / 1000;
    Look k = { { w, c, UINT_MAX }, g };

    kt_verify_look(w->verify, us, look, on_verdict, &k);
    set_timer(w, us);
}

void kt_access_watch_begin_verify(KtAccessWatch *w)
{
    w->verify = kt_verify_new();
    w->timer_us = UINT64_MAX;
}

void kt_access_watch_end_verify(KtAccessWatch *w, const KtShared *c)
{
    stop_timer(w);
    __atomic_store_n(&w->stands, false, __ATOMIC_RELAXED);
    kt_access_watch_release_all(w, c);
    g_clear_pointer(&w->verify, kt_verify_free);
}

/* ---- slots --------------------------------------------------------------- */
/*
 * Slots that nobody owns, in the shadow of access checks.
 *
 * An allocation of a slot that the shadow does not know yet is mostly the first
 * one of a new slab. Then the lists of the allocator say which of the slab's
 * other slots are free, and these are marked. Later allocations from this slab
 * find their slots marked, so the lists are walked about once a slab.
 *
 *     kmalloc() returns slot 3                  shadow of the slab
 *       slot 3 is unknown: walk the lists       ? ? ? ? ? ?
 *       free are 0 1 2 5, and 4 is not          F F F L ? F
 *
 * Slot 4 was handed out by a call that was not recorded, or is about to be.
 *
 * On the vCPU that allocates. Another vCPU may be handed out a slot meanwhile:
 * its code in the shadow is written over the mark, or stays.
 */

/**
 * struct KtSlotReader - what reads slabs, as the vCPU sees memory that asks
 */
struct KtSlotReader {
    KtVm vm;
    KtSlabs *slabs;
};

static bool read_ram(void *opaque, unsigned vcpu, uint64_t va, void *buf,
                     size_t len)
{
    return kt_guest_read(opaque, va, buf, len);
}

static bool read_no_register(void *opaque, unsigned vcpu, unsigned i,
                             KtRegister *out)
{
    return false;
}

/* (owned) */
static KtSlotReader *new_reader(const KtShared *c, KtGuest *g)
{
    KtSlotReader *r = g_new0(KtSlotReader, 1);

    r->vm = (KtVm) {
        .n_vcpus = 1, .running = true, .read = read_ram,
        .reg = read_no_register, .opaque = g,
    };
    kt_guest_direct_map(g, &r->vm.vmemmap, &r->vm.page_offset);
    r->slabs = kt_slabs_new(&(KtObjects) { c->tracer, c->kernel, &r->vm },
                            NULL);
    return r;
}

void kt_slot_reader_free(KtSlotReader *r)
{
    if (r) {
        kt_slabs_free(r->slabs);
        g_free(r);
    }
}

/* Return (borrowed) the reader, made on the first call. Two vCPUs may make one
 * at once; one is published. */
static const KtSlotReader *reader_of(KtAccessWatch *w, const KtShared *c,
                                     KtGuest *g)
{
    KtSlotReader *r = __atomic_load_n(&w->slots, __ATOMIC_ACQUIRE);
    KtSlotReader *mine;

    if (r) {
        return r;
    }
    mine = new_reader(c, g);
    if (__atomic_compare_exchange_n(&w->slots, &r, mine, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        return mine;
    }
    kt_slot_reader_free(mine);
    return r;
}

KtSlabs *kt_access_watch_slabs(KtAccessWatch *w, const KtShared *c, KtGuest *g)
{
    return reader_of(w, c, g)->slabs;
}

/* @refused: slots for which there was no memory */
typedef struct Mark {
    KtShadow *shadow;
    unsigned refused;
} Mark;

/* Bytes behind the object can be the allocator's own. */
static void mark(void *opaque, const KtSlabCache *cache, uint64_t va)
{
    Mark *to = opaque;

    to->refused += !kt_shadow_fresh(to->shadow, va, cache->object_size);
}

/* All pages of the slab are its cache's, so marks of earlier owners go. Call it
 * before the lists are read: a slot that another vCPU is handed out meanwhile
 * can lose its mark, but is not taken for a free one then. */
static void own_slab(KtShadow *shadow, const KtSlabs *s, uint64_t va,
                     uint32_t owner)
{
    KtSlabCache cache;
    KtSlab slab;

    if (kt_slabs_slab_of(s, va, &slab) && slab.is_slab &&
        kt_slabs_cache(s, slab.cache, &cache)) {
        kt_shadow_set_owner(shadow, slab.base, kt_slab_len(s, &cache, &slab),
                            owner);
    }
}

void kt_access_watch_slots(KtAccessWatch *w, KtHookCall *m, uint64_t va,
                           KtCacheId cache)
{
    const KtSlotReader *r = reader_of(w, m->c, m->boot->guest);
    Mark to = { .shadow = w->shadow };

    if (r->slabs) {
        own_slab(w->shadow, r->slabs, va, cache.v);
    }
    if (!r->slabs || !kt_slabs_free_slots(r->slabs, va, mark, &to)) {
        kt_vcpu_count(m->v, KT_CNT_ACCESS_NO_LIST, 1);
    }
    if (to.refused) {
        kt_vcpu_count(m->v, KT_CNT_ACCESS_NO_MEMORY, to.refused);
    }
}
