/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Replay: a journal's file as a tracer.
 */
#ifndef KT_REPLAY_API_H
#define KT_REPLAY_API_H

#include "kalloc-tracer/api/kt-journal.h"

typedef struct KtReplay KtReplay;

/**
 * struct KtReplayInfo - what a file holds, and what it lacks
 * @begun: when it was, host's clock, seconds since 1970
 * @bytes: of the file
 * @frames, @events: that are whole, as far as their headers tell
 * @first_us, @last_us: of these events
 * @ended: the VM ended in order: nothing is missing
 * @damage: (nullable) why there is no more than that, one line
 * @missing_bytes: at the end of the file that cannot be read
 * @missing_known: @missing_events is known
 * @missing_least: but there may be more: the file was not ended
 * @missing_events: that were to be written, and cannot be read
 * @gap_events: not written when the disk was full, as far as was read;
 *               others follow them
 * @read_events: applied so far by kt_replay_run()
 * @read_us: time of the last of them, or of the VM state that was loaded
 *           behind it: it may go back
 * @reached: the time that was asked for was reached: what comes later does
 *           not matter
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

/** What is told of a file beside events, in its place among them. */
typedef enum KtReplayControl {
    KT_REPLAY_RESET, /* a new boot */
    KT_REPLAY_CLEAR,
    KT_REPLAY_COMPLETE, /* with its value */
    KT_REPLAY_ENABLED,  /* likewise */
    KT_REPLAY_GAP,     /* events that are missing: their number */
    KT_REPLAY_LOAD,     /* a VM state was loaded: another time begins */
} KtReplayControl;

/**
 * struct KtReplayPlan - what to read
 * @until_us: stop before the first event that is later; UINT64_MAX: all
 * @since_us: runs of events that are all earlier may be skipped; only without
 *            @apply
 * @apply: to the tracer: queries answer then
 * @load: VM states only: in @control of one, queries answer as of that moment
 * @event, @control: (nullable) are told of each in order, before it is applied;
 *                false stops. Ids are those of the replay's tracer
 * @progress: (nullable) called now and then: bytes done and in all
 */
typedef struct KtReplayPlan {
    uint64_t until_us;
    uint64_t since_us;
    bool apply, load;
    bool (*event)(void *opaque, const KtEvent *ev);
    bool (*control)(void *opaque, KtReplayControl control, uint64_t value);
    void (*progress)(void *opaque, uint64_t done, uint64_t total);
    void *opaque;
} KtReplayPlan;

/** kt_replay_open() - (owned) Open a journal. One thread at a time may use the
 *  result; several journals can be open at once. */
KtReplay *kt_replay_open(const char *path, GError **errp);
void kt_replay_free(KtReplay *r);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtReplay, kt_replay_free)

/** kt_replay_run() - read, once. Damage is no failure: it ends there, and
 *  kt_replay_info() says so. */
void kt_replay_run(KtReplay *r, const KtReplayPlan *plan);
/** kt_replay_info() - (borrowed) as of now. */
const KtReplayInfo *kt_replay_info(const KtReplay *r);
/** kt_replay_tracer() - (borrowed) made of what was read. */
KtTracer *kt_replay_tracer(KtReplay *r);
/** kt_replay_kernel() - (borrowed, nullable) the kernel found last. */
const GsKernel *kt_replay_kernel(const KtReplay *r);
/** kt_replay_status() - the last status that was read. */
void kt_replay_status(KtReplay *r, KtStatus *out);

#endif /* KT_REPLAY_API_H */
