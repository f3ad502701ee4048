/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ka events: list the recorded events of a journal in their order.
 *
 * Called through mc_run() of the program `ka`; a running VM keeps no events.
 * The file is read twice: first for its symbols only, because the address on
 * the command line may be a symbol, then for the listing.
 */
#include "monitor-cmds/commands/commands.h"
#include "monitor-cmds/output/block-row.h"
#include "monitor-cmds/output/log-row.h"

#include <stdio.h>
#include <string.h>

/**
 * struct Events - state of a listing
 * @starts: start addresses of live blocks that overlap the range. A free event
 *          has only the block's start, which may be outside of the range
 */
typedef struct Events {
    McOut *out;
    const McArgs *args;
    KtReplay *replay;
    GHashTable *starts;
    uint64_t shown, more;
} Events;

MC_OBJECTS(mc_events_objects, &mc_event_object, &mc_control_object);

static uint64_t last_of(const KtEvent *ev)
{
    uint64_t len = MAX(ev->size, ev->actual);

    return len > 1 ? ev->va + MIN(len - 1, UINT64_MAX - ev->va) : ev->va;
}

static bool touches(const McRange *r, const KtEvent *ev)
{
    uint64_t last = ev->kind == KT_EV_ALLOC || ev->kind == KT_EV_RESIZE ||
                    ev->family == KT_FAMILY_PAGES ? last_of(ev) : ev->va;

    return ev->va <= r->hi && last >= r->lo;
}

static void remember(GHashTable *starts, uint64_t va)
{
    uint64_t *key = g_new(uint64_t, 1);

    *key = va;
    g_hash_table_add(starts, key);
}

static bool in_range(Events *e, const KtEvent *ev)
{
    bool hit = touches(&e->args->va, ev);

    if (!e->args->has_va || ev->kind == KT_EV_GAP) {
        return true;
    }
    if (ev->kind == KT_EV_ALLOC && hit) {
        remember(e->starts, ev->va);
    } else if (ev->kind == KT_EV_ALLOC) {
        g_hash_table_remove(e->starts, &ev->va);
    } else if (ev->kind == KT_EV_FREE) {
        hit |= g_hash_table_remove(e->starts, &ev->va);
    } else {
        hit |= g_hash_table_contains(e->starts, &ev->va);
    }
    return hit;
}

static bool in_time(const Events *e, uint64_t us)
{
    return kt_block_spec_time(&e->args->filter.spec, us);
}

static bool on_event(void *opaque, const KtEvent *ev)
{
    Events *e = opaque;

    if (!in_range(e, ev) || !in_time(e, ev->us)) {
        return true;
    }
    if (e->shown == e->args->limit) {
        e->more++;
        return true;
    }
    if (e->out->names) {
        e->out->symbols = kt_replay_kernel(e->replay);
    }
    mc_print_event(e->out, ev, NULL);
    e->shown++;
    return !e->out->closed;
}

static const char *const control_names[] = {
    [KT_REPLAY_RESET] = "reset", [KT_REPLAY_CLEAR] = "clear",
    [KT_REPLAY_COMPLETE] = "complete", [KT_REPLAY_ENABLED] = "enabled",
    [KT_REPLAY_GAP] = "hole", [KT_REPLAY_LOAD] = "load",
};

static bool remember_live(const KtBlock *b, void *opaque)
{
    if (b->state == KT_BLOCK_ALLOCATED) {
        remember(opaque, b->va);
    }
    return true;
}

/* Add the blocks of a loaded VM snapshot to @starts: their allocations are not
 * among the events that follow. */
static void add_loaded(Events *e)
{
    KtTracer *t = kt_replay_tracer(e->replay);
    const McRange *r = &e->args->va;

    if (e->args->has_va) {
        kt_query_begin(t);
        kt_query_range(t, r->lo, r->hi, remember_live, e->starts);
        kt_query_end(t);
    }
}

static bool on_control(void *opaque, KtReplayControl control, uint64_t value)
{
    Events *e = opaque;

    if (control == KT_REPLAY_RESET || control == KT_REPLAY_CLEAR ||
        control == KT_REPLAY_LOAD) {
        g_hash_table_remove_all(e->starts);
    }
    if (control == KT_REPLAY_LOAD) {
        add_loaded(e);
    }
    if (in_time(e, kt_replay_info(e->replay)->read_us) &&
        e->shown < e->args->limit) {
        mc_print_control(e->out, control_names[control], value);
    }
    return !e->out->closed;
}

/* Lines that a program wrote are the test's own marks; the kernel's lines are
 * not in their place among the events. */
static bool on_log(void *opaque, const KtLogLine *line, const void *text)
{
    Events *e = opaque;
    McLogRow row = { .line = line, .text = text };
    char comm[17];

    if (!line->facility || !in_time(e, line->us)) {
        return true;
    }
    if (e->shown == e->args->limit) {
        e->more++;
        return true;
    }
    mc_log_row(kt_replay_tracer(e->replay), &row, comm);
    mc_print_log_event(e->out, &row);
    e->shown++;
    return !e->out->closed;
}

/* Warn on stderr that the end of the file is missing. The warning is not
 * repeated if reading the symbols has printed it already (@warned): that pass
 * stops before the first frame of events. */
static void warn_damage(const KtReplayInfo *info, const char *path,
                        const char *warned)
{
    g_autofree char *n = NULL;

    if (!info->damage || info->damage == warned) {
        return;
    }
    n = info->missing_known ?
        g_strdup_printf("%s%" PRIu64 " events", info->missing_least ?
                        "at least " : "", info->missing_events) :
        g_strdup("an unknown number of events");
    fprintf(stderr, "ka: %s: %s: the last %" PRIu64 " bytes and %s are "
            "missing; events are listed up to %" PRIu64 "us\n", path,
            info->damage, info->missing_bytes, n, info->read_us);
}

static void list(McOut *out, const McArgs *args, KtReplay *replay)
{
    const McContext *ctx = out->ctx;
    McContext here = *ctx;
    g_autoptr(GHashTable) starts = g_hash_table_new_full(
        gs_number_hash, g_int64_equal, g_free, NULL);
    Events e = {
        .out = out, .args = args, .replay = replay, .starts = starts,
    };
    const KtReplayPlan plan = {
        .until_us = args->filter.spec.has_time ?
                    MIN(args->filter.spec.until, ctx->until_us) : ctx->until_us,
        .since_us = args->filter.spec.has_time && !args->has_va ?
                    args->filter.spec.since : 0,
        .load = args->has_va,
        .event = on_event, .control = on_control, .log = on_log,
        .opaque = &e,
    };
    const char *warned = kt_replay_info(replay)->damage;

    here.tracer = kt_replay_tracer(replay);
    out->ctx = &here;
    kt_replay_run(replay, &plan);
    out->ctx = ctx;
    if (e.more) {
        mc_more(out, e.more);
    }
    if (!e.shown) {
        mc_remark(out, "no events");
    }
    warn_damage(kt_replay_info(replay), ctx->journal, warned);
}

/* ---- the command --------------------------------------------------------- */

bool mc_cmd_events(McOut *out, const McArgs *args, GError **errp)
{
    g_autoptr(KtReplay) replay = NULL;

    if (!out->ctx->journal) {
        return mc_fail_unknown(errp, "only a journal contains events: ka -f "
                               "FILE events");
    }
    replay = kt_replay_open(out->ctx->journal, errp);
    if (!replay) {
        return false;
    }
    list(out, args, replay);
    return true;
}
