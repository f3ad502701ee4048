/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The journal's frame of log lines (KT_FRAME_LOG), both directions.
 *
 *     frame: number of lines, lines
 *     line:  number seq ns us (each as a step from the line before), lost,
 *            boot, caller, flags, level, facility, cpu, task, stack, text
 *
 * All numbers are varints. Task and stack are written as tracer/frame-ids.h
 * says.
 *
 * Pure functions: any thread.
 */
#ifndef KT_LOG_FRAME_H
#define KT_LOG_FRAME_H

#include "guest-symbols/base/bytes.h"
#include "kalloc-tracer/kt.h"

/* Lines of a frame, at most. */
#define KT_LOG_FRAME_LINES 1024

/** kt_log_frame_write() - append the lines of @b, which are @t's, to @out. */
void kt_log_frame_write(KtTracer *t, const KtLogBatch *b, GsOut *out);

/**
 * kt_log_frame_read() - read a frame
 * @t: gets the tasks and stacks
 * @k: (nullable) knows when the stacks were taken
 * @b: (out) initialised; the lines, with ids of @t
 *
 * The bytes are untrusted. Returns: false if they are malformed.
 */
bool kt_log_frame_read(KtTracer *t, const GsKernel *k, GsBytes *in,
                       KtLogBatch *b);

#endif /* KT_LOG_FRAME_H */
