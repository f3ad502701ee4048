/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Replay stop: see replay-stop.h. */
#include "kalloc-tracer/capture/replay-stop.h"

#include "kalloc-tracer/capture/seam.h"
#include "kalloc-tracer/capture/watch-internal.h"
#include "kalloc-tracer/tracer/tracer.h"

/* QEMU's pages are these; a block of code is in two of them at most. */
#define PAGE 4096u

/** struct Call - a callback of the instruction at @va, wrapped */
typedef struct Call {
    KtReplayStop *stop;
    uint64_t va;
    qemu_plugin_vcpu_udata_cb_t fn;
    void *udata;
} Call;

/** What ends the replay. */
typedef enum Aim {
    AIM_NONE,
    AIM_EVENT,          /* at @target */
    AIM_INSN,           /* before the instruction at @insn.pc, at @aim_ns */
    AIM_SEARCH,         /* behind @aim_ns; accesses before are collected */
} Aim;

/**
 * struct KtReplayStop - when to stop
 * @c: (borrowed)
 * @lock: protects @now, and the members from @aim to @insn
 * @aim: (atomic)
 * @behind: it is behind: first a VM state has to be loaded
 * @insn: what is known of an instruction; of AIM_SEARCH: the last access
 * @found_ns: time of this access
 * @due: the callback that runs has made the event of @target
 * @va, @ns: instruction of the last callback, and when it began
 * @nth: number of this callback among those of the instruction
 * @skip: if the VM stopped there: so many of them have run
 * @has_begin: a VM state was saved before the first event
 * @calls: Call, each once: an instruction can be translated often
 */
struct KtReplayStop {
    KtCapture *c;
    GMutex lock;
    KtEventPlace now;
    Aim aim;
    bool behind;
    KtEventPlace target;
    uint64_t aim_ns, found_ns;
    KtGotoInsn insn;
    bool due;
    uint64_t va, ns;
    unsigned nth, skip;
    bool has_begin;
    GHashTable *calls;
};

static guint hash_call(gconstpointer key)
{
    const Call *c = key;
    uint64_t mixed = c->va ^ (uintptr_t)c->fn ^ (uintptr_t)c->udata;

    return gs_number_hash(&mixed);
}

static gboolean same_call(gconstpointer a, gconstpointer b)
{
    const Call *x = a, *y = b;

    return x->va == y->va && x->fn == y->fn && x->udata == y->udata;
}

static KtReplayStop *new_stop(KtCapture *c)
{
    KtReplayStop *s = g_new0(KtReplayStop, 1);

    s->c = c;
    g_mutex_init(&s->lock);
    s->calls = g_hash_table_new_full(hash_call, same_call, g_free, NULL);
    return s;
}

void kt_replay_stop_free(KtReplayStop *s)
{
    if (s) {
        g_hash_table_unref(s->calls);
        g_mutex_clear(&s->lock);
        g_free(s);
    }
}

static void set_aim(KtReplayStop *s, Aim aim)
{
    __atomic_store_n(&s->aim, aim, __ATOMIC_RELAXED);
}

static Aim aim_of(const KtReplayStop *s)
{
    return __atomic_load_n(&s->aim, __ATOMIC_RELAXED);
}

/* ---- callbacks ----------------------------------------------------------- */

/* Return true if this callback has run already: the VM stopped in it, or in a
 * later one of the same instruction. */
static bool has_run(KtReplayStop *s, const Call *c)
{
    uint64_t ns = qemu_plugin_get_virtual_ns(kt_packed_left(c->udata));

    if (c->va != s->va || ns != s->ns) {
        s->va = c->va;
        s->ns = ns;
        s->nth = s->skip = 0;
    }
    return ++s->nth <= s->skip;
}

/* The instruction is known, and behind. Lock held. */
static void know_insn(KtReplayStop *s, uint64_t ns)
{
    s->insn.step = KT_GOTO_KNOWN;
    s->aim_ns = ns;
    s->behind = true;
    set_aim(s, AIM_INSN);
}

/* Lock held. */
static void end_search(KtReplayStop *s)
{
    if (s->insn.found) {
        know_insn(s, s->found_ns);
    } else {
        s->insn.step = KT_GOTO_NOTHING;
        set_aim(s, AIM_NONE);
    }
}

/* Stop if the end of a search is reached; or if an instruction was passed, as
 * in a replay of another run. */
static void check_time(KtReplayStop *s)
{
    g_mutex_lock(&s->lock);
    if (!s->behind && s->aim == AIM_SEARCH && s->ns >= s->aim_ns) {
        end_search(s);
        s->due = true;
    } else if (!s->behind && s->aim == AIM_INSN && s->ns > s->aim_ns) {
        s->insn.step = KT_GOTO_NONE;
        set_aim(s, AIM_NONE);
        s->due = true;
    }
    g_mutex_unlock(&s->lock);
}

