/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a tracer has for call points: a part of it (see boot-part.h).
 */
#ifndef KT_CALLS_H
#define KT_CALLS_H

#include "kalloc-tracer/calls/call-points.h"
#include "kalloc-tracer/kt.h"

/** kt_tracer_call_points() - (borrowed for the tracer's life) Return the table
 *  of call points. Any thread. */
KtCallPoints *kt_tracer_call_points(KtTracer *t);

#endif /* KT_CALLS_H */
