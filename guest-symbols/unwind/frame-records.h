/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stack walks by frame records, for architectures whose kernels always have
 * a frame pointer. Internal to guest-symbols.
 *
 * A function saves its caller's frame pointer and its own return address next
 * to each other and lets the frame pointer point there, so the records of a
 * stack are a list. What the list looks like where an exception or a system
 * call entered the kernel is each architecture's own.
 */
#ifndef GS_FRAMES_H
#define GS_FRAMES_H

#include "guest-symbols/orc/orc.h"
#include "guest-symbols/unwind/walk-cache.h"

/**
 * struct GsFrameRecords - a kernel's frames, as one unwinder sees them
 * @canonical: bits that every address of its code has set; a return address
 *             with other ones is signed
 * @signature: (plain) bits that none of them has set, likewise
 * @text: of the kernel proper, run time
 * @regs_at: where in struct pt_regs the frame record of an exception is
 * @has_regs_at: and that is known
 * @has_meta: such records tell what they are (struct frame_record_meta)
 * @entry: code that an exception enters through, whose frames are struct
 *         pt_regs
 * @outermost: functions that a task begins in
 * @record_at: from the frame pointer to the record
 * @reader: finds the text of modules
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
} GsFrameRecords;

/* What a step says when the walk goes on. */
#define GS_GO_ON GS_STOP__COUNT

/**
 * struct GsFrameRules - one architecture's
 * @prepare: find what there is to know of @k; @f is zeroed but for @text
 * @step: from the frame in @w to its caller's
 */
typedef struct GsFrameRules {
    void (*prepare)(GsFrameRecords *f, const GsKernel *k);
    GsStop (*step)(const GsFrameRecords *f, Walk *w);
} GsFrameRules;

extern const GsFrameRules gs_arm64_frames, gs_riscv64_frames;
/** gs_plain_frames - nothing but records: of a kernel opened by
 *  gs_kernel_open_elf() */
extern const GsFrameRules gs_plain_frames;

/** gs_frame_rules_find() - find the rules for the stacks of @k. Returns:
 *  (static) NULL if they are walked with ORC. */
const GsFrameRules *gs_frame_rules_find(const GsKernel *k);

/** gs_frame_records_prepare() - @k: with its slide set. */
void gs_frame_records_prepare(GsFrameRecords *f, const GsFrameRules *rules,
                              const GsKernel *k, GsOrcReader *reader);

/** gs_frame_records_walk() - see gs_unwind(); @w: as it begins there. */
GsStop gs_frame_records_walk(const GsFrameRecords *f, Walk *w, uint64_t *frames,
                             unsigned max, unsigned *n);

/**
 * gs_frame_records_move() - the record that is read next is at @va
 *
 * Within a stack that is further up; where stacks are switched it may be
 * anywhere, which is bounded. Returns: false when it cannot be a record.
 */
bool gs_frame_records_move(Walk *w, uint64_t va);
/** gs_frame_records_is_text() - is @pc, a return address or not, in known
 * code? */
bool gs_frame_records_is_text(const GsFrameRecords *f, uint64_t pc);
/** gs_frame_records_add_outermost() - stacks begin in the code of [@start,
 *  @end); GS_OUTERMOST_MAX are kept. */
void gs_frame_records_add_outermost(GsFrameRecords *f, uint64_t start,
                                    uint64_t end);
/** gs_frame_records_is_outermost() - does the return address @pc lie in such?
 * */
bool gs_frame_records_is_outermost(const GsFrameRecords *f, uint64_t pc);

#endif /* GS_FRAMES_H */
