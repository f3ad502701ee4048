/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Arming: what the user wants to be checked, what capture/ has made of it, and
 * which code explains accesses. The part of a tracer behind kt-access.h.
 *
 * Capture asks for a filter when it arms, and says what came of it. Threads:
 * any; the part has a lock of its own, a leaf.
 */
#ifndef KT_ARMING_H
#define KT_ARMING_H

#include "kalloc-tracer/api/kt-access.h"

/* ---- the code of modules ------------------------------------------------- */

/*
 * The addresses of the modules whose code is checked. Made when checks begin
 * and when a module is loaded or unloaded; asked when code is translated, and
 * at each call of memcpy() and the like. Constant once published: any thread,
 * no lock.
 */

/**
 * struct KtCodeAreas - a set of addresses
 * @area: of Area, sorted, without overlaps
 * @lo, @len: all areas are in [@lo, @lo + @len); @len 0: there are none
 *
 * Visible for kt_code_areas_has() only.
 */
typedef struct KtCodeAreas {
    GArray *area;
    uint64_t lo, len;
} KtCodeAreas;

/** kt_code_areas_new() - (owned) Make an empty set. */
KtCodeAreas *kt_code_areas_new(void);
void kt_code_areas_free(KtCodeAreas *a);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtCodeAreas, kt_code_areas_free)

/** kt_code_areas_add() - Add [@start, @end). */
void kt_code_areas_add(KtCodeAreas *a, uint64_t start, uint64_t end);

bool kt_code_areas_find(const KtCodeAreas *a, uint64_t va);
/** kt_code_areas_has() - Return true if @va is in one of the areas. */
static inline bool kt_code_areas_has(const KtCodeAreas *a, uint64_t va)
{
    return va - a->lo < a->len && kt_code_areas_find(a, va);
}

/* ---- the filter ---------------------------------------------------------- */

/* Is a block armed, is an access of interest? Any vCPU, several at once,
 * without a lock; see KtBlockFilter. */
typedef struct KtAccessFilter KtAccessFilter;

/** kt_access_filter_new() - (owned) Make a filter. @t: (borrowed) has the names
 *  and stacks of ids; @spec: (copied). */
KtAccessFilter *kt_access_filter_new(KtTracer *t, const KtAccessSpec *spec);
void kt_access_filter_free(KtAccessFilter *f);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtAccessFilter, kt_access_filter_free)

/** kt_access_filter_block() - Return true if accesses to a block of this layer,
 *  cache and allocation stack are checked. */
bool kt_access_filter_block(KtAccessFilter *f, KtLayer layer, KtCacheId cache,
                            KtStackId stack);
/** kt_access_filter_is_few() - Return true if few blocks are armed, and no area
 *  of vmalloc(). */
bool kt_access_filter_is_few(const KtAccessFilter *f);
/** kt_access_filter_slots() - Return true if slots that nobody owns are of
 *  interest: not if blocks are selected by who allocates them. */
bool kt_access_filter_slots(const KtAccessFilter *f);
/** kt_access_filter_verifies() - Return true if errors are to be verified. */
bool kt_access_filter_verifies(const KtAccessFilter *f);
/** kt_access_filter_access() - Return true if an access by this task is of
 *  interest. */
bool kt_access_filter_access(KtAccessFilter *f, KtTaskId task, bool write);
/** kt_access_filter_kind() - Return true if errors of this kind are wanted. */
bool kt_access_filter_kind(const KtAccessFilter *f, KtErrorKind kind);
/** kt_access_filter_module() - Return true if only the code of some modules is
 *  checked, and @name is one of them. */
bool kt_access_filter_module(const KtAccessFilter *f, const char *name);
/** kt_access_filter_areas() - (owned, nullable) Find the code that is checked:
 *  the code of loaded modules that the filter names. NULL: all code. */
KtCodeAreas *kt_access_filter_areas(const KtAccessFilter *f, const GsKernel *k);
/** kt_access_filter_text() - (owned, nullable) Describe a filter in words, NULL
 *  if it has no condition. */
char *kt_access_filter_text(const KtAccessSpec *spec);

/** kt_access_spec_copy() - (owned) Copy a spec; kt_access_spec_free() frees
 *  it. */
KtAccessSpec *kt_access_spec_copy(const KtAccessSpec *spec);
void kt_access_spec_free(KtAccessSpec *spec);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KtAccessSpec, kt_access_spec_free)

/* ---- arming -------------------------------------------------------------- */

typedef struct KtArming KtArming;

/** kt_arming_of() - Return the part of a tracer; any thread. */
KtArming *kt_arming_of(KtTracer *t);
/** kt_arming_on_change() - Have @fn called when the user arms or disarms,
 *  without the lock. Before any other use. */
void kt_arming_on_change(KtArming *a, void (*fn)(void *opaque), void *opaque);
/** kt_arming_filter() - (owned, nullable) Make the filter of what is wanted;
 *  NULL: nothing is. */
KtAccessFilter *kt_arming_filter(KtArming *a);
/** kt_arming_begun() - Say that accesses are checked since guest time @us; the
 *  places that explained accesses are dropped. */
void kt_arming_begun(KtArming *a, uint64_t us);
/** kt_arming_ended() - Say that no access is checked. @why: (static, nullable)
 *  why, although it is wanted */
void kt_arming_ended(KtArming *a, const char *why);
/** kt_arming_disarmed() - Say that blocks of a cache are not checked any
 *  more. */
void kt_arming_disarmed(KtArming *a, KtCacheId cache);
/** kt_arming_explain() - Count an access that is no error. @pc: the
 *  instruction; @era: now, of @pc; see gs_kernel_era() */
void kt_arming_explain(KtArming *a, KtAccessReason why, uint64_t pc,
                       uint32_t era);

#endif /* KT_ARMING_H */
