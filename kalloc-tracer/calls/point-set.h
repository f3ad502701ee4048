/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A point set: the call points of one moment. QEMU-free.
 *
 * A set does not change after kt_point_set_new(). call-points.c publishes each
 * new set with a release store; translation and callbacks read it without a
 * lock. The old set is freed while no vCPU executes.
 *
 *     point[]     sorted by id
 *     at[]        hash table: address -> index of a point + 1
 *     page[]      hash set of the pages that blocks with an entry can begin in
 */
#ifndef KT_POINT_SET_H
#define KT_POINT_SET_H

#include "kalloc-tracer/api/kt-calls.h"
#include "guest-symbols/gs.h"

struct KtCallPoint;
struct KtDerefPlan;
typedef const struct KtDerefPlan *(*KtPointPlanFn)(
    void *opaque, const struct KtCallPoint *point);

/**
 * struct KtPointRequest - what somebody asked for
 * @id: its number among those of its @use; numbers are not used again
 * @use: KT_POINT_WATCH or KT_POINT_FAULT
 * @text: the patterns, joined by ","
 * @pattern: (owned) names or globs of functions, each perhaps with "module:"
 * @opaque: (owned) of the caller
 * @free: (nullable) frees @opaque
 * @plan: (nullable) as in KtPointSpec
 *
 * Immutable, with a reference count (g_atomic_rc_box): a published set keeps
 * its requests alive.
 */
typedef struct KtPointRequest {
    uint32_t id;
    KtPointUse use;
    char *text;
    char **pattern;
    void *opaque;
    GDestroyNotify free;
    KtPointPlanFn plan;
} KtPointRequest;

KtPointRequest *kt_point_request_ref(KtPointRequest *r);
void kt_point_request_unref(KtPointRequest *r);

/**
 * struct KtCallPoint - a function
 * @id: its number
 * @uses: bits of KtPointUse
 * @clone: the compiler made this copy of the function (".isra.0"): its
 *         arguments are not those of the prototype
 * @va: address of the first instruction
 * @size: bytes of code; 0: unknown
 * @name, @module: (borrowed until the end of the boot) @module is NULL for the
 *                 kernel proper
 * @proto: (borrowed likewise, nullable) its prototype
 * @n_args: argument registers to record
 * @module_va: as gs_kernel_add_module() had it; 0 for the kernel proper
 * @plan: (borrowed likewise, nullable) the values that are read at its calls
 * @n_requests, @request: (owned) the requests that match it, the oldest first
 */
typedef struct KtCallPoint {
    KtPointId id;
    uint8_t uses;
    bool clone;
    uint64_t va, size;
    const char *name, *module;
    const GsPrototype *proto;
    uint8_t n_args;
    uint64_t module_va;
    const struct KtDerefPlan *plan;
    unsigned n_requests;
    KtPointRequest **request;
} KtCallPoint;

typedef struct KtPointSet KtPointSet;

/** kt_point_set_new() - (owned) Make a set of copies of @points, which are
 *  sorted by id. Takes references on their requests. */
KtPointSet *kt_point_set_new(const KtCallPoint *points, unsigned n);
/** kt_point_set_free() - Free a set that nobody reads any more. */
void kt_point_set_free(KtPointSet *s);
/** kt_point_set_bytes() - Return the host memory of a set, 0 for
 *  NULL. */
uint64_t kt_point_set_bytes(const KtPointSet *s);

/** kt_point_set_page() - Return true if a translated block that begins at @va
 *  can contain an entry. Called for each block that QEMU translates. */
bool kt_point_set_page(const KtPointSet *s, uint64_t va);
/** kt_point_set_at() - (borrowed, nullable) Return the point whose function
 *  begins at @va. */
const KtCallPoint *kt_point_set_at(const KtPointSet *s, uint64_t va);
/** kt_point_set_get() - (borrowed, nullable) Return the point @id; NULL if it
 *  was deleted. */
GS_HOT const KtCallPoint *kt_point_set_get(const KtPointSet *s, KtPointId id);
/** kt_point_set_count() - Return the number of points. */
unsigned kt_point_set_count(const KtPointSet *s);
/** kt_point_set_uses() - Return the uses of all points: bits of KtPointUse; 0
 *  for NULL. */
GS_HOT unsigned kt_point_set_uses(const KtPointSet *s);
/** kt_point_set_nth() - (borrowed) Return the @i-th point, by id. */
const KtCallPoint *kt_point_set_nth(const KtPointSet *s, unsigned i);

/** kt_call_point_watch() - (borrowed, nullable) Return the request whose
 *  options apply to the call records of a point: the newest of them. */
const KtPointRequest *kt_call_point_watch(const KtCallPoint *p);

#endif /* KT_POINT_SET_H */
