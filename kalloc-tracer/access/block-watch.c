/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Block watch: see block-watch.h. */
#include "kalloc-tracer/access/block-watch.h"

#include "kalloc-tracer/base/record-log.h"
#include "kalloc-tracer/tracer/tracer.h"

/*
 * struct KtBlockWatch - the part
 * @refused: (nullable) why no block can be watched
 * @log: of KtBlockAccess
 * @newest: place of its newest record
 */
struct KtBlockWatch {
    GMutex lock;
    KtTracer *t;
    void (*fn)(void *opaque);
    void *opaque;
    bool any, on, other_boot;
    const char *why_ended, *refused;
    KtBlockWatchSpec spec;
    KtRecordLog log;
    uint64_t accesses;
    KtBlockPlace newest;
};

/* ---- the part ------------------------------------------------------------ */

static void *new_watch(KtBudget *budget)
{
    KtBlockWatch *w = g_new0(KtBlockWatch, 1);

    kt_record_log_init(&w->log, sizeof(KtBlockAccess), budget);
    g_mutex_init(&w->lock);
    return w;
}

static void free_watch(void *part)
{
    KtBlockWatch *w = part;

    kt_record_log_deinit(&w->log);
    g_mutex_clear(&w->lock);
    g_free(w);
}

static void end_locked(KtBlockWatch *w)
{
    if (w->on) {
        w->on = false;
        w->why_ended = "the VM was reset, or another state of it was loaded";
    }
    w->other_boot = true;
}

/* The boot of `ka clear` goes on, and so does the watch. */
static void reset_watch(void *part, KtBootEnd why)
{
    if (why != KT_BOOT_CLEAR) {
        kt_block_watch_end(part);
    }
}

KtBlockWatch *kt_block_watch_of(KtTracer *t)
{
    static const KtBootPart part = {
        .name = "access watch", .new = new_watch, .free = free_watch,
        .reset = reset_watch,
    };
    KtBlockWatch *w = kt_tracer_part(t, &part);

    g_mutex_lock(&w->lock);
    w->t = t;
    g_mutex_unlock(&w->lock);
    return w;
}

void kt_block_watch_on_change(KtBlockWatch *w, void (*fn)(void *opaque),
                              void *opaque)
{
    w->fn = fn;
    w->opaque = opaque;
}

void kt_block_watch_refuse(KtBlockWatch *w, const char *why)
{
    g_mutex_lock(&w->lock);
    w->refused = why;
    g_mutex_unlock(&w->lock);
}

static void changed(const KtBlockWatch *w)
{
    if (w->fn) {
        w->fn(w->opaque);
    }
}

/* ---- the user ------------------------------------------------------------ */

bool kt_block_watch_start(KtTracer *t, const KtBlockWatchSpec *spec,
                          GError **errp)
{
    KtBlockWatch *w = kt_block_watch_of(t);
    bool ok;

    g_mutex_lock(&w->lock);
    if (w->refused) {
        g_set_error_literal(errp, GS_ERROR, GS_ERROR_UNSUPPORTED, w->refused);
        ok = false;
    } else {
        ok = kt_record_log_begin(&w->log, spec->ring, 0, "records", errp);
    }
    if (ok) {
        w->any = w->on = true;
        w->other_boot = false;
        w->why_ended = NULL;
        w->spec = *spec;
        w->accesses = 0;
    }
    g_mutex_unlock(&w->lock);
    if (ok) {
        changed(w);
    }
    return ok;
}

bool kt_block_watch_stop(KtTracer *t)
{
    KtBlockWatch *w = kt_block_watch_of(t);
    bool was_on;

    g_mutex_lock(&w->lock);
    was_on = w->on;
    w->on = false;
    g_mutex_unlock(&w->lock);
    if (was_on) {
        changed(w);
    }
    return was_on;
}

