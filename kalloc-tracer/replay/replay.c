/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Replay: read the frames of a journal, one after the other, into a tracer. See
 * kt-replay.h.
 *
 * The program ka calls it, on one thread. The journal's ids of stacks, tasks
 * and caches become ids of the tracer (replay-ids.c). A frame that makes no
 * sense ends the replay, as a damaged frame does: queries answer as of the
 * moment before that frame.
 */
#include "kalloc-tracer/calls/calls.h"
#include "kalloc-tracer/replay/replay-internal.h"
#include "kalloc-tracer/snapshot/snapshot.h"
#include "kalloc-tracer/tracer/tracer.h"

#include <string.h>

#define UNPACKED_RATIO 256  /* bytes of VM states, which are packed, kernels
                             * and modules together, a byte of the file */

/* ---- frames of events --------------------------------------------------- */

/* Return how many of the next events are not too late (plan->until_us). The
 * first event that is too late ends the replay. */
static unsigned wanted(KtReplay *r, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (r->ev[i].us > r->plan->until_us) {
            r->stopped = r->info.reached = true;
            return i;
        }
    }
    return n;
}

static unsigned report_events(KtReplay *r, unsigned n)
{
    for (unsigned i = 0; r->plan->event && i < n; i++) {
        if (!r->plan->event(r->plan->opaque, &r->ev[i])) {
            r->stopped = true;
            return i;
        }
    }
    return n;
}

/* A load of a snapshot is a frame of its own. So all events of one frame are
 * from one time of the VM's life, and the maximum is the newest. */
static void count_read(KtReplay *r, unsigned n)
{
    uint64_t us = 0;

    for (unsigned i = 0; i < n; i++) {
        r->last_seq = r->ev[i].seq ? r->ev[i].seq : r->last_seq;
        us = MAX(us, r->ev[i].us);
    }
    r->info.read_us = n ? us : r->info.read_us;
    r->info.read_events += n;
}

static bool read_events(KtReplay *r, const KtFrame *f)
{
    GsBytes col[KT_COL__COUNT];
    unsigned n;

    if (r->sections.n != KT_COL__COUNT) {
        return false;
    }
    for (unsigned i = 0; i < KT_COL__COUNT; i++) {
        const GByteArray *section = r->sections.data[i];

        if (!section) {
            return false;
        }
        col[i] = gs_bytes(section->data, section->len);
    }
    if (!kt_event_codec_decode(col, f->n, r->ev)) {
        return false;
    }
    for (unsigned i = 0; i < f->n; i++) {
        if (!kt_replay_ids_translate(r->ids, &r->ev[i])) {
            return false;
        }
    }
    n = report_events(r, wanted(r, f->n));
    if (r->plan->apply) {
        kt_replay_apply(r, n);
    }
    count_read(r, n);
    return true;
}

/* ---- other frames ------------------------------------------------------- */

static bool report_control(KtReplay *r, KtReplayControl control, uint64_t value)
{
    if (r->plan->control &&
        !r->plan->control(r->plan->opaque, control, value)) {
        r->stopped = true;
        return false;
    }
    return true;
}

static void end_boot(KtReplay *r)
{
    kt_calls_end_boot(kt_tracer_calls(r->tracer));
    r->kernel_found = false;
}

static bool read_control(KtReplay *r, GsBytes *in)
{
    uint32_t control = gs_bytes_u32(in);
    uint32_t value = gs_bytes_u32(in);

    if (in->failed || control < KT_CONTROL_RESET ||
        control > KT_CONTROL_ENABLED) {
        return false;
    }
    if (report_control(r, KT_REPLAY_RESET + (control - KT_CONTROL_RESET),
                       value) &&
        r->plan->apply) {
        kt_tracer_replay_control(r->tracer, control, value);
    }
    if (control == KT_CONTROL_RESET) {
        end_boot(r);
    }
    r->pause_us = control <= KT_CONTROL_CLEAR ? 0 : r->pause_us;
    return true;
}

/* Events are missing, because the disk was full: apply a gap. Blocks that were
 * freed in the gap still look live, blocks that were allocated in it are
 * unknown. A reset or clear writes the frame again with 0 events. */
static bool read_gap(KtReplay *r, GsBytes *in)
{
    const KtEvent gap = { .kind = KT_EV_GAP, .us = r->info.read_us };
    uint64_t n = gs_bytes_u64(in);
    uint64_t last;

    gs_bytes_u64(in);           /* the first of them */
    last = gs_bytes_u64(in);
    r->last_seq = MAX(r->last_seq, last);
    if (in->failed) {
        return false;
    }
    r->info.gap_events += n;
    if ((!n || report_control(r, KT_REPLAY_GAP, n)) && r->plan->apply) {
        kt_tracer_replay(r->tracer, &gap, 1);
    }
    return true;
}

