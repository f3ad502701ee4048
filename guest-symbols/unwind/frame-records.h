/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stack walks by frame records, for architectures whose kernels always keep a
 * frame pointer. For the files of unwind/ only; called by vCPU threads.
 *
 * A function saves the caller's frame pointer and its own return address next
 * to each other: a frame record. The frame pointer points there, so the
 * records of a stack are a linked list:
 *
 *     fp --> { caller's fp, return address } --> { ... } --> { 0, 0 }
 *
 * Each architecture has its own records where an exception or a system call
 * entered the kernel; those are its GsFrameRules.
 */
#ifndef GS_FRAME_RECORDS_H
#define GS_FRAME_RECORDS_H

#include "guest-symbols/orc/orc.h"
#include "guest-symbols/unwind/return-records.h"
#include "guest-symbols/unwind/walk-cache.h"

/**
 * struct GsFrameRecords - what one unwinder knows of a kernel's frames
 * @rules: how to step
 * @canonical: bits that are set in every address of code; if a return address
 *             has them clear, it is signed
 * @signature: (plain kernels) bits that are clear in every address of code
 * @text: run-time code of the kernel proper
 * @regs_at: offset of the frame record of an exception in struct pt_regs
 * @has_regs_at: that offset is known
 * @has_meta: these records have a type (struct frame_record_meta)
 * @entry: code that exceptions enter through; its frames are struct pt_regs
 * @outermost: functions that a task begins in
 * @record_at: distance from the frame pointer to the record
 * @reader: finds the code of modules
 * @returns, @cursor: find return addresses that tracers replaced
 * @code: (owned, nullable) finds callers by code
 */
typedef struct GsFrameRecords {
    const struct GsFrameRules *rules;
    uint64_t canonical, signature;
    GsRange text[2];
    uint32_t regs_at;
    bool has_regs_at, has_meta;
    GsRange entry;
    GsRange outermost[GS_OUTERMOST_MAX];
    unsigned n_outermost;
    int record_at;
    GsOrcReader *reader;
    const GsReturnRecords *returns;
    GsReturnCursor *cursor;
    struct GsCodeFrames *code;
} GsFrameRecords;

/* A step returns this if the walk continues. */
#define GS_GO_ON GS_STOP__COUNT

/**
 * struct GsFrameRules - how one architecture's frames are walked
 * @prepare: fill in @f for @k; only @rules, @reader and @text are set before
 * @step: move @w from its frame to the caller's
 * @record_at: distance from the frame pointer to the record
 */
typedef struct GsFrameRules {
    void (*prepare)(GsFrameRecords *f, const GsKernel *k);
    GsStop (*step)(const GsFrameRecords *f, Walk *w);
    int record_at;
} GsFrameRules;

/** gs_no_frames - rules for kernels whose stacks cannot be walked: each walk
 *  finds its first frame only, and ends with GS_STOP_NO_UNWINDER */
extern const GsFrameRules gs_no_frames;
/** gs_plain_frames - rules for kernels of gs_kernel_open_elf() */
extern const GsFrameRules gs_plain_frames;

/** gs_frame_rules_find() - find the rules for the stacks of @k. Returns:
 *  (static) NULL if they are walked with ORC. */
const GsFrameRules *gs_frame_rules_find(const GsKernel *k);

/** gs_frame_records_prepare() - fill in @f for @k, whose slide is set. */
void gs_frame_records_prepare(GsFrameRecords *f, const GsFrameRules *rules,
                              const GsKernel *k, GsOrcReader *reader);

/** gs_frame_records_walk() - walk the stack that begins in @w, see
 *  gs_unwind(). */
GsStop gs_frame_records_walk(const GsFrameRecords *f, Walk *w, uint64_t *frames,
                             unsigned max, unsigned *n);

/**
 * gs_frame_records_move() - move @w to the record at @va
 *
 * Within a stack the next record is further up. Another stack may be anywhere,
 * so the number of switches is limited. Returns: false if no record can be at
 * @va.
 */
bool gs_frame_records_move(Walk *w, uint64_t va);
/** gs_frame_records_is_text() - is @pc in known code, or right behind it (as
 *  the return address of a call that does not return)? */
bool gs_frame_records_is_text(const GsFrameRecords *f, uint64_t pc);
/** gs_frame_records_add_outermost() - add [@start, @end) to the code that
 *  stacks begin in; the first GS_OUTERMOST_MAX are kept. */
void gs_frame_records_add_outermost(GsFrameRecords *f, uint64_t start,
                                    uint64_t end);
/** gs_frame_records_is_outermost() - is the return address @pc in that code? */
bool gs_frame_records_is_outermost(const GsFrameRecords *f, uint64_t pc);

#endif /* GS_FRAME_RECORDS_H */
