/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The walk cache: recognises stacks that were unwound before, without ORC
 * rules. For the files of unwind/ only; one cache belongs to one thread.
 *
 * A walk depends only on the words that it reads. Return addresses select the
 * next rule, pointers say where to read next, and some bits of saved registers
 * say whether the walk ends. While a stack is unwound, a GsTrail records for
 * each such word its place, relative to the word before, and what it decided:
 *
 *     stack (grows down)          trail
 *     sp+0x00  ...
 *     sp+0x08  return address A   word, 1 up
 *     sp+0x10  ...
 *     sp+0x28  return address B   word, 4 up
 *     sp+0x30  saved sp ------+   base: follow this pointer
 *     ...                     |
 *     irq stack -> task stack v   away (to another stack)
 *     x+0x10   return address C   word, 2 up
 *
 * To recognise a stack, the cache reads the same places again. It follows
 * pointers to wherever they lead now (RANDOMIZE_KSTACK_OFFSET moves stacks),
 * and adds all other words to a hash. If the hash is the same, a walk would
 * read the same words and return the same frames. In a busy guest, nineteen
 * stacks of twenty are among the last two thousand.
 *
 * The hash has 64 bits and a random key for each process (base/name-hash.h).
 * The guest chooses the words, but cannot construct two stacks with one hash.
 */
#ifndef GS_WALK_CACHE_H
#define GS_WALK_CACHE_H

#include "guest-symbols/unwind/walk.h"

#define GS_PATH_CODE 44
#define GS_PATH_EARLY 3

/** enum GsBits - which bits of a word a walk depends on; PATH_BITS_NONE: only
 *  on whether the word is readable */
typedef enum GsBits {
    PATH_BITS_NONE,
    PATH_BITS_CS,           /* x86-64: the privilege level */
    PATH_BITS_PSTATE,       /* arm64: the exception level */
    PATH_BITS_STATUS,       /* riscv64: the privilege before */
    PATH_BITS__COUNT,
} GsBits;

/**
 * struct GsTrail - the record of one walk
 * @h: hash of the words read so far
 * @ip: where the walk began
 * @at: the last place; the next one is recorded relative to it
 * @sp: the stack pointer of the frame before, while @moving
 * @top: the stack pointer of this frame
 * @first: the second return address; 0 if it is not known without a walk
 * @bp_at: where the frame pointer was read; 0: it is still in the register
 * @bp_far: the base has moved since, so @bp_at cannot be recorded from @at
 * @far: how often the stack was switched
 * @n, @n_codes: bytes of @code, and number of codes in it
 * @early, @n_early: parts of @h on the way, see walk-cache.c
 * @moving: the frame was found by a pointer
 * @plain: the walk can be kept: all it depends on is recorded
 * @done: the walk has ended at the end of the stack or in user mode
 * @code: the places, see walk-cache.c
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
 * @at: distance from the frame pointer to the record
 * @set, @clear: bits of a return address to set and to clear (signatures)
 */
typedef struct GsRecords {
    int at;
    uint64_t set, clear;
} GsRecords;

typedef struct GsWalkCache GsWalkCache;

/** gs_walk_cache_new() - (owned) make an empty cache; @records: (copied) for
 *  stacks with frame records. */
GsWalkCache *gs_walk_cache_new(const GsRecords *records);
void gs_walk_cache_free(GsWalkCache *p);
void gs_walk_cache_clear(GsWalkCache *p);

/** gs_walk_cache_expect() - prefetch what gs_walk_cache_find() compares first.
 *  Returns: the key of the walk from @ip; @first: as in struct GsTrail. */
GS_HOT uint32_t gs_walk_cache_expect(const GsWalkCache *p, uint64_t ip,
                                     uint64_t first, uint32_t kind);
/** gs_walk_cache_find() - find the stack that begins in @w, see
 *  gs_unwind_find(); @key: of gs_walk_cache_expect(), with the same @kind. */
GS_HOT bool gs_walk_cache_find(GsWalkCache *p, const Walk *w, uint32_t key,
                               uint32_t kind, uint64_t *value);
/** gs_walk_cache_add() - keep @t with @kind and @value, if it is @plain and
 *  @done. */
void gs_walk_cache_add(GsWalkCache *p, const GsTrail *t, uint32_t kind,
                       uint64_t value);

/* ---- recording a walk --------------------------------------------------- */

/** gs_trail_begin() - begin to record the walk @w; the caller sets @t->first
 *  afterwards. */
void gs_trail_begin(GsTrail *t, const Walk *w);
/** gs_trail_call() - record that the return address @pc was read at @va. */
void gs_trail_call(GsTrail *t, uint64_t va, uint64_t pc);
/** gs_trail_pc() - the same, but later places are still recorded relative to
 *  the place before @va. */
void gs_trail_pc(GsTrail *t, uint64_t va, uint64_t pc);
/** gs_trail_bits() - record that @word was read at @va, and that the walk
 *  depends on @bits of it. */
void gs_trail_bits(GsTrail *t, uint64_t va, uint64_t word, GsBits bits);
/** gs_trail_sign() - record that @word was read at @va, and that the walk
 *  depends on whether it is negative, zero or positive. */
void gs_trail_sign(GsTrail *t, uint64_t va, uint64_t word);
/** gs_trail_base() - record that the walk continues at @pointer, which was
 *  read at @va; @va 0: it is the frame pointer in the register. */
void gs_trail_base(GsTrail *t, uint64_t va, uint64_t pointer);
/** gs_trail_moved() - record the move to the next frame: a walk checks that
 *  its stack pointer is possible. */
void gs_trail_moved(GsTrail *t);
/** gs_trail_record() - record that the frame pointer leads to the frame record
 *  at @va; its first word is the next frame pointer. */
void gs_trail_record(GsTrail *t, uint64_t va);
/** gs_trail_frame() - the same, and the second word is the return address:
 *  @pc, after the bits of struct GsRecords were set and cleared. */
void gs_trail_frame(GsTrail *t, uint64_t va, uint64_t pc);
/** gs_trail_fp() - record that the next frame pointer was read at @va. */
void gs_trail_fp(GsTrail *t, uint64_t va);

/** gs_trail_regs() - record that the frame pointer is @regs plus 1; later
 *  places are relative to @regs. */
void gs_trail_regs(GsTrail *t, uint64_t regs);

/** gs_trail_bp() - note where the frame pointer was read; most walks never use
 *  it. @far: the base moves after this frame. */
static inline void gs_trail_bp(GsTrail *t, uint64_t va, bool far)
{
    t->bp_at = va;
    t->bp_far = far;
}

#endif /* GS_WALK_CACHE_H */
