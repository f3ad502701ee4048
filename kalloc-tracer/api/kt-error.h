/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An error: what the guest did wrong with memory, as queries return it. Plain
 * data: any thread.
 */
#ifndef KT_API_ERROR_H
#define KT_API_ERROR_H

#include "kalloc-tracer/api/kt-types.h"

/** struct KtNeighbour - a live block beside an access. An access far behind the
 *  end of this block, or in front of it, looks like one to the memory there. */
typedef struct KtNeighbour {
    uint64_t va;
    uint64_t requested;
    uint64_t us;            /* of the allocation */
    KtStackId stack;
    KtTaskId task;
    KtCacheId cache;
} KtNeighbour;

/**
 * struct KtErrorAccess - what an error of an access has besides
 * @pc: the instruction; 0: unknown
 * @offset: from the block's first byte (without a block: from KtError.va) to
 *          the first bad byte; the largest of all repeats
 * @count: accesses by this instruction to blocks with the same stacks of
 *         allocation and free
 * @last_us: guest time of the last of them
 * @flags: KT_EVF_WRITE, KT_EVF_RANGE, of the first
 * @has_neighbour: @neighbour is live, and ends at most 256 bytes in front of
 *                 the first bad byte of the first access
 * @behind: it begins so far behind this byte instead: only of free slots, which
 *          an access in front of a block meets
 * @distance: bytes between its end, or its start, and this byte
 */
typedef struct KtErrorAccess {
    uint64_t pc;
    uint64_t offset;
    uint64_t count;
    uint64_t last_us;
    uint8_t flags;
    bool has_neighbour;
    bool behind;
    uint16_t distance;
    KtNeighbour neighbour;
} KtErrorAccess;

/**
 * struct KtError - an error that the guest made
 * @id: 1, 2, ... in the order of detection
 * @va: the address that was freed, allocated or accessed
 * @has_block: @block is the block that had @va at that time; else none did
 * @stack, @task, @cpu, @hook: the call that made the error
 * @cache: the cache that this call named; 0: none or unknown
 * @size: the size that this call passed (KT_ERR_WRONG_SIZE); objects left; the
 *        bytes that were accessed
 * @access: only if kt_error_is_access()
 */
typedef struct KtError {
    uint64_t id;
    KtErrorKind kind;
    uint64_t va;
    bool has_block;
    KtBlock block;
    KtStackId stack;
    KtTaskId task;
    uint16_t cpu;
    KtHookId hook;
    KtCacheId cache;
    uint64_t us;
    uint64_t size;
    KtErrorAccess access;
} KtError;

/** kt_error_is_access() - return true if an access of the guest is the error.
 *  The first frame of KtError.stack is an instruction then, and no return
 *  address. */
static inline bool kt_error_is_access(KtErrorKind kind)
{
    return kind == KT_ERR_USE_AFTER_FREE || kind == KT_ERR_OUT_OF_BOUNDS ||
           kind == KT_ERR_FREE_SLOT;
}

#endif /* KT_API_ERROR_H */
