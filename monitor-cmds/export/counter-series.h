/* SPDX-License-Identifier: GPL-2.0-or-later */
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
 *
 * One thread.
 */
#ifndef MC_COUNTER_SERIES_H
#define MC_COUNTER_SERIES_H

#include <glib.h>
#include <stdint.h>

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

#endif /* MC_COUNTER_SERIES_H */
