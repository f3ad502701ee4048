/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What callbacks of accesses know of the code that they are for: the address of
 * the instruction, and the class of its function. Any thread, no lock.
 */
#ifndef KT_WATCH_CODE_H
#define KT_WATCH_CODE_H

#include "kalloc-tracer/access/code-classes.h"
#include "kalloc-tracer/capture/record-internal.h"

/** kt_watch_pack() - Make the argument of a callback: the address of an
 *  instruction, and @left, the instructions of its block that have not run,
 *  fewer than 4096. @how: what the callback needs to know, 0 to 15.
 *  Kernel code is within the highest 2^48 bytes. */
static inline void *kt_watch_pack(uint64_t pc, unsigned how, size_t left)
{
    return (void *)(uintptr_t)(pc << 16 | (how & 0xf) << 12 | (left & 0xfff));
}

/** kt_watch_pc(), kt_watch_how(), kt_watch_left() - Read this argument. */
static inline uint64_t kt_watch_pc(void *udata)
{
    return (uint64_t)(uintptr_t)udata >> 16 | 0xffffull << 48;
}

static inline unsigned kt_watch_how(void *udata)
{
    return (uintptr_t)udata >> 12 & 0xf;
}

static inline unsigned kt_watch_left(void *udata)
{
    return (uintptr_t)udata & 0xfff;
}

/** struct KtWatchFunction - a function, while a block is translated; zeroed:
 *  not known yet. @is_part: of a RANGE function: its entry is not checked */
typedef struct KtWatchFunction {
    uint64_t start, end;
    KtCodeClass class;
    bool is_part;
} KtWatchFunction;

/** kt_watch_function() - Set @f to the function at @va. Cheap if it is the same
 *  one. */
void kt_watch_function(KtWatchFunction *f, const KtCodeClasses *c, uint64_t va);

/** kt_watch_class() - Return the class of the code at @pc. */
KtCodeClass kt_watch_class(const KtCodeClasses *c, uint64_t pc);

/** kt_watch_string_how() - Return @how of kt_watch_pack() that says what a
 *  string instruction does. */
unsigned kt_watch_string_how(const GsString *s);
/** kt_watch_string() - Reverse kt_watch_string_how(). */
GsString kt_watch_string(unsigned how);
/** kt_watch_string_len() - Return the bytes that a string instruction that has
 *  not begun writes, and reads if it loads, at most 16 MiB. */
uint64_t kt_watch_string_len(const KtVcpu *v, const GsString *s);
/**
 * kt_watch_may_count_down() - Return true if addresses of the string
 * instruction at @pc may go down: its function has std in front of @pc, or
 * cannot be read
 *
 * The direction itself is not known to plugins. Else addresses go up: functions
 * are called so, and an interrupt comes back to the same function. Handlers of
 * exceptions begin with any direction; they have cld in front of all string
 * instructions.
 */
bool kt_watch_may_count_down(const KtHookCall *m, uint64_t pc);

/** kt_watch_range_len() - Return the bytes that a call of a RANGE function, at
 *  its entry, reads or writes, at most 16 MiB. */
uint64_t kt_watch_range_len(const KtHookCall *m, const KtCodeRow *row);

#endif /* KT_WATCH_CODE_H */