void kt_block_watch_info(KtTracer *t, KtBlockWatchInfo *out)
{
    KtBlockWatch *w = kt_block_watch_of(t);

    g_mutex_lock(&w->lock);
    *out = (KtBlockWatchInfo) {
        .any = w->any, .on = w->on, .why_ended = w->why_ended,
        .other_boot = w->other_boot, .spec = w->spec,
        .records = kt_record_log_count(&w->log),
        .overwritten = w->log.first - w->log.begin,
        .accesses = w->accesses,
    };
    g_mutex_unlock(&w->lock);
}

GArray *kt_block_watch_read(KtTracer *t, uint64_t max)
{
    GArray *out = g_array_new(false, false, sizeof(KtBlockAccess));
    KtBlockWatch *w = kt_block_watch_of(t);
    uint64_t n, missing;

    g_mutex_lock(&w->lock);
    n = MIN(kt_record_log_count(&w->log), max);
    kt_record_log_read(&w->log, w->log.last - n, n, out, &missing);
    g_mutex_unlock(&w->lock);
    return out;
}

/* ---- capture ------------------------------------------------------------- */

bool kt_block_watch_wanted(KtBlockWatch *w, KtBlockWatchSpec *out)
{
    bool on;

    g_mutex_lock(&w->lock);
    on = w->on;
    *out = w->spec;
    g_mutex_unlock(&w->lock);
    return on;
}

void kt_block_watch_end(KtBlockWatch *w)
{
    g_mutex_lock(&w->lock);
    end_locked(w);
    g_mutex_unlock(&w->lock);
}

/* Return true if @a belongs into the ring. After the user chose
 * another block, capture/ may still report accesses to the one before. */
static bool is_wanted(const KtBlockWatch *w, const KtBlockAccess *a)
{
    return w->on && a->va - w->spec.va < w->spec.len;
}

/* Return true if @a is of the record @r of the same place. A record knows
 * whether the allocator called the function, @a does not yet. */
static bool continues(const KtBlockAccess *r, const KtBlockAccess *a)
{
    if (r->cpu != a->cpu ||
        ((r->flags ^ a->flags) & (uint8_t)~KT_BLOCK_ACCESS_ALLOCATOR)) {
        return false;
    }
    return (a->flags & KT_BLOCK_ACCESS_RANGE) ||
           (r->va == a->va && r->len == a->len) || r->va + r->len == a->va;
}

static void extend(KtBlockAccess *r, const KtBlockAccess *a)
{
    uint64_t end = MAX(r->va + r->len, a->va + a->len);

    r->va = MIN(r->va, a->va);
    r->len = end - r->va;
    r->last_us = a->us;
    r->count++;
}

bool kt_block_watch_repeat(KtBlockWatch *w, const KtBlockPlace *place,
                           const KtBlockAccess *a)
{
    KtBlockAccess *r;
    bool same;

    g_mutex_lock(&w->lock);
    r = is_wanted(w, a) ? kt_record_log_newest(&w->log) : NULL;
    same = r && place->pc == w->newest.pc && place->sp == w->newest.sp &&
           continues(r, a);
    if (same) {
        extend(r, a);
        w->accesses++;
        kt_tracer_count(w->t, KT_CNT_ACCESS_WATCHED, 1);
    }
    g_mutex_unlock(&w->lock);
    return same;
}

void kt_block_watch_add(KtBlockWatch *w, const KtBlockPlace *place,
                        const KtBlockAccess *a)
{
    bool on, full = false;

    g_mutex_lock(&w->lock);
    on = is_wanted(w, a);
    if (on) {
        full = kt_record_log_add(&w->log, a);
        w->newest = *place;
        w->accesses++;
    }
    kt_tracer_count(w->t, KT_CNT_ACCESS_WATCHED, on);
    kt_tracer_count(w->t, KT_CNT_ACCESS_WATCH_OVERWRITTEN, full);
    g_mutex_unlock(&w->lock);
}
