/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Quarantine: the blocks whose free is delayed (quarantine=SIZE), the oldest
 * first. A part of a tracer.
 *
 *     kfree(p)   up to 7/8 of SIZE: p waits, kfree(NULL) runs in its place
 *     kfree(p)   above: p waits, kfree(q) runs; q is the oldest that waits
 *     kfree(NULL)       if more than SIZE waits (a snapshot of a VM with a
 *                       larger one was loaded): kfree(q) runs
 *
 * A call frees one block or none, so blocks leave one at a time, and a block
 * waits only if SIZE is not passed: the last eighth is for large blocks that
 * wait in place of small ones. A block waits once: if the guest frees it again,
 * that free is ignored, as KASAN ignores it, because the memory could have
 * another owner by the time of the second one.
 *
 * A reset of the VM and kexec drop all blocks, `ka clear` none: the guest has
 * still to free them.
 *
 * Threads: any; a lock inside, a leaf but for KtFreeInstead.
 */
#ifndef KT_QUARANTINE_H
#define KT_QUARANTINE_H

#include "guest-symbols/base/bytes.h"
#include "kalloc-tracer/api/kt-access.h"

typedef struct KtQuarantine KtQuarantine;

/**
 * struct KtDelayedFree - a block whose free is delayed
 * @ptr: as it was passed to the function that frees
 * @cache: address of its kmem_cache
 * @size: bytes of its slot
 */
typedef struct KtDelayedFree {
    uint64_t ptr, cache;
    uint32_t size;
} KtDelayedFree;

/** What became of the wish to free another block. */
typedef enum KtInstead {
    KT_INSTEAD_REFUSED, /* the call frees its own block */
    KT_INSTEAD_STALE,   /* the same, and the other block is none any more */
    KT_INSTEAD_DONE,
} KtInstead;

/** KtFreeInstead - make the call that is running free @block; NULL: nothing.
 *  The quarantine's lock is held. */
typedef KtInstead (*KtFreeInstead)(void *opaque, const KtDelayedFree *block);

/** What became of a free. */
typedef enum KtDelay {
    KT_DELAY_NO_ROOM,   /* it is done as it is */
    KT_DELAY_REFUSED,   /* the same, because the call could not be changed */
    KT_DELAY_ALONE,     /* it is delayed, and the call frees nothing */
    KT_DELAY_SWAPPED,   /* it is delayed, and the call frees another block */
    KT_DELAY_TWICE,     /* the block waits already; the call frees nothing */
    KT_DELAY_TWICE_SWAPPED, /* the same, but the call frees an older block */
} KtDelay;

/** kt_quarantine_of() - Return the part of a tracer; any thread. */
KtQuarantine *kt_quarantine_of(KtTracer *t);
/** kt_quarantine_is_wanted() - Return true if frees are to be delayed, or
 *  some are delayed already. */
bool kt_quarantine_is_wanted(KtQuarantine *q);
/** kt_quarantine_begun() - Store whether the delay of frees that was asked for
 *  has begun. @why_not: (static) why it has not; NULL: it has. */
void kt_quarantine_begun(KtQuarantine *q, const char *why_not);

/**
 * kt_quarantine_delay() - Delay the free of @block
 * @may_none: the call may free nothing
 * @instead: called to change the call, again if a block is stale, which is
 *           dropped then
 */
KtDelay kt_quarantine_delay(KtQuarantine *q, const KtDelayedFree *block,
                            bool may_none, KtFreeInstead instead, void *opaque);
/** kt_quarantine_drain() - Make a call that frees nothing free the oldest block
 *  if more bytes wait than may. Returns: true if it does. */
bool kt_quarantine_drain(KtQuarantine *q, KtFreeInstead instead, void *opaque);
/** kt_quarantine_has() - Return true if the block at @ptr waits. */
bool kt_quarantine_has(KtQuarantine *q, uint64_t ptr);
/** kt_quarantine_drop() - Drop the block at @ptr, which is freed otherwise.
 *  Returns: true if it waited. */
bool kt_quarantine_drop(KtQuarantine *q, uint64_t ptr);
/** kt_quarantine_drop_cache() - Drop the blocks of the kmem_cache at @cache,
 *  which is destroyed. Returns: how many. */
unsigned kt_quarantine_drop_cache(KtQuarantine *q, uint64_t cache);

/** kt_quarantine_pack() - Write the blocks that wait. */
void kt_quarantine_pack(KtQuarantine *q, GsOut *out);
/** kt_quarantine_unpack() - Read them into an empty quarantine. If the bytes
 *  are wrong, @in fails. Blocks beyond the limit of memory are dropped;
 *  returns: how many. */
uint64_t kt_quarantine_unpack(KtQuarantine *q, GsBytes *in);

#endif /* KT_QUARANTINE_H */
