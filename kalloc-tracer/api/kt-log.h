/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest kernel's log: what printk() stored, as lines of ka's own.
 *
 * A line is a record of the kernel's ring, with what ka knows of its writer.
 * The tracer keeps the newest lines within the memory limit. Each line has a
 * number: 1, 2, 3 ... The numbers go on when the VM is reset, so a reader that
 * polls asks for the lines after the last number that it has.
 *
 * Threads: any. The lines have a lock of their own, which is held only while
 * lines are added or copied.
 */
#ifndef KT_API_LOG_H
#define KT_API_LOG_H

#include "kalloc-tracer/api/kt-types.h"

/* Bytes of a line's text, at most. The kernel's own limit is 1024 or 2048. */
#define KT_LOG_TEXT_MAX 4096

/** A line's writer ran in an interrupt on the CPU in the low bits of
 *  @caller; without the bit, @caller is a pid. */
#define KT_LOG_CALLER_CPU (1u << 31)

/** What is known of a line. */
typedef enum KtLogFlag {
    /** @task, @cpu and @stack are those of the writer. */
    KT_LOG_SEEN = 1 << 0,
    /** @caller is known. */
    KT_LOG_CALLER = 1 << 1,
    /** The text is longer than KT_LOG_TEXT_MAX: its end is missing. */
    KT_LOG_CUT = 1 << 2,
} KtLogFlag;

/**
 * struct KtLogLine - a line of the kernel's log
 * @number: 1, 2, 3 ... in the order of the kernel's ring
 * @seq: the record's number in that ring, from 0 in each boot
 * @ns: the kernel's time of the record
 * @us: the VM's clock, microseconds: when the record was stored, or read
 *      without KT_LOG_SEEN
 * @lost: records of the ring before this one that were overwritten unread
 * @boot: 0, 1, 2 ... grows when the VM is reset
 * @caller: pid, or CPU with KT_LOG_CALLER_CPU
 * @stack: of the writer; 0: unknown
 * @task: 0: unknown
 * @cpu: vCPU
 * @level: 0 (emergency) to 7 (debug)
 * @facility: 0: the kernel; else a program wrote the line to /dev/kmsg
 * @flags: KtLogFlag bits
 * @len: bytes of the text, which may contain any byte
 */
typedef struct KtLogLine {
    uint64_t number;
    uint64_t seq;
    uint64_t ns;
    uint64_t us;
    uint64_t lost;
    uint32_t boot;
    uint32_t caller;
    KtStackId stack;
    KtTaskId task;
    uint16_t cpu;
    uint8_t level;
    uint8_t facility;
    uint8_t flags;
    uint16_t len;
} KtLogLine;

/**
 * struct KtLogBatch - copies of some lines, in their order
 * @line: (owned) of KtLogLine
 * @text: (owned) their texts, one behind the other, without separators
 */
typedef struct KtLogBatch {
    GArray *line;
    GByteArray *text;
} KtLogBatch;

void kt_log_batch_init(KtLogBatch *b);
void kt_log_batch_deinit(KtLogBatch *b);

/**
 * kt_log_read() - copy the first lines after number @after
 * @b: (out) initialised; its old content is dropped
 * @max: lines, at most
 *
 * Any thread. Returns: the number of lines that were copied.
 */
unsigned kt_log_read(KtTracer *t, uint64_t after, unsigned max, KtLogBatch *b);

/** kt_log_last() - return the number of the newest line, 0 if there was none.
 *  Any thread. */
uint64_t kt_log_last(KtTracer *t);

/** kt_log_save() - write the lines that are not in the journal yet to it, in
 *  their place among the events. Any thread that does not hold the tracer's
 *  lock; nothing happens without a journal. */
void kt_log_save(KtTracer *t);

#endif /* KT_API_LOG_H */
