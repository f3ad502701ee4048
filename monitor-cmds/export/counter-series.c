/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counter series: see timeline.h. */
#include "monitor-cmds/export/timeline.h"

#include <stdbool.h>

/**
 * struct McCounterSeries - @group: values in a group
 * @n: values in the group that is not full yet; @low, @high: its extremes, and
 *     @low_first: their order
 * @last: the last value; @any: there is one
 */
struct McCounterSeries {
    GArray *point;
    unsigned max;
    uint64_t group, n;
    McPoint low, high, last;
    bool low_first, any;
};

McCounterSeries *mc_counter_series_new(unsigned max)
{
    McCounterSeries *s = g_new0(McCounterSeries, 1);

    s->point = g_array_new(FALSE, FALSE, sizeof(McPoint));
    s->max = max;
    s->group = 1;
    return s;
}

void mc_counter_series_free(McCounterSeries *s)
{
    if (s) {
        g_array_unref(s->point);
        g_free(s);
    }
}

/* Store the extremes of up to four points at @to, in their order. Return how
 * many there are. */
static unsigned keep_extremes(McPoint *to, const McPoint *p, unsigned n)
{
    unsigned low = 0, high = 0;
    McPoint first, second;

    for (unsigned i = 1; i < n; i++) {
        low = p[i].value < p[low].value ? i : low;
        high = p[i].value > p[high].value ? i : high;
    }
    first = p[MIN(low, high)];
    second = p[MAX(low, high)];
    to[0] = first;
    if (low == high) {
        return 1;
    }
    to[1] = second;
    return 2;
}

/* Join two groups each. The first point stays: it is where the series
 * begins. */
static void join_groups(McCounterSeries *s)
{
    McPoint *p = (McPoint *)s->point->data;
    unsigned to = 1;

    for (unsigned i = 1; i < s->point->len; i += 4) {
        to += keep_extremes(p + to, p + i, MIN(4, s->point->len - i));
    }
    g_array_set_size(s->point, to);
    s->group = s->group == 1 ? 4 : s->group * 2;
}

static void end_group(McCounterSeries *s)
{
    const McPoint both[2] = {
        s->low_first ? s->low : s->high, s->low_first ? s->high : s->low,
    };

    if (s->n) {
        g_array_append_vals(s->point, both,
                            s->low.value == s->high.value ? 1 : 2);
    }
    s->n = 0;
    /* two points of a group, and the last value must have room */
    if (s->point->len + 3 > s->max) {
        join_groups(s);
    }
}

void mc_counter_series_add(McCounterSeries *s, uint64_t us, uint64_t value)
{
    const McPoint p = { us, value };

    if (s->any && s->last.value == value) {
        return;
    }
    s->any = true;
    s->last = p;
    if (!s->n) {
        s->low = s->high = p;
    } else if (value < s->low.value) {
        s->low = p;
        s->low_first = false;
    } else if (value > s->high.value) {
        s->high = p;
        s->low_first = true;
    }
    if (++s->n >= s->group) {
        end_group(s);
    }
}

const GArray *mc_counter_series_points(McCounterSeries *s)
{
    const McPoint *end;

    end_group(s);
    end = s->point->len ? &g_array_index(s->point, McPoint,
                                         s->point->len - 1) : NULL;
    if (end && (end->us != s->last.us || end->value != s->last.value)) {
        g_array_append_val(s->point, s->last);
    }
    return s->point;
}