/* Bound what all frames of the file unpack to, together: no writer compresses
 * more than UNPACKED_RATIO to 1. The limits of single frames do not bound the
 * sum. */
static bool may_unpack(KtReplay *r, const GsBytes *in)
{
    r->unpacked += gs_bytes_left(in);
    return r->unpacked <= r->info.bytes * UNPACKED_RATIO;
}

/* If the symbols cannot be used, addresses have no names; that is no damage. */
static bool read_kernel(KtReplay *r, GsBytes *in)
{
    bool found = gs_bytes_u8(in);

    if (in->failed || !may_unpack(r, in)) {
        return false;
    }
    g_clear_pointer(&r->kernel, gs_kernel_free);
    r->kernel_found = found;
    r->kernel_given |= !found;
    if (gs_bytes_left(in)) {
        r->kernel = gs_kernel_new_saved(gs_bytes_at(in), gs_bytes_left(in),
                                    NULL);
    }
    kt_tracer_find_backing(r->tracer, found ? r->kernel : NULL);
    return r->kernel || !gs_bytes_left(in);
}

/* An inherited module begins with a byte: 1 if it is still loaded. If it is
 * not, its report belongs to the time before the snapshot, and is not made
 * again. */
static bool read_module(KtReplay *r, GsBytes *in, KtModuleEventKind kind)
{
    bool live = kind != KT_MODULE_EVENT_INHERITED || gs_bytes_u8(in);
    GsBytes head = *in;
    uint64_t va = gs_bytes_u64(&head);

    if (!r->kernel) {
        return true;
    }
    if (!may_unpack(r, in) ||
        !gs_kernel_load_module(r->kernel, gs_bytes_at(in),
                               gs_bytes_left(in), NULL)) {
        return false;
    }
    if (live) {
        kt_replay_report_module(r, kind, va);
        kt_tracer_replay_module(r->tracer, r->kernel, va, kind);
    } else {
        gs_kernel_drop_module(r->kernel, va);
    }
    return true;
}

static bool read_module_gone(KtReplay *r, GsBytes *in)
{
    uint64_t va = gs_bytes_u64(in);

    if (r->kernel) {
        kt_replay_report_module(r, KT_MODULE_EVENT_GONE, va);
        kt_tracer_replay_module(r->tracer, r->kernel, va, KT_MODULE_EVENT_GONE);
        gs_kernel_drop_module(r->kernel, va);
    }
    return !in->failed;
}

static void set_counters(KtReplay *r)
{
    for (unsigned i = 0; i < KT_CNT__COUNT; i++) {
        kt_tracer_count(r->tracer, i, r->status->counter[i] -
                        kt_tracer_counter(r->tracer, i));
    }
}

static bool read_status(KtReplay *r, GsBytes *in)
{
    KtStoredStatus *s = kt_status_get(in);

    if (!s) {
        return false;
    }
    kt_status_free(r->status);
    r->status = s;
    r->kernel_found = s->kernel_found;
    set_counters(r);
    r->tracer->recorded = (KtRecordedStats) { .any = true, .stats = s->stats };
    return true;
}

/* The time of the snapshot may be earlier than that of the events before. */
static bool install(KtReplay *r)
{
    GsBytes all = { r->checkpoint->data, r->checkpoint->len };

    if (!kt_snapshot_load(r->tracer, gs_stream_from_bytes, &all, NULL)) {
        return false;
    }
    r->info.read_us = r->tracer->last_us;
    return true;
}

/* The journal has a new kernel frame when the kernel of the snapshot is found.
 * A kernel that was given as a file stays. */
static void drop_kernel(KtReplay *r)
{
    end_boot(r);
    if (!r->kernel_given) {
        g_clear_pointer(&r->kernel, gs_kernel_free);
    }
}

static bool load_checkpoint(KtReplay *r)
{
    bool ok = !(r->plan->apply || r->plan->load) || install(r);

    drop_kernel(r);
    g_byte_array_set_size(r->checkpoint, 0);
    r->pause_us = 0;
    return ok && (report_control(r, KT_REPLAY_LOAD, 0) || true);
}

static bool read_checkpoint(KtReplay *r, GsBytes *in)
{
    bool more = gs_bytes_u8(in);

    if (in->failed || !may_unpack(r, in) ||
        r->checkpoint->len + gs_bytes_left(in) > KT_CHECKPOINT_MAX) {
        return false;
    }
    g_byte_array_append(r->checkpoint, gs_bytes_at(in), gs_bytes_left(in));
    return more || load_checkpoint(r);
}

