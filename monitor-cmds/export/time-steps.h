/* SPDX-License-Identifier: GPL-2.0-or-later */
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
 * two steps become one. One thread.
 */
#ifndef MC_TIME_STEPS_H
#define MC_TIME_STEPS_H

#include "monitor-cmds/table/top-table.h"

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

#endif /* MC_TIME_STEPS_H */
