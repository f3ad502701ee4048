/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A watched block (`ka access watch`): who reads and writes the bytes of one
 * block, whatever its state.
 *
 *     ka access watch VA
 *       spec --> capture/ --> the pages of the block are trapped
 *                               |  an access to such a page is to the block
 *                               v
 *                             record, in a ring of the newest ones
 *
 * The watch is of addresses: it goes on when the block is freed, and when its
 * memory is handed out again. It ends with the boot.
 *
 * Threads: any; a lock inside.
 */
#ifndef KT_API_BLOCK_WATCH_H
#define KT_API_BLOCK_WATCH_H

#include "kalloc-tracer/api/kt-tracer.h"

/* Records of a ring without --ring, and at most. */
#define KT_BLOCK_WATCH_RING     4096u
#define KT_BLOCK_WATCH_RING_MAX (1u << 20)
/* Bytes of the largest block that is watched. */
#define KT_BLOCK_WATCH_LEN_MAX ((uint64_t)256 << 20)

/**
 * struct KtBlockWatchSpec - what is watched
 * @va, @len: the bytes; @len is 1 to KT_BLOCK_WATCH_LEN_MAX
 * @ring: records, 1 to KT_BLOCK_WATCH_RING_MAX
 */
typedef struct KtBlockWatchSpec {
    uint64_t va, len;
    uint64_t ring;
} KtBlockWatchSpec;

/** Bits of KtBlockAccess.flags. */
typedef enum KtBlockAccessFlag {
    KT_BLOCK_ACCESS_WRITE = 1,      /* the memory is written, not read */
    KT_BLOCK_ACCESS_RANGE = 2,      /* by memset() and the like */
    KT_BLOCK_ACCESS_ALLOCATOR = 4,  /* code of the allocator, or memory
                                     * functions and helpers that it called */
} KtBlockAccessFlag;

/**
 * struct KtBlockAccess - a record
 * @us, @last_us: the VM's clock at the first and at the last access
 * @va, @len: bytes of the block, of all accesses together; for
 *            KT_BLOCK_ACCESS_RANGE from the first one to the last one
 * @count: accesses, one after the other by one instruction in one call: to the
 *         same bytes, or each to the bytes behind the one before; for
 *         KT_BLOCK_ACCESS_RANGE by one function, to any of the bytes
 * @stack: the first frame is the instruction, or the entry of a function for
 *         KT_BLOCK_ACCESS_RANGE
 */
typedef struct KtBlockAccess {
    uint64_t us, last_us;
    uint64_t va, len;
    uint64_t count;
    KtStackId stack;
    KtTaskId task;
    uint16_t cpu;
    uint8_t flags;
} KtBlockAccess;

/**
 * kt_block_watch_start() - Record the accesses to a block from now on
 * @spec: (borrowed for the call) replaces the block that was watched before,
 *        whose records are dropped
 * @errp: the memory limit has no room for the ring; then nothing changed
 *
 * Returns: false on error.
 */
bool kt_block_watch_start(KtTracer *t, const KtBlockWatchSpec *spec,
                          GError **errp);
/** kt_block_watch_stop() - Record no more accesses. Records can still be read,
 *  until another block is watched. Returns: false if none was watched. */
bool kt_block_watch_stop(KtTracer *t);

/**
 * struct KtBlockWatchInfo - the state of the watch
 * @any: a block is, or was, watched
 * @on: it still is
 * @why_ended: (static, nullable) why it is not, although nobody stopped it
 * @other_boot: addresses of code in the records are of another boot
 * @spec: the block
 * @records: in the ring; @overwritten: records that newer ones replaced
 * @accesses: number of accesses of all these records
 */
typedef struct KtBlockWatchInfo {
    bool any, on;
    const char *why_ended;
    bool other_boot;
    KtBlockWatchSpec spec;
    uint64_t records, overwritten;
    uint64_t accesses;
} KtBlockWatchInfo;
/** kt_block_watch_info() - Read the state. */
void kt_block_watch_info(KtTracer *t, KtBlockWatchInfo *out);

/** kt_block_watch_read() - (owned, of KtBlockAccess) Copy the newest @max
 *  records, the oldest first. */
GArray *kt_block_watch_read(KtTracer *t, uint64_t max);

#endif /* KT_API_BLOCK_WATCH_H */