static bool read_mark(KtReplay *r, GsBytes *in)
{
    bool set = gs_bytes_u8(in);
    const char *name = gs_bytes_str(in, KT_MARK_NAME_MAX, NULL);

    if (!name) {
        return false;
    }
    if (!r->plan->apply) {
        return true;
    }
    if (set) {
        kt_tracer_set_mark(r->tracer, name, NULL);
    } else {
        kt_tracer_drop_mark(r->tracer, name);
    }
    return true;
}

static bool read_frame(KtReplay *r, const KtFrame *f)
{
    const GByteArray *first = r->sections.n ? r->sections.data[0] : NULL;
    GsBytes in = first ? gs_bytes(first->data, first->len) :
                         gs_bytes(NULL, 0);

    switch (f->kind) {
    case KT_FRAME_EVENTS:
        return read_events(r, f);
    case KT_FRAME_DEFS:
        return kt_replay_ids_define(r->ids, r->kernel, &in);
    case KT_FRAME_HOOKS:
        return kt_replay_ids_hooks(kt_tracer_hooks(r->tracer), &in);
    case KT_FRAME_KERNEL:
        return read_kernel(r, &in);
    case KT_FRAME_MODULE:
        return read_module(r, &in, KT_MODULE_EVENT_LOADED);
    case KT_FRAME_INHERITED:
        return read_module(r, &in, KT_MODULE_EVENT_INHERITED);
    case KT_FRAME_MODULE_GONE:
        return read_module_gone(r, &in);
    case KT_FRAME_CONTROL:
        return read_control(r, &in);
    case KT_FRAME_STATUS:
        return read_status(r, &in);
    case KT_FRAME_GAP:
        return read_gap(r, &in);
    case KT_FRAME_CHECKPOINT:
        return read_checkpoint(r, &in);
    case KT_FRAME_MARK:
        return read_mark(r, &in);
    case KT_FRAME_CALLS:
    case KT_FRAME_FAULTS:
    case KT_FRAME_LOG:
    case KT_FRAME_ALIAS:
        return may_unpack(r, &in) && kt_replay_records_read(r, f->kind, &in);
    default:
        return f->kind >= KT_FRAME_MAY_SKIP;
    }
}

/* ---- running ------------------------------------------------------------ */

static bool may_skip(const KtReplay *r, const KtFrame *f)
{
    return !r->plan->apply && f->kind == KT_FRAME_EVENTS &&
           f->last_us < r->plan->since_us;
}

/* Skip a frame of events. If its last event is too late, so is all that
 * follows. */
static void skip(KtReplay *r, const KtFrame *f)
{
    r->last_seq = f->last_seq;
    r->info.read_us = f->last_us;
    if (f->last_us > r->plan->until_us) {
        r->stopped = r->info.reached = true;
    }
}

/* The writer promised events up to a number. Those that were not read are
 * lost. */
static void set_lost(KtReplay *r, uint64_t promised)
{
    unsigned n = kt_frame_reader_n(r->reader);

    if (n) {
        promised = MAX(promised,
                       kt_frame_reader_frame(r->reader, n - 1)->last_seq);
    }
    r->info.missing_events = promised - MIN(promised, r->last_seq);
}

/* End the replay before @f, which cannot be used. */
static void end_at(KtReplay *r, const KtFrame *f, const char *damage)
{
    const KtJournalSpan *span = kt_frame_reader_span(r->reader);

    r->info.damage = damage;
    r->info.ended = false;
    r->info.missing_bytes = span->size - f->offset;
    r->info.missing_known = span->live_known;
    set_lost(r, span->live.promised);
    r->stopped = true;
}

static void run_frame(KtReplay *r, unsigned i)
{
    const KtFrame *f = kt_frame_reader_frame(r->reader, i);

    if (f->kind == KT_FRAME_EVENTS && f->first_us > r->plan->until_us) {
        r->stopped = r->info.reached = true;
        return;
    }
    if (may_skip(r, f)) {
        skip(r, f);
        return;
    }
    if (!kt_frame_reader_load(r->reader, i, &r->sections)) {
        end_at(r, f, "a frame is damaged");
    } else if (f->kind > KT_FRAME_CHECKPOINT && f->kind < KT_FRAME_MAY_SKIP) {
        end_at(r, f, "a frame is of a kind that this ka does not know");
    } else if (!read_frame(r, f)) {
        end_at(r, f, "a frame makes no sense");
    }
    if (r->plan->progress) {
        r->plan->progress(r->plan->opaque, f->offset + f->stored,
                          r->info.bytes);
    }
}

