/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Callers that no frame record has. For the files of unwind/ only; one thread
 * at a time.
 *
 * A function has no frame record at its first and last instructions, and a leaf
 * function may have none at all. That matters where a vCPU stands or was
 * interrupted: there the code says where the caller is, mostly in the link
 * register. In all other frames a call is under way, and they have records.
 *
 *     vCPU stands     memcpy+0x0              x30: memcpy has no record
 *     call            copy_page_to_iter+0x64  record
 *     call            el1h_64_irq_handler     record
 *     entry           el1h_64_irq+0x68        struct pt_regs
 *     interrupted     xas_load+0x4            x30 of that struct pt_regs
 *     call            filemap_get_entry+0x30  record
 *
 * This takes milliseconds and allocates, so walks of events do without.
 */
#ifndef GS_CODE_FRAMES_H
#define GS_CODE_FRAMES_H

#include "guest-symbols/unwind/frame-records.h"

/**
 * struct GsCodeFrames - the frame of a vCPU that stands, or was interrupted
 * @records: how frames with records are walked
 * @rules: how code is followed
 * @k: names functions
 * @reg: general registers by their DWARF numbers
 * @sepc: (riscv64) pc of the code that an exception interrupted, 0: not known
 * @known: @reg and @sepc are of the frame in which the walk is
 */
typedef struct GsCodeFrames {
    const GsFrameRules *records;
    const struct GsCodeRules *rules;
    const GsKernel *k;
    uint64_t reg[GS_GENERAL_REGS];
    uint64_t sepc;
    bool known;
} GsCodeFrames;

/**
 * struct GsCode - a function
 * @range: run-time addresses
 * @name: (borrowed)
 * @bytes: (owned) its instructions
 */
typedef struct GsCode {
    GsRange range;
    char name[GS_SYMBOL_NAME_MAX + 1];
    uint8_t *bytes;
} GsCode;

/**
 * struct GsCodeRules - how the code of one architecture is followed
 * @step: move @w from its frame, in @fn, to the caller's; @stop: (out) as of
 *        GsFrameRules. Returns: false if the code does not say where that is
 * @enter: (nullable) is @w, in which a call is under way, an entry whose record
 *         is not marked as one? Then do the step; or return false.
 */
typedef struct GsCodeRules {
    bool (*step)(const GsFrameRecords *f, Walk *w, const GsCode *fn,
                 GsStop *stop);
    bool (*enter)(const GsFrameRecords *f, Walk *w);
} GsCodeRules;

/** gs_code_frames - the rules that use @code of GsFrameRecords */
extern const GsFrameRules gs_code_frames;

/** gs_code_at() - find and read the function at @pc. Returns: false if it is
 *  not known, or cannot be read; @out has nothing to be freed then. */
bool gs_code_at(const GsKernel *k, const Walk *w, uint64_t pc, GsCode *out);
void gs_code_deinit(GsCode *fn);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(GsCode, gs_code_deinit)

#endif /* GS_CODE_FRAMES_H */
