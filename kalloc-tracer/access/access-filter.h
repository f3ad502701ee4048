/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Access filter: is a block armed, is an access of interest?
 *
 * Threads: any vCPU, several at once, without a lock; see KtBlockFilter.
 */
#ifndef KT_ACCESS_FILTER_H
#define KT_ACCESS_FILTER_H

#include "kalloc-tracer/access/code-areas.h"
#include "kalloc-tracer/api/kt-access.h"

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

#endif /* KT_ACCESS_FILTER_H */
