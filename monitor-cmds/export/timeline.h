/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Timeline: what a journal says of each moment: live bytes by cache, and when
 * modules were loaded, marks set, errors made, events lost.
 *
 * It begins where the sums of ka top begin: at the last reset, ka clear or load
 * of a VM state.
 *
 * Names are of the guest. They are kept as visible ASCII and blanks, of bounded
 * length. One thread.
 */
#ifndef MC_TIMELINE_H
#define MC_TIMELINE_H

#include "monitor-cmds/export/counter-series.h"
#include "monitor-cmds/export/export.h"
#include "monitor-cmds/export/time-steps.h"

/* Counters at most: everything, those caches that had most bytes at one time,
 * and one for all others. */
#define MC_TIMELINE_COUNTERS 40
/* Points of a counter at most. */
#define MC_TIMELINE_POINTS 2000
/* Instants of a kind, and lifetimes, at most. */
#define MC_TIMELINE_INSTANTS 2000

/** struct McCounter - live bytes, as reserved. @name: NULL: of everything */
typedef struct McCounter {
    const char *name;
    McCounterSeries *series;
} McCounter;

typedef enum McInstantKind {
    MC_INSTANT_MISSING, MC_INSTANT_RECORDING, MC_INSTANT_GAP,
    MC_INSTANT_MODULE, MC_INSTANT_MARK, MC_INSTANT_ERROR,
    MC_INSTANT__COUNT
} McInstantKind;
/** mc_instant_kind_name() - return (static) "missing" and so on. */
const char *mc_instant_kind_name(McInstantKind kind);

/** struct McInstant - something that happened. @key, @value: (nullable) a
 *  figure of it */
typedef struct McInstant {
    McInstantKind kind;
    uint64_t us;
    const char *name;
    const char *key;
    uint64_t value;
} McInstant;

/**
 * struct McLifetime - a module, from its load on
 * @until: it was unloaded then; or the end of the timeline
 * @earlier: it was loaded before @since: in the life of a saved VM state
 * @lane: lifetimes of one lane do not overlap; from 0
 */
typedef struct McLifetime {
    const char *name;
    uint64_t since, until;
    bool earlier, unloaded;
    unsigned lane;
} McLifetime;

/**
 * struct McTimeline - all of it
 * @counter: McCounter, the one of everything first
 * @instant: McInstant, in no order
 * @lifetime: McLifetime, in the order of the loads
 * @lanes: number of lanes of @lifetime
 * @us: time of the end
 * @corrected: how often events alone had another sum of a cache than ka's map
 * @left_out: instants and lifetimes beyond the limit
 */
typedef struct McTimeline {
    GArray *counter;
    GArray *instant;
    GArray *lifetime;
    unsigned lanes;
    uint64_t us, corrected, left_out;
    GStringChunk *names;
} McTimeline;

/**
 * mc_timeline_new() - (owned) read the journal of @e, whose profile has the
 * sums by cache
 * @steps: (nullable) is filled with the sums over time
 *
 * Returns: NULL if the journal cannot be read.
 */
McTimeline *mc_timeline_new(const McExport *e, McTimeSteps *steps,
                            GError **errp);
void mc_timeline_free(McTimeline *t);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(McTimeline, mc_timeline_free)

#endif /* MC_TIMELINE_H */
