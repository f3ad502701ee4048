/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The lines of the kernel's log that a tracer keeps: a ring of chunks.
 *
 *     oldest                                                newest
 *     chunk 0             chunk 1                          chunk n
 *     | line text | ... | | line text | line text | ... |  | line tex... |
 *
 * A chunk is memory of 64 KiB that the budget allowed. If the lines have
 * KT_LOG_BYTES, or the budget refuses another chunk, the oldest chunk is
 * evicted, and its lines are counted.
 *
 * Threads: any. A lock protects everything; it is a leaf: nothing else is
 * locked under it. kt_log_save() has another one, under which it locks the
 * lines and the queue of module events.
 */
#ifndef KT_LOG_LINES_H
#define KT_LOG_LINES_H

#include "guest-symbols/base/bytes.h"
#include "kalloc-tracer/kt.h"

/* Host memory of all lines, at most. */
#define KT_LOG_BYTES ((size_t)32 << 20)
#define KT_LOG_CHUNK ((size_t)64 << 10)

/**
 * kt_log_add() - add a line
 * @line: (copied) its number and boot are assigned here, unless its number is
 *        that of a line in a journal
 * @text: @line->len bytes, KT_LOG_TEXT_MAX at most
 *
 * Any thread; lines come in the order of the kernel's ring. Returns: the
 * line's number, 0 if there is no memory for it.
 */
uint64_t kt_log_add(KtTracer *t, const KtLogLine *line, const void *text);

/**
 * kt_log_set_writer() - set what is known of the writer of a line that was
 * added before
 * @number: of the line; nothing happens if it was evicted
 * @from: task, cpu, stack and us are copied from here
 *
 * Any thread.
 */
void kt_log_set_writer(KtTracer *t, uint64_t number, const KtLogLine *from);

/* Lines of a frame of a journal, at most. */
#define KT_LOG_FRAME_LINES 1024

/**
 * kt_log_frame_write() - Append a frame (KT_FRAME_LOG) with the lines of @b,
 * which are @t's, to @out
 *
 *     frame: number of lines, lines
 *     line:  number seq ns us (each as a step from the line before), lost,
 *            boot, caller, flags, level, facility, cpu, task, stack, text
 *
 * All numbers are varints. Task and stack are written as tracer/frame-ids.h
 * says.
 */
void kt_log_frame_write(KtTracer *t, const KtLogBatch *b, GsOut *out);
/**
 * kt_log_frame_read() - Read a frame
 * @t: gets the tasks and stacks
 * @k: (nullable) knows when the stacks were taken
 * @b: (out) initialised; the lines, with ids of @t
 *
 * The bytes are untrusted. Returns: false if they are malformed.
 */
bool kt_log_frame_read(KtTracer *t, const GsKernel *k, GsBytes *in,
                       KtLogBatch *b);

#endif /* KT_LOG_LINES_H */
