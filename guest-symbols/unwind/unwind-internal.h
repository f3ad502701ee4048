/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The unwinder's caches and state, for unwind.c and code-frames.c. */
#ifndef GS_UNWIND_INTERNAL_H
#define GS_UNWIND_INTERNAL_H

#include "guest-symbols/kernel/kernel.h"
#include "guest-symbols/unwind/frame-records.h"
#include "guest-symbols/orc/orc.h"
#include "guest-symbols/unwind/walk.h"

#define SHORT_BITS 11
#define CACHE_BITS 8

/* @pc: the address looked up; an empty entry is 0 with a NONE rule. */
typedef struct CacheEntry {
    uint64_t pc;
    GsOrcRule rule;
} CacheEntry;

/* Two ways, the one filled last first: half a cache line. */
typedef struct CacheSet {
    CacheEntry way[2];
} CacheSet;
G_STATIC_ASSERT(sizeof(CacheSet) == 32);

/*
 * A short rule and its address in one word: a call frame, based on sp, with bp
 * untouched or saved below. Nineteen frames of twenty have such a rule. The
 * entries of a busy kernel stay in the host's caches while the guest runs.
 * @pc: sign-extended, as addresses of kernel text are; @bp_off: 0 = bp is
 * untouched; @sp_off: 0 = the entry is empty.
 */
typedef struct ShortEntry {
    int32_t pc;
    uint16_t sp_off;
    int16_t bp_off;
} ShortEntry;

typedef struct ShortSet {
    ShortEntry way[2];
} ShortSet;
G_STATIC_ASSERT(sizeof(ShortSet) == 16);

/* The members that every walk needs come first. */
struct GsUnwinder {
    const atomic_uint_fast64_t *generation;
    uint64_t seen;
    GsWalkCache *paths; /* NULL until there is one */
    bool by_frames, no_modules;
    uint64_t low;                       /* as in struct GsKernel */
    GsTrail trail;                      /* of the last walk */
    const GsKernel *k;
    GsRange retpolines;                 /* __x86_indirect_thunk_*() */
    GsOrcReader *reader;
    GsFrameRecords frames;
    GsReturnRecords returns;
    GsReturnCursor cursor;              /* of the last walk */
    ShortSet shorts[1 << SHORT_BITS];
    CacheSet cache[1 << CACHE_BITS];    /* rules that are not short */
};

/* ---- trampolines.c ------------------------------------------------------- */

/* ftrace trampolines, for the walk of unwind.c; called by vCPU threads. */

/**
 * gs_trampoline_rule() - find the rule in an ftrace trampoline
 * @pc: the address looked up, of code without a table
 * @out: (out) the rule
 *
 * A trampoline is a copy of a template at the start of a page, so the rule at
 * an offset in it is the template's rule at the same offset.
 *
 * Returns: false if the page of @pc is no copy of a template.
 */
bool gs_trampoline_rule(const GsKernel *k, GsOrcReader *reader, const Walk *w,
                        uint64_t pc, GsOrcRule *out);

#endif /* GS_UNWIND_INTERNAL_H */