static void on_call(unsigned vcpu_index, void *udata)
{
    const Call *c = udata;
    KtReplayStop *s = c->stop;

    if (has_run(s, c)) {
        return;
    }
    c->fn(vcpu_index, c->udata);
    if (G_UNLIKELY(aim_of(s) >= AIM_INSN)) {
        check_time(s);
    }
    if (G_UNLIKELY(s->due)) {
        s->due = false;
        s->skip = s->nth;
        s->nth = 0;
        kt_leave_call((KtLeave) { KT_LEAVE_STOP, c->va });
    }
}

static Call *intern_call(KtReplayStop *s, const Call *call)
{
    Call *c = g_hash_table_lookup(s->calls, call);

    if (!c) {
        c = g_memdup2(call, sizeof(*call));
        g_hash_table_add(s->calls, c);
    }
    return c;
}

void kt_replay_stop_wrap(KtReplayStop *s, uint64_t va,
                         qemu_plugin_vcpu_udata_cb_t *fn, void **udata)
{
    *udata = intern_call(s, &(Call) { s, va, *fn, *udata });
    *fn = on_call;
}

/* ---- an instruction ------------------------------------------------------ */

/* Find stack and task of the access that the instruction is about to make. */
static void describe(KtReplayStop *s, unsigned vcpu_index, unsigned left)
{
    KtHookCall m = {
        .c = &s->c->shared,
        .boot = kt_capture_boot(s->c),
        .v = &s->c->vcpu[vcpu_index],
        .insns_left = left,
    };
    KtWatchStack st;
    uint64_t task;

    if (!m.boot || !m.v->unwinder) {
        return;
    }
    task = kt_watch_task(&m);
    kt_watch_walk(&m, s->insn.pc, false, task, &st);
    kt_watch_walk_code(&m, s->insn.pc, task, &st);
    s->insn.access.stack = kt_watch_intern(&m, &st);
    s->insn.access.task = m.ev.task;
}

static bool is_at_insn(KtReplayStop *s, unsigned vcpu_index, unsigned left)
{
    bool here;

    g_mutex_lock(&s->lock);
    here = s->aim == AIM_INSN && !s->behind &&
           (uint64_t)qemu_plugin_get_virtual_ns(left) == s->aim_ns;
    if (here) {
        describe(s, vcpu_index, left);
        s->insn.step = KT_GOTO_THERE;
        set_aim(s, AIM_NONE);
    }
    g_mutex_unlock(&s->lock);
    return here;
}

/* When the VM continues, this callback lets the instruction pass. */
static void on_insn(unsigned vcpu_index, void *udata)
{
    const Call *c = udata;

    if (aim_of(c->stop) == AIM_INSN &&
        is_at_insn(c->stop, vcpu_index, kt_packed_left(c->udata))) {
        kt_leave_call((KtLeave) { KT_LEAVE_STOP, c->va });
    }
}

/* @insn.pc is set by the vCPU, or while a VM state is behind: a load drops all
 * translated code before the aim can be reached. */
bool kt_replay_stop_wants(const KtReplayStop *s, uint64_t va)
{
    return aim_of(s) == AIM_INSN && s->insn.pc - va < 2 * PAGE;
}

void kt_replay_stop_translate(KtReplayStop *s, struct qemu_plugin_insn *insn,
                              size_t left)
{
    uint64_t va = qemu_plugin_insn_vaddr(insn);

    if (va == s->insn.pc) {
        qemu_plugin_register_vcpu_insn_exec_cb(
            insn, on_insn, QEMU_PLUGIN_CB_RW_REGS_PC,
            intern_call(s, &(Call) { s, va, on_insn, kt_pack(0, left) }));
    }
}

/* ---- a word -------------------------------------------------------------- */

static bool is_of_word(const KtReplayStop *s, uint64_t va, uint64_t len)
{
    return va - s->insn.word.va < KT_GOTO_WORD || s->insn.word.va - va < len;
}

bool kt_replay_stop_traps(const KtReplayStop *s, uint64_t page)
{
    return aim_of(s) == AIM_SEARCH && is_of_word(s, page, PAGE);
}

/* Lock held. */
static void add_access(KtReplayStop *s, const KtBlockAccess *a, uint64_t pc,
                       uint64_t ns)
{
    if (s->behind || ns >= s->aim_ns ||
        kt_event_place_compare(s->now, s->insn.word.since) < 0) {
        return;
    }
    /* a load and a store of one instruction are one place */
    s->insn.found += !s->insn.found || ns != s->found_ns;
    s->insn.access = *a;
    s->insn.access.us = s->insn.access.last_us = ns / 1000;
    s->insn.access.count = 1;
    s->insn.place = s->now;
    s->insn.pc = pc;
    s->found_ns = ns;
}

void kt_replay_stop_access(KtReplayStop *s, const KtBlockAccess *a)
{
    unsigned left;
    uint64_t pc;

    if (aim_of(s) != AIM_SEARCH || !is_of_word(s, a->va, a->len) ||
        !(s->insn.word.loads || a->flags & KT_BLOCK_ACCESS_WRITE) ||
        !qemu_plugin_page_access_insn(&pc, &left)) {
        return;
    }
    g_mutex_lock(&s->lock);
    add_access(s, a, pc, qemu_plugin_get_virtual_ns(left));
    g_mutex_unlock(&s->lock);
}

