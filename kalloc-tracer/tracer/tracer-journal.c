/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the tracer writes into its journal besides events: the kernel's symbols,
 * modules, the status; and when the journal is flushed.
 *
 * Module events are queued by vCPU threads and applied by the consumer, see
 * module-events.h.
 */
#include "kalloc-tracer/tracer/tracer.h"

#include <time.h>

#include "kalloc-tracer/journal/journal-format.h"

#define FLUSH_NS 1000000000ull

bool kt_tracer_has_journal(const KtTracer *t)
{
    return t->journal != NULL;
}

/* ---- kernel and modules ------------------------------------------------- */

/* The journal gets the frame between the same two events as the table of
 * modules gets the module. */
static void apply_event(KtTracer *t, const KtModuleEvent *note)
{
    static const KtFrameKind frame[] = {
        [KT_MODULE_EVENT_LOADED] = KT_FRAME_MODULE,
        [KT_MODULE_EVENT_GONE] = KT_FRAME_MODULE_GONE,
        [KT_MODULE_EVENT_INHERITED] = KT_FRAME_INHERITED,
        [KT_MODULE_EVENT_LOG] = KT_FRAME_LOG,
        [KT_MODULE_EVENT_CALLS] = KT_FRAME_CALLS,
        [KT_MODULE_EVENT_FAULTS] = KT_FRAME_FAULTS,
        [KT_MODULE_EVENT_ALIAS] = KT_FRAME_ALIAS,
    };

    if (note->frame) {
        kt_journal_add_frame(t->journal, frame[note->kind], note->frame);
    }
    if (note->module) {
        kt_modules_apply(kt_tracer_modules(t), note->module, note->kind,
                         &(KtModulesNow) {
            .us = t->last_us, .unseen = !kt_tracer_enabled(t),
            .model = t->model, .stacks = t->stacks, .counters = t->counters });
    }
}

void kt_tracer_apply_module_events(KtTracer *t)
{
    uint64_t done = kt_queue_done(t->queue);
    KtModuleEvent note;

    while (kt_module_events_next(t->module_events) <= done &&
           kt_module_events_pop(t->module_events, done, &note)) {
        apply_event(t, &note);
    }
}

void kt_tracer_replay_module(KtTracer *t, const GsKernel *k, uint64_t module_va,
                             KtModuleEventKind kind)
{
    const KtModuleEvent note = {
        .kind = kind,
        .module = kt_modules_describe(k, module_va,
                                      kind == KT_MODULE_EVENT_GONE),
    };

    pthread_mutex_lock(&t->lock);
    apply_event(t, &note);
    pthread_mutex_unlock(&t->lock);
}

/* If the symbols exceed what a frame may have, only the first byte is written:
 * the file then says that there was a kernel, without its symbols. */
void kt_tracer_save_kernel(KtTracer *t, const GsKernel *k, bool found)
{
    GByteArray *data;

    if (!t->journal) {
        return;
    }
    data = g_byte_array_new();
    gs_out_u8(&GS_OUT(data), found);
    gs_kernel_save(k, data);
    if (data->len > KT_SECTION_MAX) {
        g_byte_array_set_size(data, 1);
    }
    kt_tracer_lock_drained(t);
    kt_journal_add_frame(t->journal, KT_FRAME_KERNEL, data);
    pthread_mutex_unlock(&t->lock);
}

/* Returns: (owned) the frame; NULL without a journal, or if the module is
 * larger than a frame may be. */
static GByteArray *module_frame(const KtTracer *t, const GsKernel *k,
                                uint64_t module_va)
{
    g_autoptr(GByteArray) data = t->journal ? g_byte_array_new() : NULL;

    if (!data || !gs_kernel_save_module(k, module_va, data) ||
        data->len > KT_SECTION_MAX) {
        return NULL;
    }
    return g_steal_pointer(&data);
}

static GByteArray *gone_frame(const KtTracer *t, uint64_t module_va)
{
    GByteArray *data = t->journal ? g_byte_array_new() : NULL;

    if (data) {
        gs_out_u64(&GS_OUT(data), module_va);
    }
    return data;
}

/* Describing a module needs time. So the place is read now:
 * after all events that other vCPUs pushed meanwhile. */
static void add_event(KtTracer *t, KtModuleEvent note)
{
    if (note.module || note.frame) {
        note.after = kt_queue_reserved(t->queue);
        kt_module_events_add(t->module_events, &note);
    }
}

void kt_tracer_settle_journal(KtTracer *t)
{
    if (t->journal && t->config.repeatable) {
        kt_tracer_lock_drained(t);
        kt_journal_settle(t->journal);
        pthread_mutex_unlock(&t->lock);
    }
}