void kt_replay_run(KtReplay *r, const KtReplayPlan *plan)
{
    unsigned n = kt_frame_reader_n(r->reader);

    r->plan = plan;
    for (unsigned i = 0; i < n && !r->stopped; i++) {
        run_frame(r, i);
    }
    r->plan = NULL;
}

/* ---- life --------------------------------------------------------------- */

static void add_up(KtReplay *r)
{
    unsigned n = kt_frame_reader_n(r->reader);

    r->info.first_us = UINT64_MAX;
    for (unsigned i = 0; i < n; i++) {
        const KtFrame *f = kt_frame_reader_frame(r->reader, i);

        if (f->kind == KT_FRAME_EVENTS) {
            r->info.events += f->n;
            r->info.first_us = MIN(r->info.first_us, f->first_us);
            r->info.last_us = MAX(r->info.last_us, f->last_us);
        }
        r->last_seq = MAX(r->last_seq, f->last_seq);
    }
    r->info.first_us = MIN(r->info.first_us, r->info.last_us);
    r->info.frames = n;
}

static void fill_info(KtReplay *r)
{
    const KtJournalSpan *span = kt_frame_reader_span(r->reader);

    add_up(r);
    r->info.begun = kt_frame_reader_head(r->reader)->begun;
    r->info.bytes = span->size;
    r->info.ended = span->ended;
    r->info.damage = span->damage;
    r->info.missing_bytes = span->size - span->good;
    r->info.missing_known = span->live_known;
    r->info.missing_least = !span->ended;
    if (!span->ended) {
        set_lost(r, span->live.promised);
    }
    r->last_seq = 0;
}

KtReplay *kt_replay_open(const char *path, GError **errp)
{
    KtConfig config = KT_CONFIG_DEFAULT;
    g_autoptr(KtReplay) r = g_new0(KtReplay, 1);
    const KtHead *head;

    r->reader = kt_frame_reader_open(path, errp);
    if (!r->reader) {
        return NULL;
    }
    head = kt_frame_reader_head(r->reader);
    config.history_bytes = head->history_bytes;
    config.map_bytes = head->map_bytes;
    config.max_stacks = head->max_stacks;
    r->tracer = kt_tracer_new(&config, errp);
    r->ev = g_new(KtEvent, KT_RUN_EVENTS);
    r->checkpoint = g_byte_array_new();
    fill_info(r);
    r->ids = kt_replay_ids_new(r->tracer, r->info.bytes);
    return g_steal_pointer(&r);
}

void kt_replay_free(KtReplay *r)
{
    if (!r) {
        return;
    }
    kt_frame_reader_free(r->reader);
    kt_replay_ids_free(r->ids);
    kt_sections_clear(&r->sections);
    g_free(r->ev);
    kt_tracer_free(r->tracer);
    gs_kernel_free(r->kernel);
    kt_status_free(r->status);
    g_clear_pointer(&r->checkpoint, g_byte_array_unref);
    g_free(r);
}

const KtReplayInfo *kt_replay_info(const KtReplay *r)
{
    return &r->info;
}

KtTracer *kt_replay_tracer(KtReplay *r)
{
    return r->tracer;
}

const GsKernel *kt_replay_kernel(const KtReplay *r)
{
    return r->kernel;
}

bool kt_replay_set_types(KtReplay *r, const GsTypesFile *types, GError **errp)
{
    const char *theirs = gs_types_file_banner(types);
    const char *ours = r->kernel ? gs_kernel_banner(r->kernel) : NULL;

    if (!r->kernel || (ours && theirs && strcmp(ours, theirs))) {
        g_set_error(errp, GS_ERROR, GS_ERROR_UNSUPPORTED, "%s%s", ours ?
                    "these types are of another kernel than the journal: " :
                    "the journal has no kernel", ours ? theirs : "");
        return false;
    }
    gs_kernel_set_types(r->kernel, types);
    return true;
}

static bool saved_hook(void *opaque, unsigned i, KtHookStatus *out)
{
    const KtReplay *r = opaque;

    if (i >= r->status->n_hooks || !r->status->hook[i].name) {
        return false;
    }
    *out = r->status->hook[i];
    return true;
}

void kt_replay_status(KtReplay *r, KtStatus *out)
{
    *out = (KtStatus) {
        .kernel_found = r->kernel_found,
        .why_no_kernel = r->status ? r->status->why_no_kernel : NULL,
    };
    if (r->status) {
        out->n_hooks = r->status->n_hooks;
        out->hook = saved_hook;
        out->opaque = r;
    }
}
