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
#include "kalloc-tracer/snapshot/snapshot.h"

typedef struct KtSites KtSites;

#define KT_SITE_NONE UINT32_MAX

KtSites *kt_sites_new(void);
void kt_sites_free(KtSites *s);
/** kt_sites_bytes() - host memory of a table, however full. */
uint64_t kt_sites_bytes(void);

/**
 * kt_sites_add() - make sure that @va is a return site
 * @wrapper: what kt_sites_wrapper() shall say of it
 * @added: (out) this call added it
 *
 * Returns: its index, or KT_SITE_NONE when the table is full.
 */
uint32_t kt_sites_add(KtSites *s, uint64_t va, KtHookId wrapper, bool *added);
/**
 * kt_sites_ready() - has the code at the site been translated anew?
 *
 * Until it has, a call may return through old code and not be seen: whoever
 * makes one meanwhile has to see to it as well, then say so by
 * kt_sites_set_ready().
 */
bool kt_sites_ready(const KtSites *s, uint32_t site);
void kt_sites_set_ready(KtSites *s, uint32_t site);
/**
 * kt_sites_note_block() - a block that begins at @va is about to be translated
 *
 * To be said before the site is looked for, as a site is published before
 * kt_sites_maybe_block() is asked: so one of the two sees the other.
 */
void kt_sites_note_block(KtSites *s, uint64_t va);
/**
 * kt_sites_maybe_block() - may there be translated code that begins at @va?
 *
 * A return site begins a block, because the call before it ends one: where no
 * block began, there is nothing to translate anew. False is certain.
 */
bool kt_sites_maybe_block(KtSites *s, uint64_t va);
/** kt_sites_find() - its index or KT_SITE_NONE; lock free. */
uint32_t kt_sites_find(const KtSites *s, uint64_t va);
GS_HOT uint64_t kt_sites_va(const KtSites *s, uint32_t site);
/** kt_sites_wrapper() - the wrapper that the site lies in, or 0. */
GS_HOT KtHookId kt_sites_wrapper(const KtSites *s, uint32_t site);
/** kt_sites_clear() - a new boot; nobody else uses the table meanwhile. */
void kt_sites_clear(KtSites *s);

/** kt_sites_pack() - all of them; nobody adds meanwhile. */
void kt_sites_pack(const KtSites *s, GsPack *p);
/** kt_sites_unpack() - add what that wrote, ready, for nothing is translated
 *  yet; @saved: (borrowed) whose hooks they name. */
void kt_sites_unpack(KtSites *s, GsUnpack *u, const KtSnapshot *saved);

#endif /* KT_SITES_H */
