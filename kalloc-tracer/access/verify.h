/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Verify: suspects that wait until the allocator's own lists were read
 * (`ka access on --verify`). Decides; capture/ reads the lists.
 *
 * An allocation that ka does not see makes its owner look as if it used freed
 * memory. The lists tell: a freed object is on one of them. So the first access
 * of an instruction to objects of a cache waits (is held) for a look:
 *
 *     access to a freed object                  look       verdict
 *       |  first of this (pc, cache)            listed     stands
 *       v                                       reused     stands
 *     held, until the lists were read           missing    look again, later
 *       |                                       missing    unseen
 *       |  an allocation of the object          unreadable look again, later
 *       v                                       unreadable stands, counted
 *     released: stands, counted
 *
 * "Missing" must be seen twice, and at the last of all looks: an object can be
 * on its way inside the allocator, on a vCPU whose thread waits for a CPU of
 * the host. After "unseen" the cache is disarmed: its accesses are no errors.
 *
 * A held access becomes an event only when it is decided or released. It is
 * released before the event of the allocation, so the model judges it by the
 * blocks as they were.
 *
 * Threads: any. There is one lock inside: no GMutex, because the thread
 * sanitizer does not know it. A KtLookFn is called with the lock held, a
 * KtVerifyVerdictFn without it.
 */
#ifndef KT_VERIFY_H
#define KT_VERIFY_H

#include <pthread.h>

#include "kalloc-tracer/api/kt-event.h"

/* Accesses that wait at once. */
#define KT_VERIFY_HELD_MAX 1024u
/* Instructions, by cache, that are known. */
#define KT_VERIFY_KEYS_MAX 16384u

/** struct KtVerify - the state; public for kt_verify_waits() only
 *  @due_us: (atomic) guest time of the next look; UINT64_MAX: none
 *  @n_held: (atomic) accesses that wait */
typedef struct KtVerify {
    pthread_mutex_t lock;
    GHashTable *keys;
    GArray *held;
    uint64_t *disarmed;
    uint64_t due_us;
    unsigned n_held;
} KtVerify;

/** What to do with a suspect. */
typedef enum KtVerifyAnswer {
    KT_VERIFY_LOOK,     /* the first one: look */
    KT_VERIFY_HOLD,     /* its instruction and cache are looked at now */
    KT_VERIFY_STANDS,   /* they were looked at: what the other judges say */
    KT_VERIFY_UNSEEN,   /* its cache is disarmed */
    KT_VERIFY_FULL,     /* too many instructions: what the other judges say */
} KtVerifyAnswer;

/** What a look at the lists says of an object. */
typedef enum KtLook {
    KT_LOOK_LISTED,     /* it is free */
    KT_LOOK_REUSED,     /* it was handed out since, by a recorded call */
    KT_LOOK_MISSING,    /* it is on no list */
    KT_LOOK_UNREADABLE,
} KtLook;

typedef enum KtVerifyVerdict {
    KT_VERDICT_STANDS,
    KT_VERDICT_UNVERIFIED,  /* it stands, too: the lists did not tell */
    KT_VERDICT_UNSEEN,      /* no error: the object was handed out unseen */
} KtVerifyVerdict;

/**
 * struct KtHeldAccess - an access that waits
 * @ev: its event
 * @pc: the instruction; @bad: the first bad byte; @cache: of its slab
 * @look: (out of KtLookFn) what the lists say
 * @looks, @missing: looks so far; those in which it was on no list
 * @due_us: guest time of the next look
 */
typedef struct KtHeldAccess {
    KtEvent ev;
    uint64_t pc, bad;
    KtCacheId cache;
    KtLook look;
    unsigned looks, missing;
    uint64_t due_us;
} KtHeldAccess;

/** KtLookFn - set the @look of @n accesses. */
typedef void (*KtLookFn)(void *opaque, KtHeldAccess *held, unsigned n);
/** KtVerifyVerdictFn - called with each access that is decided. @first: it is
 *  the one after which its cache is disarmed */
typedef void (*KtVerifyVerdictFn)(void *opaque, const KtHeldAccess *held,
                                  KtVerifyVerdict verdict, bool first);

KtVerify *kt_verify_new(void);
void kt_verify_free(KtVerify *v);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtVerify, kt_verify_free)

/** kt_verify_ask() - Say what to do with a suspect. KT_VERIFY_LOOK is answered
 *  once: then kt_verify_stands() or kt_verify_hold() must follow. */
KtVerifyAnswer kt_verify_ask(KtVerify *v, uint64_t pc, KtCacheId cache);
/** kt_verify_stands() - Say that the object was found on a list. */
void kt_verify_stands(KtVerify *v, uint64_t pc, KtCacheId cache);
/** kt_verify_hold() - Let an access wait. @held: (copied) Returns: false if too
 *  many wait: it is dropped. */
bool kt_verify_hold(KtVerify *v, const KtHeldAccess *held);
/** kt_verify_is_disarmed() - Return true if allocations from the cache were not
 *  seen. Lock free. */
bool kt_verify_is_disarmed(const KtVerify *v, KtCacheId cache);

/** kt_verify_waits() - Return true if accesses wait. Lock free. */
static inline bool kt_verify_waits(const KtVerify *v)
{
    return __atomic_load_n(&v->n_held, __ATOMIC_RELAXED);
}
/** kt_verify_claim() - Return true if the next look is due, and say that it is
 *  about to be made: others are told that none is due. */
bool kt_verify_claim(KtVerify *v, uint64_t us);
/** kt_verify_due() - Return the guest time of the next look, UINT64_MAX if none
 *  is needed, or it is claimed. Lock free. */
static inline uint64_t kt_verify_due(const KtVerify *v)
{
    return __atomic_load_n(&v->due_us, __ATOMIC_RELAXED);
}

/** kt_verify_look() - Ask @look of the accesses that are due, decide, and call
 *  @verdict, without the lock. One thread at a time. */
void kt_verify_look(KtVerify *v, uint64_t us, KtLookFn look,
                    KtVerifyVerdictFn verdict, void *opaque);
/** kt_verify_release() - Decide the accesses whose bad byte is in [@va, @va +
 *  @len), because it is handed out: KT_VERDICT_UNVERIFIED. The next access of
 *  the same instructions is looked at. */
void kt_verify_release(KtVerify *v, uint64_t va, uint64_t len,
                       KtVerifyVerdictFn verdict, void *opaque);

#endif /* KT_VERIFY_H */
