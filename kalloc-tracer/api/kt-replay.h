/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Replay: read a journal's file into a tracer, which answers the queries that
 * the running tracer would have answered then.
 *
 *     r = kt_replay_open(path, &err);
 *     kt_replay_run(r, &(KtReplayPlan) { .until_us = at, .apply = true });
 *     kt_query_begin(kt_replay_tracer(r)); ...
 *
 * One thread for each KtReplay. The file is untrusted: damage ends the reading
 * and is reported in KtReplayInfo.
 */
#ifndef KT_API_REPLAY_H
#define KT_API_REPLAY_H

#include "kalloc-tracer/api/kt-journal.h"
#include "kalloc-tracer/api/kt-log.h"

typedef struct KtReplay KtReplay;

/**
 * struct KtReplayInfo - what a file contains, and what is missing
 * @begun: when the file was begun: the host's clock, seconds since 1970. 0: not
 *         known, because QEMU recorded or replayed the run
 * @bytes: size of the file
 * @frames, @events: whole frames, and events in them, as the headers say
 * @first_us, @last_us: times of these events
 * @ended: the VM ended in order, so nothing is missing
 * @damage: (nullable) one line: why the rest of the file cannot be read
 * @missing_bytes: bytes at the end of the file that cannot be read
 * @missing_known: @missing_events is known
 * @missing_least: @missing_events is a lower bound: the file was not ended
 * @missing_events: events that the tracer meant to write, and that cannot be
 *                  read
 * @gap_events: events that were not written while the disk was full, as far as
 *              the file was read
 * @read_events: events that kt_replay_run() has read
 * @read_us: time of the last of them. It may go back: if a VM state was loaded
 *           after that event, it is the time of that state
 * @reached: the time that the plan asked for was reached
 */
typedef struct KtReplayInfo {
    uint64_t begun;
    uint64_t bytes;
    uint64_t frames, events;
    uint64_t first_us, last_us;
    bool ended;
    const char *damage;
    uint64_t missing_bytes;
    bool missing_known, missing_least;
    uint64_t missing_events;
    uint64_t gap_events;
    uint64_t read_events;
    uint64_t read_us;
    bool reached;
} KtReplayInfo;

/** What a file contains besides events, in its place among them. */
typedef enum KtReplayControl {
    KT_REPLAY_RESET,        /* a new boot */
    KT_REPLAY_CLEAR,        /* `ka clear` */
    KT_REPLAY_COMPLETE,     /* kt_tracer_set_complete(), with its value */
    KT_REPLAY_ENABLED,      /* `ka on` and `ka off`: 1 and 0 */
    KT_REPLAY_GAP,          /* events that are missing: their number */
    KT_REPLAY_LOAD,         /* a VM state was loaded: time may go back */
} KtReplayControl;

/** What happened to a module, in its place among the events. */
typedef enum KtReplayModule {
    KT_REPLAY_LOADED,
    KT_REPLAY_INHERITED,    /* it was loaded when a VM state was saved */
    KT_REPLAY_UNLOADED,
} KtReplayModule;

/**
 * struct KtReplayPlan - what to read
 * @until_us: stop before the first event that is later; UINT64_MAX: read all
 * @since_us: frames whose events are all earlier may be skipped; has no effect
 *            with @apply
 * @apply: apply what is read to the tracer, so that queries answer
 * @load: apply VM states only: queries answer in @control of such a state
 * @event, @control: (nullable) called for each event and control in order,
 *                   before it is applied; false ends the reading. Ids are
 *                   those of kt_replay_tracer()
 * @log: (nullable) the same for each line of the kernel's log, whose text it
 *       gets. The kernel's own lines come up to a second late; lines that a
 *       program wrote to /dev/kmsg are in their place among the events
 * @module: (nullable) called for each load and unload of a module, with its
 *          untrusted name (borrowed for the call); @va: of its struct module.
 *          The time is that of the last event, see KtReplayInfo.read_us
 * @pause: (nullable) with @apply, called before the first event at or after the
 *         time that it returned last, with the time of that event: queries
 *         answer as of the events before. The first call is before the first
 *         event, and again before the first one behind a reset, a clear or a
 *         load of a VM state
 * @progress: (nullable) called now and then, with bytes
 */
typedef struct KtReplayPlan {
    uint64_t until_us;
    uint64_t since_us;
    bool apply, load;
    bool (*event)(void *opaque, const KtEvent *ev);
    bool (*control)(void *opaque, KtReplayControl control, uint64_t value);
    bool (*log)(void *opaque, const KtLogLine *line, const void *text);
    void (*module)(void *opaque, KtReplayModule what, uint64_t va,
                   const char *name);
    uint64_t (*pause)(void *opaque, uint64_t us);
    void (*progress)(void *opaque, uint64_t done, uint64_t total);
    void *opaque;
} KtReplayPlan;

/**
 * kt_replay_open() - open a journal
 * @errp: no journal, or of another format version
 *
 * Several files can be open in one process. Returns: (owned) NULL on error.
 */
KtReplay *kt_replay_open(const char *path, GError **errp);
void kt_replay_free(KtReplay *r);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtReplay, kt_replay_free)

/** kt_replay_run() - read the file; call it once. Damage is no failure: reading
 *  ends there, and kt_replay_info() says so. */
void kt_replay_run(KtReplay *r, const KtReplayPlan *plan);
/** kt_replay_info() - return what is known of the file now (borrowed). */
const KtReplayInfo *kt_replay_info(const KtReplay *r);
/** kt_replay_tracer() - return the tracer that is made of the file
 *  (borrowed). */
KtTracer *kt_replay_tracer(KtReplay *r);
/** kt_replay_kernel() - return the kernel that was stored last (borrowed,
 *  nullable). */
const GsKernel *kt_replay_kernel(const KtReplay *r);
/** kt_replay_set_types() - let that kernel use the types of a file (borrowed
 *  for the call). Return false if there is no kernel, or if the file is of
 *  another one; @errp says so. */
bool kt_replay_set_types(KtReplay *r, const GsTypesFile *types, GError **errp);
/** kt_replay_status() - read the last status in the file. */
void kt_replay_status(KtReplay *r, KtStatus *out);

#endif /* KT_API_REPLAY_H */
