/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Paths: whole stacks that were unwound before, recognised by their words.
 * Internal to guest-symbols; one thread.
 *
 * A walk is a function of the words that it reads: return addresses decide
 * by which rule it goes on, pointers where it reads next, and some bits of
 * saved registers whether it ends. A trail notes for each word where it was
 * found, as seen from the one before, and what it decided. Later the same
 * places are read without any rule: a pointer is followed wherever it leads
 * now (RANDOMIZE_KSTACK_OFFSET moves stacks about), all else goes into a
 * hash. If that is the same, a walk would go the same way. Nineteen stacks of
 * twenty in a busy guest are among the last two thousand.
 *
 * The hash is of 64 bits, by a key made at random for each run, since the
 * guest may choose the words: it cannot make up a stack that is taken for
 * another one.
 */
#ifndef GS_PATHS_H
#define GS_PATHS_H

#include "guest-symbols/unwind/walk.h"

#define GS_PATH_CODE 44
#define GS_PATH_EARLY 3

/** enum GsBits - which bits of a word decide; PATH_BITS_NONE: only that it
 *  can be read */
typedef enum GsBits {
    PATH_BITS_NONE,
    PATH_BITS_CS,           /* x86-64: the privilege level */
    PATH_BITS_PSTATE,       /* arm64: the exception level */
    PATH_BITS_STATUS,       /* riscv64: the privilege before */
    PATH_BITS__COUNT,
} GsBits;

/**
 * struct GsTrail - a walk as it is under way
 * @h: of what it has read
 * @at: the place that the next one is told from
 * @sp: the stack pointer of the frame before, while @moving
 * @top: that of this one
 * @first: the second return address, 0 if a look at the stack does not tell
 * @bp_at: where the frame pointer was read, 0 where it is still the register
 * @bp_far: the base has moved since: nothing tells that place from there
 * @far: how often the stack was switched
 * @n, @n_codes: bytes of @code, and codes
 * @early, @n_early: of @h on the way, see walk-cache.c
 * @moving: the frame was found by a pointer
 * @plain: such a walk as can be compared
 * @done: and it has ended
 */
typedef struct GsTrail {
    uint64_t h[2];
    uint64_t ip;
    uint64_t at, sp, top;
    uint64_t first;
    uint64_t bp_at;
    uint8_t far;
    uint8_t n;
    uint8_t n_codes;
    uint8_t n_early;
    uint8_t early[GS_PATH_EARLY];
    bool bp_far;
    bool moving;
    bool plain;
    bool done;
    uint8_t code[GS_PATH_CODE];
} GsTrail;

/**
 * struct GsRecords - how frame records are read
 * @at: from the frame pointer to the record
 * @set, @clear: bits of a return address that say nothing
 */
typedef struct GsRecords {
    int at;
    uint64_t set, clear;
} GsRecords;

typedef struct GsWalkCache GsWalkCache;

/** gs_walk_cache_new() - @records: (copied) of stacks that have such. */
GsWalkCache *gs_walk_cache_new(const GsRecords *records);
void gs_walk_cache_free(GsWalkCache *p);
void gs_walk_cache_clear(GsWalkCache *p);

/**
 * gs_walk_cache_find() - see gs_unwind_again()
 * @w: where the walk begins
 * @first: as in struct GsTrail
 */
GS_HOT bool gs_walk_cache_find(GsWalkCache *p, Walk *w, uint64_t first,
                               uint32_t kind, uint64_t *value);
/** gs_walk_cache_add() - keep @t, unless it cannot be compared. */
void gs_walk_cache_add(GsWalkCache *p, const GsTrail *t, uint32_t kind,
                       uint64_t value);

/* ---- the walk tells ----------------------------------------------------- */

/** gs_trail_begin() - a walk begins as in @w; @t->first is still to be set. */
void gs_trail_begin(GsTrail *t, const Walk *w);
/** gs_trail_call() - the return address @pc was read at @va. */
void gs_trail_call(GsTrail *t, uint64_t va, uint64_t pc);
/** gs_trail_pc() - likewise, and others are told from where the last was. */
void gs_trail_pc(GsTrail *t, uint64_t va, uint64_t pc);
/** gs_trail_bits() - @word was read at @va, of which only these decided. */
void gs_trail_bits(GsTrail *t, uint64_t va, uint64_t word, GsBits bits);
/** gs_trail_sign() - @word was read at @va, and its sign decided, or that
 *  it is 0. */
void gs_trail_sign(GsTrail *t, uint64_t va, uint64_t word);
/** gs_trail_base() - @pointer was read at @va, 0: it is the frame pointer in
 *  the register; the stack goes on from there. */
void gs_trail_base(GsTrail *t, uint64_t va, uint64_t pointer);
/** gs_trail_moved() - and so it did: a walk looks whether the stack pointer
 *  of the next frame can be. */
void gs_trail_moved(GsTrail *t);
/** gs_trail_record() - the frame pointer led to the frame record at @va; its
 *  first word is the next frame pointer. */
void gs_trail_record(GsTrail *t, uint64_t va);
/** gs_trail_frame() - likewise, and the second word is the return address of
 *  which @pc is left without the bits of struct GsRecords. */
void gs_trail_frame(GsTrail *t, uint64_t va, uint64_t pc);
/** gs_trail_fp() - the next frame pointer was read at @va. */
void gs_trail_fp(GsTrail *t, uint64_t va);

/** gs_trail_bp() - the frame pointer was read at @va, of the frame before a
 *  move of the base if @far; it may never matter. */
static inline void gs_trail_bp(GsTrail *t, uint64_t va, bool far)
{
    t->bp_at = va;
    t->bp_far = far;
}

#endif /* GS_PATHS_H */
