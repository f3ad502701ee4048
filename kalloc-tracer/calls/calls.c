/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The call points of a tracer: see calls.h. */
#include "kalloc-tracer/calls/calls.h"
#include "kalloc-tracer/tracer/tracer.h"

static void *new_points(KtBudget *budget)
{
    return kt_call_points_new(budget);
}

static void free_points(void *points)
{
    kt_call_points_free(points);
}

KtCallPoints *kt_tracer_call_points(KtTracer *t)
{
    static const KtBootPart part = {
        .name = "call points", .new = new_points, .free = free_points,
    };

    return kt_tracer_part(t, &part);
}
