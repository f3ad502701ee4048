/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A ring of printk records in memory, the tracer, and the log that reads the
 * one into the other. Single-threaded.
 */
#ifndef PRINTK_WORLD_H
#define PRINTK_WORLD_H

#include "kalloc-tracer/kernel/printk-log.h"
#include "kalloc-tracer/log/log-lines.h"
#include "tests/lib/printk-writer.h"

typedef struct PrintkWorld {
    PrintkWriter *w;
    GsKernel k;
    KtTracer *t;
    KtPrintkLog *log;
    KtLogBatch batch;
} PrintkWorld;

/** printk_world_init_of() - make a log of @w. @w: (owned); @types: the kernel
 *  describes its ring */
void printk_world_init_of(PrintkWorld *x, PrintkWriter *w, bool types);
/** printk_world_init() - the same of a ring of 16 records and 1 KiB. */
void printk_world_init(PrintkWorld *x);
void printk_world_deinit(PrintkWorld *x);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(PrintkWorld, printk_world_deinit)

/** printk_world_read() - read the ring as after a record of @by. @by:
 *  (nullable); @us: the VM's clock. Returns: as kt_printk_log_read() */
bool printk_world_read(PrintkWorld *x, const KtPrintkWriter *by, uint64_t us);
/** printk_world_end() - return the number that the next record will have. */
uint64_t printk_world_end(PrintkWorld *x);
/** printk_world_lines() - (borrowed, until the next call) return all lines as
 *  "seq:text seq:text ...". */
const char *printk_world_lines(PrintkWorld *x);
/** printk_world_line() - return line @i. */
KtLogLine printk_world_line(PrintkWorld *x, unsigned i);

/** printk_by() - return a record of @caller. @text: (borrowed) */
PwRecord printk_by(uint32_t caller, const char *text);

#endif /* PRINTK_WORLD_H */
