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

#include <glib.h>
#include <stdint.h>

#include "monitor-cmds/export/export.h"
#include "monitor-cmds/table/top-table.h"

/* ---- counter series ------------------------------------------------------ */

/*
 * Counter series: the values of a counter over time, in a bounded number of
 * points.
 *
 * If there are more values than points, neighbouring values are a group, and a
 * group has two points: its least and its greatest value, in their order. If
 * the points are still too many, groups are joined. So no peak is lost, and
 * each stretch of the series has points for as many values:
 *
 *     values   3 9 4 | 5 5 1 | 2 8 7        group of 3
 *     points   3 9     5   1   2 8     7    the last value is kept, too
 */
/** struct McPoint - a value, and since when the counter has it */
typedef struct McPoint {
    uint64_t us, value;
} McPoint;

typedef struct McCounterSeries McCounterSeries;

/** mc_counter_series_new() - (owned) make an empty series. @max: most points,
 *  at least 8. */
McCounterSeries *mc_counter_series_new(unsigned max);
void mc_counter_series_free(McCounterSeries *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(McCounterSeries, mc_counter_series_free)

/** mc_counter_series_add() - add a value. @us: not less than the last one; a
 *  value that is the last one again is ignored. */
void mc_counter_series_add(McCounterSeries *s, uint64_t us, uint64_t value);
/** mc_counter_series_points() - (borrowed) return McPoint, in order of time;
 *  call it after the last value. */
const GArray *mc_counter_series_points(McCounterSeries *s);

/* ---- time steps ---------------------------------------------------------- */

/*
 * Time steps: how the sums of ka top grew over the time of a journal, in a
 * bounded number of steps of the same length.
 *
 *     us     origin    + width    + 2 width    + 3 width
 *     step 0 |  1      |  2       |  3         |
 *
 * Step 0 has what was there at the origin. The sums of the steps 0 to n are
 * those of ka top at the end of step n, the sums of the steps a to b are those
 * of ka diff: the tracer counts them. If there are too many steps or amounts,
 * two steps become one.
 */
/* Steps at most; if there are twice as many events or more, at least half of
 * them. */
#define MC_TIME_STEPS       256
/* Cells at most while the journal is read. */
#define MC_TIME_CELLS       2000000

/** The amounts of a cell. */
typedef enum McStepValue {
    MC_STEP_ALLOCS, MC_STEP_RESERVED, MC_STEP_FREES, MC_STEP_FREED_RESERVED,
    MC_STEP__COUNT
} McStepValue;
/** mc_step_value_name() - return (static) its key, as in ka top. */
const char *mc_step_value_name(McStepValue v);

/** struct McStepCell - what one row of ka top has in one step; the row is its
 *  place in the order of ka top */
typedef struct McStepCell {
    unsigned row, step;
    int64_t value[MC_STEP__COUNT];
} McStepCell;

typedef struct McTimeSteps McTimeSteps;

/** struct McStepSpan - where steps are. @n: number of the last one */
typedef struct McStepSpan {
    uint64_t origin, width;
    unsigned n;
} McStepSpan;

McTimeSteps *mc_time_steps_new(void);
void mc_time_steps_free(McTimeSteps *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(McTimeSteps, mc_time_steps_free)

/** mc_time_steps_restart() - drop everything: the sums of ka begin anew. */
void mc_time_steps_restart(McTimeSteps *s);
/**
 * mc_time_steps_pause() - read the tracer's sums before an event
 * @us: the time of the event
 *
 * Takes the tracer's lock. Returns: the time before whose first event the sums
 * are to be read again.
 */
uint64_t mc_time_steps_pause(McTimeSteps *s, KtTracer *t, uint64_t us);
/**
 * mc_time_steps_end() - read the sums of the end, and put rows into order
 * @t: (borrowed) the tracer; it is used by functions below
 * @kernel: (borrowed, nullable) for sums by module
 */
void mc_time_steps_end(McTimeSteps *s, KtTracer *t, const GsKernel *kernel);

/* ---- after the end ------------------------------------------------------- */

/** mc_time_steps_span() - return where the steps are. */
McStepSpan mc_time_steps_span(const McTimeSteps *s);
/** mc_time_steps_join() - make one step of two each. */
void mc_time_steps_join(McTimeSteps *s);
/**
 * mc_time_steps_cells() - (owned) return McStepCell, by row and step; those of
 * a row are without gaps in their order, but steps without amounts are left out
 */
GArray *mc_time_steps_cells(const McTimeSteps *s, McBy by);

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

/* ---- live bytes ---------------------------------------------------------- */

/*
 * Live bytes by cache over time, of a journal that is being read.
 *
 * Between two frames of the journal the bytes are followed by events alone:
 *
 *     frame 1      | frame 2      |          the tracer has applied ...
 *     + + - + - -  | + - - + +    |
 *     by events     compared       compared
 *
 * At the end of each frame they are compared with the accounts of ka, which
 * know more: a block was freed unseen, or in parts. What differs is corrected.
 * The accounts also know the greatest value of each cache, so a counter of one
 * cache has exactly this peak.
 */
typedef struct McLiveBytes McLiveBytes;

/** mc_live_bytes_new() - (owned) begin. @t: (borrowed) the tracer of the
 *  replay; @sums: (borrowed for the call) the sums by cache of the end */
McLiveBytes *mc_live_bytes_new(KtTracer *t, const McHeapProfile *sums);
void mc_live_bytes_free(McLiveBytes *l);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(McLiveBytes, mc_live_bytes_free)

/** mc_live_bytes_restart() - drop everything: the sums of ka begin anew.
 *  @loaded: they are those of a VM state, which the tracer has. */
void mc_live_bytes_restart(McLiveBytes *l, bool loaded);
/** mc_live_bytes_event() - follow an event. @us: its time, not less than that
 *  of the last one */
void mc_live_bytes_event(McLiveBytes *l, const KtEvent *ev, uint64_t us);
/** mc_live_bytes_compare() - compare with the tracer, which has applied all
 *  events that were followed. Takes its lock. */
void mc_live_bytes_compare(McLiveBytes *l, uint64_t us);
/** mc_live_bytes_end() - move the counters to @t; only free @l then. */
void mc_live_bytes_end(McLiveBytes *l, McTimeline *t);

#endif /* MC_TIMELINE_H */
