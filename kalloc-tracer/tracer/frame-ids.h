/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How journal frames of log lines, calls and faults store the task and the
 * stack of a record. A number says which form follows:
 *
 *     task:  0: it is unknown
 *            1: it is the task of the previous record
 *            2: the pid and the name (comm) follow
 *     stack: 0: it is unknown
 *            1: it is the stack of the previous record
 *            2: the reason why the walk ended, the number of frames, and the
 *               frames follow; each frame is the difference from the last one
 *
 * Such frames do not use the journal's ids of tasks and stacks, because events
 * define these, and a frame may be written when no event is. Any thread.
 */
#ifndef KT_FRAME_IDS_H
#define KT_FRAME_IDS_H

#include "guest-symbols/base/bytes.h"
#include "kalloc-tracer/kt.h"

/** kt_frame_write_task() - Append a task of @t. @before: of the record before;
 *  0: it is the first. */
void kt_frame_write_task(KtTracer *t, KtTaskId id, KtTaskId before, GsOut *out);
/** kt_frame_write_stack() - The same for a stack. */
void kt_frame_write_stack(KtTracer *t, KtStackId id, KtStackId before,
                          GsOut *out);
/** kt_frame_read_task() - Read a task, and return its id in @t. The bytes are
 *  untrusted. */
KtTaskId kt_frame_read_task(KtTracer *t, GsBytes *in, KtTaskId before);
/** kt_frame_read_stack() - The same for a stack. @k: (nullable) knows when it
 *  was taken. */
KtStackId kt_frame_read_stack(KtTracer *t, const GsKernel *k, GsBytes *in,
                              KtStackId before);

#endif /* KT_FRAME_IDS_H */
