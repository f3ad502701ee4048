/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KtPrintkLog: follows the ring of printk records of the running kernel, and
 * adds each record to the tracer's lines, once and in the ring's order.
 *
 * capture/ calls kt_printk_log_end() when the kernel's vprintk_store() is
 * entered, and kt_printk_log_read() when it has returned, with the writer: then
 * a record of this writer is new. Records of other writers may be new as well,
 * because they return a moment later, on another vCPU. Those lines get their
 * writer by that writer's own call:
 *
 *     vCPU 0   stores 41 ........................ returns: sets 41's writer
 *     vCPU 1            stores 42, returns: reads 41 and 42
 *
 * A record is known to be the writer's if it was stored since the entry, and
 * by its caller_id: the pid, or in an interrupt the CPU. If the record is not
 * readable yet, its writer is kept until it is: an older record is not finished
 * on another vCPU, or a continuation line may follow.
 *
 * Threads: any; a lock protects the object. At most KT_PRINTK_BATCH records, or
 * 1 ms, for each call: the rest waits for the next call.
 */
#ifndef KT_PRINTK_LOG_H
#define KT_PRINTK_LOG_H

#include "kalloc-tracer/kt.h"

/* Records that one call reads, at most. */
#define KT_PRINTK_BATCH 256

typedef struct KtPrintkLog KtPrintkLog;

/** kt_printk_log_new() - (owned) follow the log of @k, from its first record
 *  on. @t: (borrowed) gets the lines. */
KtPrintkLog *kt_printk_log_new(const GsKernel *k, KtTracer *t);
void kt_printk_log_free(KtPrintkLog *l);

/** kt_printk_log_drop_types() - go on with another layout: the types of @k have
 *  changed. No vCPU executes. */
void kt_printk_log_drop_types(KtPrintkLog *l, const GsKernel *k);

/**
 * struct KtPrintkWriter - who has just stored a record
 * @us: the VM's clock
 * @since: number of the first record that it can have stored
 * @known: @pid is known
 * @irq: it may be in an interrupt
 */
typedef struct KtPrintkWriter {
    uint64_t us;
    uint64_t since;
    KtTaskId task;
    KtStackId stack;
    uint32_t pid;
    uint16_t cpu;
    bool known, irq;
} KtPrintkWriter;

/** kt_printk_log_end() - return the number that the next new record will have,
 *  UINT64_MAX if it is unknown. */
uint64_t kt_printk_log_end(KtPrintkLog *l, const GsMem *mem);

/** struct KtPrintkNow - when the log is read. @us: the VM's clock, for lines
 *  whose writer is not known; @stopped: no vCPU executes */
typedef struct KtPrintkNow {
    uint64_t us;
    bool stopped;
} KtPrintkNow;

/**
 * kt_printk_log_read() - add the records that are new
 * @mem: guest memory
 * @w: (nullable) the writer; NULL: nobody has stored a record just now
 * @now: (borrowed for the call)
 *
 * Returns: true if more records may be readable now.
 */
bool kt_printk_log_read(KtPrintkLog *l, const GsMem *mem,
                        const KtPrintkWriter *w, const KtPrintkNow *now);

/** kt_printk_log_why_not() - (static, nullable) return why the kernel's log
 *  cannot be read; NULL: it can. Any thread. */
const char *kt_printk_log_why_not(const KtPrintkLog *l);

#endif /* KT_PRINTK_LOG_H */