/* ---- events -------------------------------------------------------------- */

/* An access of an event is reached, whose callback cannot leave the block. Lock
 * held. */
static void know_access(KtReplayStop *s, const KtHookCall *m)
{
    GsStop stop;
    unsigned n = 0;
    const uint64_t *frame = kt_tracer_stack(m->c->tracer, m->ev.stack, &n,
                                            &stop);

    set_aim(s, AIM_NONE);
    if (frame && n) {
        s->insn = (KtGotoInsn) {
            .place = s->now, .pc = frame[0], .found = 1,
            .access = { .us = m->ev.us, .va = m->ev.va, .len = m->ev.size },
        };
        know_insn(s, qemu_plugin_get_virtual_ns(m->insns_left));
    }
}

/* If the place is passed, the replay has other accesses than the recorded
 * run. */
void kt_replay_stop_count(const KtHookCall *m)
{
    KtReplayStop *s = m->c->stop;
    bool here, access = m->ev.kind == KT_EV_ACCESS;

    g_mutex_lock(&s->lock);
    kt_event_place_step(&s->now, &m->ev);
    here = s->aim == AIM_EVENT && !s->behind &&
           kt_event_place_compare(s->now, s->target) >= 0;
    if (here && access) {
        know_access(s, m);
    } else if (here) {
        set_aim(s, AIM_NONE);
    }
    g_mutex_unlock(&s->lock);
    if (here && access) {
        qemu_plugin_request_vm_stop();
    } else {
        s->due |= here;
    }
}

/* ---- the commands -------------------------------------------------------- */

static KtEventPlace now(void *opaque)
{
    KtReplayStop *s = opaque;
    KtEventPlace place;

    g_mutex_lock(&s->lock);
    place = s->now;
    g_mutex_unlock(&s->lock);
    return place;
}

static uint64_t us(void *opaque)
{
    return qemu_plugin_get_virtual_ns(0) / 1000;
}

static void stop_at(void *opaque, KtEventPlace place)
{
    KtReplayStop *s = opaque;

    g_mutex_lock(&s->lock);
    s->target = place;
    s->insn.step = KT_GOTO_NONE;
    s->behind = kt_event_place_compare(s->now, place) >= 0;
    set_aim(s, place.event ? AIM_EVENT : AIM_NONE);
    g_mutex_unlock(&s->lock);
}

static bool search(void *opaque, const KtWordSearch *word)
{
    KtReplayStop *s = opaque;

    if (qemu_plugin_vm_is_running()) {
        return false;
    }
    g_mutex_lock(&s->lock);
    s->insn = (KtGotoInsn) {
        .step = KT_GOTO_SEARCHES, .is_word = true, .word = *word,
    };
    s->aim_ns = qemu_plugin_get_virtual_ns(0);
    s->behind = true;
    set_aim(s, AIM_SEARCH);
    g_mutex_unlock(&s->lock);
    return true;
}

static void insn(void *opaque, KtGotoInsn *out)
{
    KtReplayStop *s = opaque;

    g_mutex_lock(&s->lock);
    if (s->insn.step == KT_GOTO_THERE &&
        (uint64_t)qemu_plugin_get_virtual_ns(0) != s->aim_ns) {
        s->insn.step = KT_GOTO_NONE;
    }
    *out = s->insn;
    g_mutex_unlock(&s->lock);
}

static bool has_begin(void *opaque)
{
    const KtReplayStop *s = opaque;

    return s->has_begin;
}

/* ---- VM states ----------------------------------------------------------- */

void kt_replay_stop_pack(KtReplayStop *s, GsOut *p)
{
    if (s) {
        s->has_begin |= !s->now.event && !s->now.access;
        gs_out_varint(p, s->now.event);
        gs_out_varint(p, s->now.access);
        gs_out_varint(p, s->va);
        gs_out_varint(p, s->ns);
        gs_out_varint(p, s->skip);
    }
}

static bool is_behind(const KtReplayStop *s)
{
    return s->aim == AIM_EVENT ?
               kt_event_place_compare(s->now, s->target) >= 0 :
               s->ns >= s->aim_ns;
}

void kt_replay_stop_unpack(KtReplayStop *s, GsBytes *u)
{
    if (s) {
        s->now.event = gs_bytes_varint(u, UINT64_MAX);
        s->now.access = gs_bytes_varint(u, UINT64_MAX);
        s->va = gs_bytes_varint(u, UINT64_MAX);
        s->ns = gs_bytes_varint(u, UINT64_MAX);
        s->skip = gs_bytes_varint(u, UINT_MAX);
        s->nth = 0;
        s->due = false;
        s->behind = is_behind(s);
        if (s->insn.step == KT_GOTO_THERE) {
            s->insn.step = KT_GOTO_NONE;
        }
    }
}

KtGoto kt_capture_stop_replay(KtCapture *c, const char *journal)
{
    KtReplayStop *s = new_stop(c);

    c->shared.stop = s;
    return (KtGoto) {
        .journal = journal, .now = now, .us = us, .stop_at = stop_at,
        .search = search, .insn = insn, .has_begin = has_begin, .opaque = s,
    };
}
