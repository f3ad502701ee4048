/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Replay stop: see replay-stop.h. */
#include "kalloc-tracer/capture/replay-stop.h"

#include "kalloc-tracer/capture/record-internal.h"
#include "kalloc-tracer/capture/seam.h"

/** struct Call - a callback of the instruction at @va, wrapped */
typedef struct Call {
    KtReplayStop *stop;
    uint64_t va;
    qemu_plugin_vcpu_udata_cb_t fn;
    void *udata;
} Call;

/**
 * struct KtReplayStop - when to stop
 * @lock: protects @now and @target
 * @target: .event 0: nowhere
 * @due: the callback that runs has made the event of @target
 * @va, @ns: instruction of the last callback, and when it began
 * @nth: number of this callback among those of the instruction
 * @skip: if the VM stopped there: so many of them have run
 * @has_begin: a VM state was saved before the first event
 * @calls: Call, each once: an instruction can be translated often
 */
struct KtReplayStop {
    GMutex lock;
    KtEventPlace now, target;
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

KtReplayStop *kt_replay_stop_new(void)
{
    KtReplayStop *s = g_new0(KtReplayStop, 1);

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

static void on_call(unsigned vcpu_index, void *udata)
{
    const Call *c = udata;
    KtReplayStop *s = c->stop;

    if (has_run(s, c)) {
        return;
    }
    c->fn(vcpu_index, c->udata);
    if (G_UNLIKELY(s->due)) {
        s->due = false;
        s->skip = s->nth;
        s->nth = 0;
        kt_leave_call((KtLeave) { KT_LEAVE_STOP, c->va });
    }
}

void kt_replay_stop_wrap(KtReplayStop *s, uint64_t va,
                         qemu_plugin_vcpu_udata_cb_t *fn, void **udata)
{
    const Call call = { s, va, *fn, *udata };
    Call *c = g_hash_table_lookup(s->calls, &call);

    if (!c) {
        c = g_memdup2(&call, sizeof(call));
        g_hash_table_add(s->calls, c);
    }
    *fn = on_call;
    *udata = c;
}

/* ---- events -------------------------------------------------------------- */

/* The callback of an access cannot leave the block. If the place is passed,
 * the replay has other accesses than the recorded run. */
void kt_replay_stop_count(KtReplayStop *s, const KtEvent *ev)
{
    bool here;

    g_mutex_lock(&s->lock);
    kt_event_place_step(&s->now, ev);
    here = s->target.event && kt_event_place_compare(s->now, s->target) >= 0;
    if (here) {
        s->target.event = 0;
    }
    g_mutex_unlock(&s->lock);
    if (here && ev->kind == KT_EV_ACCESS) {
        qemu_plugin_request_vm_stop();
    } else {
        s->due |= here;
    }
}

static KtEventPlace now(void *opaque)
{
    KtReplayStop *s = opaque;
    KtEventPlace place;

    g_mutex_lock(&s->lock);
    place = s->now;
    g_mutex_unlock(&s->lock);
    return place;
}

static void stop_at(void *opaque, KtEventPlace place)
{
    KtReplayStop *s = opaque;

    g_mutex_lock(&s->lock);
    s->target = place;
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
        s->target.event = 0;
    }
}

KtGoto kt_capture_stop_replay(KtCapture *c, const char *journal)
{
    KtReplayStop *s = kt_replay_stop_new();

    c->shared.stop = s;
    return (KtGoto) {
        .journal = journal, .now = now, .stop_at = stop_at,
        .has_begin = has_begin, .opaque = s,
    };
}