void kt_tracer_save_frame(KtTracer *t, KtModuleEventKind kind,
                          GByteArray *frame)
{
    add_event(t, (KtModuleEvent) { .kind = kind, .frame = frame });
}

void kt_tracer_save_module(KtTracer *t, const GsKernel *k, uint64_t module_va)
{
    add_event(t, (KtModuleEvent) { .module = kt_modules_describe(
                                      k, module_va, false),
                                  .frame = module_frame(t, k, module_va) });
}

/* Unloaded modules are written, too: stacks of old blocks name them. */
static GByteArray *inherited_frame(const KtTracer *t, const GsKernel *k,
                                   unsigned i, bool live)
{
    g_autoptr(GByteArray) data = t->journal ? g_byte_array_new() : NULL;

    if (!data) {
        return NULL;
    }
    gs_out_u8(&GS_OUT(data), live);
    if (!gs_kernel_save_nth_module(k, i, data) || data->len > KT_SECTION_MAX) {
        return NULL;
    }
    return g_steal_pointer(&data);
}

void kt_tracer_inherit_modules(KtTracer *t, const GsKernel *k)
{
    GsModule mod;

    for (unsigned i = 0; gs_kernel_nth_module(k, i, &mod); i++) {
        add_event(t, (KtModuleEvent) {
                        .kind = KT_MODULE_EVENT_INHERITED,
                        .module = mod.live ? kt_modules_describe(k, mod.va,
                                                                 false) : NULL,
                        .frame = inherited_frame(t, k, i, mod.live) });
    }
}

void kt_tracer_drop_module(KtTracer *t, GsKernel *k, uint64_t module_va)
{
    GsModule mod;

    if (!gs_kernel_module(k, module_va, &mod)) {
        return;
    }
    add_event(t, (KtModuleEvent) { .kind = KT_MODULE_EVENT_GONE,
                                  .module = kt_modules_describe(
                                      k, module_va, true),
                                  .frame = gone_frame(t, module_va) });
    gs_kernel_drop_module(k, module_va);
}

/* ---- status ------------------------------------------------------------- */

static bool same_bytes(const GByteArray *a, const GByteArray *b)
{
    return a && a->len == b->len && !memcmp(a->data, b->data, a->len);
}

/* Clear the counters that depend on the host's speed. */
static void clear_host_counters(KtStats *stats)
{
    for (unsigned i = 0; i < KT_CNT__COUNT; i++) {
        const char *name = kt_counter_name(i);

        if (g_str_has_prefix(name, "cost.") ||
            g_str_has_prefix(name, "check.")) {
            stats->counter[i] = 0;
        }
    }
}

/* kt_query_begin() flushes the events first: packing them changes counters, and
 * the status has to contain their final values. */
void kt_tracer_save_status(KtTracer *t, const KtStatus *s)
{
    g_autoptr(GByteArray) data = NULL;
    KtStats stats;

    if (!t->journal) {
        return;
    }
    data = g_byte_array_new();
    kt_query_begin(t);
    kt_query_stats(t, &stats);
    if (t->config.repeatable) {
        clear_host_counters(&stats);
    }
    kt_status_put(&GS_OUT(data), s, &stats);
    if (!same_bytes(t->status, data)) {
        kt_journal_add_frame(t->journal, KT_FRAME_STATUS,
                             g_byte_array_ref(data));
        kt_journal_flush(t->journal, true);
        if (t->status) {
            g_byte_array_unref(t->status);
        }
        t->status = g_steal_pointer(&data);
    }
    kt_query_end(t);
}

/* ---- time --------------------------------------------------------------- */

void kt_tracer_on_second(KtTracer *t, void (*fn)(void *opaque), void *opaque)
{
    t->on_second = fn;
    t->on_second_opaque = opaque;
}

static uint64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* Flush the journal if a second has passed. Return true if it was flushed. If
 * the lock is busy, try again at the next tick. */
static bool flush_if_due(KtTracer *t)
{
    uint64_t now = now_ns();
    bool due = false;

    if (!t->journal || now - t->flushed_at < FLUSH_NS ||
        pthread_mutex_trylock(&t->lock)) {
        return false;
    }
    if (now - t->flushed_at >= FLUSH_NS) {
        t->flushed_at = now;
        kt_journal_flush(t->journal, false);
        due = true;
    }
    pthread_mutex_unlock(&t->lock);
    return due;
}

void kt_tracer_tick(KtTracer *t)
{
    if (!t->config.repeatable && flush_if_due(t) && t->on_second) {
        t->on_second(t->on_second_opaque);
    }
}

void kt_tracer_end_journal(KtTracer *t)
{
    if (t->journal) {
        kt_query_begin(t);
        kt_journal_end(t->journal);
        kt_query_end(t);
    }
}
