/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Return sites: the set of addresses that hooked calls, and calls of call
 * points, return to. QEMU-free.
 *
 * A call instruction ends a translated block, so the return address begins a
 * block. If that block is translated after the site was added, it gets a
 * callback. If it was translated before, it must be invalidated:
 *
 *     vCPU at the hook's entry           translator, any vCPU
 *     1. add the site (publish)          1. add_block(va)
 *     2. may_have_block(va)?             2. find(va): a site?
 *        yes: invalidate, set_ready         yes: add a callback
 *
 * Each side writes first and then reads what the other side wrote, in one total
 * order (SEQ_CST). So at least one of them sees the other, and no return is
 * missed.
 *
 * A site is of hooks, of call points, or of both. Those of hooks are only added
 * during a boot. If there is no call point any more, their use ends, so that
 * code which returns there costs as much as before.
 *
 * Any thread may look up without a lock, because the translator must not block;
 * see qemu-patches/README.md.
 */
#ifndef KT_RETURN_SITES_H
#define KT_RETURN_SITES_H

#include "kalloc-tracer/kt.h"
#include "guest-symbols/base/stream.h"
#include "kalloc-tracer/base/id-map.h"

typedef struct KtReturnSites KtReturnSites;

#define KT_RETURN_SITE_NONE UINT32_MAX

/** Who needs the returns at a site; KT_SITE_ANY: somebody. */
typedef enum KtSiteUse {
    KT_SITE_HOOK = 1,
    KT_SITE_POINT = 2,
    KT_SITE_ANY = 3,
} KtSiteUse;

KtReturnSites *kt_return_sites_new(void);
void kt_return_sites_free(KtReturnSites *s);
/** kt_return_sites_bytes() - Return the size of a table in host memory. */
uint64_t kt_return_sites_bytes(void);

/**
 * kt_return_sites_add() - Make @va a return site of @use
 * @wrapper: for kt_return_sites_wrapper(), if @use is KT_SITE_HOOK
 * @added: (out) true if it was none before
 *
 * Any thread; takes a lock if the site is new.
 *
 * Returns: the site's index, KT_RETURN_SITE_NONE if the table is full.
 */
uint32_t kt_return_sites_add(KtReturnSites *s, uint64_t va, KtSiteUse use,
                             KtHookId wrapper, bool *added);
/** kt_return_sites_end_points() - End the use of all sites by call points. No
 *  vCPU executes; the caller drops translated code afterwards. */
void kt_return_sites_end_points(KtReturnSites *s);
/**
 * kt_return_sites_ready() - Return true if code that was translated at the site
 * before it was added for @use has been invalidated
 *
 * Until then a call can return through that code without a callback. So each
 * vCPU that finds a site which is not ready invalidates the code itself and
 * then calls kt_return_sites_set_ready(). Any thread, lock free.
 */
bool kt_return_sites_ready(const KtReturnSites *s, uint32_t site,
                           KtSiteUse use);
void kt_return_sites_set_ready(KtReturnSites *s, uint32_t site, KtSiteUse use);
/**
 * kt_return_sites_add_block() - Remember that a block at @va is translated
 *
 * Call before kt_return_sites_find(), as the file header explains. Any thread,
 * lock free.
 */
void kt_return_sites_add_block(KtReturnSites *s, uint64_t va);
/**
 * kt_return_sites_may_have_block() - Return true if there may be translated
 * code that begins at @va
 *
 * False is certain. True can be wrong: it is a set of hashes. Call after
 * kt_return_sites_add(). Any thread, lock free.
 */
bool kt_return_sites_may_have_block(KtReturnSites *s, uint64_t va);
/** kt_return_sites_find() - Return the index of the site of @use at @va, or
 *  KT_RETURN_SITE_NONE. Any thread, lock free. */
uint32_t kt_return_sites_find(const KtReturnSites *s, uint64_t va,
                              KtSiteUse use);
/** kt_return_sites_va() - Return the address of a site. */
GS_HOT uint64_t kt_return_sites_va(const KtReturnSites *s, uint32_t site);
/** kt_return_sites_wrapper() - Return the wrapper whose code contains the site,
 *  0 for none. */
GS_HOT KtHookId kt_return_sites_wrapper(const KtReturnSites *s, uint32_t site);
/** kt_return_sites_set_callee() - Remember that calls of the function @id
 *  return to the site. Any thread, lock free. Not part of a snapshot. */
void kt_return_sites_set_callee(KtReturnSites *s, uint32_t site, KtHookId id);
/** kt_return_sites_callee() - Return what kt_return_sites_set_callee() stored
 *  last for the site at @va, 0 for nothing. Any thread, lock free. */
KtHookId kt_return_sites_callee(const KtReturnSites *s, uint64_t va);
/** kt_return_sites_clear() - Remove all sites, for a new boot. No other thread
 *  uses the table. */
void kt_return_sites_clear(KtReturnSites *s);

/** kt_return_sites_pack() - Write all sites of hooks. No other thread adds. */
void kt_return_sites_pack(const KtReturnSites *s, GsOut *p);
/** kt_return_sites_unpack() - Add the sites that kt_return_sites_pack() wrote.
 *  They are ready, because no code is translated yet. @ids: (borrowed)
 *  translates the ids of hooks. */
void kt_return_sites_unpack(KtReturnSites *s, GsBytes *u,
                            const KtIdMap *ids);

#endif /* KT_RETURN_SITES_H */
