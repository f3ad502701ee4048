/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Return sites: addresses that a hooked call will return to. QEMU-free.
 *
 * Grow-only for one boot. Any thread adds and looks up without a lock: the
 * translator must not block, see qemu-patches/README.md on invalidation.
 */
#ifndef KT_SITES_H
#define KT_SITES_H

#include "kalloc-tracer/kt.h"
#include "guest-symbols/base/stream.h"
#include "kalloc-tracer/base/id-map.h"

typedef struct KtReturnSites KtReturnSites;

#define KT_RETURN_SITE_NONE UINT32_MAX

KtReturnSites *kt_return_sites_new(void);
void kt_return_sites_free(KtReturnSites *s);
/** kt_return_sites_bytes() - host memory of a table, however full. */
uint64_t kt_return_sites_bytes(void);

/**
 * kt_return_sites_add() - make sure that @va is a return site
 * @wrapper: what kt_return_sites_wrapper() shall say of it
 * @added: (out) this call added it
 *
 * Returns: its index, or KT_RETURN_SITE_NONE when the table is full.
 */
uint32_t kt_return_sites_add(KtReturnSites *s, uint64_t va, KtHookId wrapper,
                             bool *added);
/**
 * kt_return_sites_ready() - has the code at the site been translated anew?
 *
 * Until it has, a call may return through old code and not be seen: whoever
 * makes one meanwhile has to see to it as well, then say so by
 * kt_return_sites_set_ready().
 */
bool kt_return_sites_ready(const KtReturnSites *s, uint32_t site);
void kt_return_sites_set_ready(KtReturnSites *s, uint32_t site);
/**
 * kt_return_sites_note_block() - a block that begins at @va is about to be
 * translated
 *
 * To be said before the site is looked for, as a site is published before
 * kt_return_sites_maybe_block() is asked: so one of the two sees the other.
 */
void kt_return_sites_note_block(KtReturnSites *s, uint64_t va);
/**
 * kt_return_sites_maybe_block() - may there be translated code that begins at
 * @va?
 *
 * A return site begins a block, because the call before it ends one: where no
 * block began, there is nothing to translate anew. False is certain.
 */
bool kt_return_sites_maybe_block(KtReturnSites *s, uint64_t va);
/** kt_return_sites_find() - its index or KT_RETURN_SITE_NONE; lock free. */
uint32_t kt_return_sites_find(const KtReturnSites *s, uint64_t va);
GS_HOT uint64_t kt_return_sites_va(const KtReturnSites *s, uint32_t site);
/** kt_return_sites_wrapper() - the wrapper that the site lies in, or 0. */
GS_HOT KtHookId kt_return_sites_wrapper(const KtReturnSites *s, uint32_t site);
/** kt_return_sites_clear() - a new boot; nobody else uses the table meanwhile.
 * */
void kt_return_sites_clear(KtReturnSites *s);

/** kt_return_sites_pack() - all of them; nobody adds meanwhile. */
void kt_return_sites_pack(const KtReturnSites *s, GsOut *p);
/** kt_return_sites_unpack() - add what that wrote, ready, for nothing is
 *  translated yet; @ids: of a snapshot, whose hooks they name. */
void kt_return_sites_unpack(KtReturnSites *s, GsBytes *u,
                            const KtIdMap *ids);

#endif /* KT_SITES_H */
