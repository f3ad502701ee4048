/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Paths: whole stacks that were unwound before, recognised by their words.
 * Internal to guest-symbols; one thread.
 *
 * Where every frame is a call whose size the rules tell, a stack's shape
 * follows from its return addresses: frame by frame, the same address has
 * the same rule, so the next one stands at the same distance. If at all of
 * these distances there is what an earlier walk found, a walk would go the
 * same way. The words are compared independently of each other, where a walk
 * has to wait for one rule and one word after the other; nine stacks of ten
 * in a busy guest are among the last thousand.
 */
#ifndef GS_PATHS_H
#define GS_PATHS_H

#include "walk.h"

#define GS_PATH_STEPS 38

/**
 * struct GsPathStep - a return address; or, where @pc is PATH_REBASE, that
 * the next frame is found by the frame pointer, which is the base from there
 * on
 * @off: words from the base to where it stands on the stack; PATH_REGISTER:
 *       it is still in the register
 */
typedef struct GsPathStep {
    int32_t pc;
    uint16_t off;
} __attribute__((packed)) GsPathStep;

#define PATH_REBASE     1               /* no address of the kernel */
#define PATH_NONE       UINT16_MAX
#define PATH_REGISTER   (UINT16_MAX - 1)
#define PATH_MAX_OFF    (UINT16_MAX - 2)

/**
 * struct GsTrail - a walk as it is under way
 * @ip: the first frame's
 * @base: the stack pointer at first, then see PATH_REBASE
 * @bp_at: where the frame pointer was read, 0 where it is still the register
 * @n: steps
 * @end_off: of the ip in the registers of user mode that ended it, PATH_NONE
 *           at an end marker
 * @plain: such a walk as can be compared
 * @done: and it has ended
 */
typedef struct GsTrail {
    uint64_t ip;
    uint64_t base;
    uint64_t bp_at;
    uint16_t n;
    uint16_t end_off;
    bool plain;
    bool done;
    GsPathStep step[GS_PATH_STEPS];
} GsTrail;

typedef struct GsPaths GsPaths;

GsPaths *gs_paths_new(void);
void gs_paths_free(GsPaths *p);
void gs_paths_clear(GsPaths *p);

/**
 * gs_paths_find() - see gs_unwind_again()
 * @w: one step into the walk
 * @regs: where it began
 */
bool gs_paths_find(GsPaths *p, Walk *w, const GsRegs *regs, uint32_t kind,
                   uint64_t *value);
/** gs_paths_add() - keep @t, unless it cannot be compared. */
void gs_paths_add(GsPaths *p, const GsTrail *t, uint32_t kind,
                  uint64_t value);

/* ---- the walk tells ----------------------------------------------------- */

static inline void gs_trail_begin(GsTrail *t, const GsRegs *regs)
{
    t->ip = regs->ip;
    t->base = regs->sp;
    t->bp_at = 0;
    t->n = 0;
    t->plain = !regs->exact_ip;
    t->done = false;
}

static inline void gs_trail_add(GsTrail *t, int32_t pc, uint64_t off)
{
    if (G_UNLIKELY(t->n == GS_PATH_STEPS)) {
        t->plain = false;
        return;
    }
    t->step[t->n++] = (GsPathStep) { pc, off };
}

/** gs_trail_call() - the return address @pc was read at @va. */
static inline void gs_trail_call(GsTrail *t, uint64_t va, uint64_t pc)
{
    uint64_t off = va - t->base;

    if (G_UNLIKELY(off / 8 > PATH_MAX_OFF || off % 8 ||
                   (uint64_t)(int64_t)(int32_t)pc != pc)) {
        t->plain = false;
    }
    gs_trail_add(t, pc, off / 8);
}

/** gs_trail_bp() - the frame pointer was read at @va. */
static inline void gs_trail_bp(GsTrail *t, uint64_t va)
{
    t->bp_at = va;
}

/** gs_trail_rebase() - the next frame is found by the frame pointer @bp. */
void gs_trail_rebase(GsTrail *t, uint64_t bp);
/** gs_trail_user() - it ended at registers of user mode, @regs. */
void gs_trail_user(GsTrail *t, uint64_t regs);
/** gs_trail_end() - it ended at an end marker. */
void gs_trail_end(GsTrail *t);

#endif /* GS_PATHS_H */
