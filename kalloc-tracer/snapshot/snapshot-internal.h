/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of this room: the parts of a snapshot. */
#ifndef KT_SNAPSHOT_INTERNAL_H
#define KT_SNAPSHOT_INTERNAL_H

#include "kalloc-tracer/base/fields.h"
#include "kalloc-tracer/model/model.h"
#include "kalloc-tracer/snapshot/snapshot.h"

/* Kinds of ids in a stream. */
enum { STACKS, TASKS, CACHES, HOOKS, IDS__COUNT };

/**
 * struct KtSnapshotIds - bounds of the ids in a stream
 * @version: of the stream
 * @max: the greatest id of each kind
 * @hook: ids of this tracer's hooks, by the stream's hook ids
 */
typedef struct KtSnapshotIds {
    unsigned version;
    uint64_t max[IDS__COUNT];
    KtHookId hook[256];
} KtSnapshotIds;

/** kt_model_pack() - Write one boot: blocks, past lives, errors, accounts. The
 *  tracer's lock is held. */
void kt_model_pack(const KtModel *m, GsOut *p);
/** kt_model_unpack() - Read one boot into @m, which is empty and belongs to no
 *  tracer yet. Its ids are those of the stream. Errors are in @u. */
void kt_model_unpack(KtModel *m, GsBytes *u, const KtSnapshotIds *ids);
/** kt_model_drop_pages() - Drop all blocks of the page allocator. */
void kt_model_drop_pages(KtModel *m);
/** kt_model_renumber() - Replace ids of the stream by ids of the tracer. Ids of
 *  backtraces belong to @stacks from now on. */
void kt_model_renumber(KtModel *m, const KtRenumber *to,
                       const KtDepot *stacks);

/** kt_accounts_pack() - Write the accounts of now, without marks. */
void kt_accounts_pack(const KtAccounts *a, GsOut *p);
/** kt_accounts_unpack() - Read accounts into @a, which is empty. */
void kt_accounts_unpack(KtAccounts *a, GsBytes *u, const KtSnapshotIds *ids);
/** kt_accounts_renumber() - Replace ids of the stream by ids of the tracer, and
 *  drop marks. What has no id here is counted under id 0: call
 *  kt_accounts_settle() afterwards. */
void kt_accounts_renumber(KtAccounts *a, const KtRenumber *to,
                          const KtDepot *stacks);

/** kt_aliases_pack() - Return (owned) the other names of caches. Call before
 *  the tables of ids are written: then these have the ids of all names. */
GByteArray *kt_aliases_pack(KtTracer *t);
/** kt_aliases_unpack() - Read them. Returns: (owned) KtAlias; ids are those of
 *  the stream. Errors are in @u. */
GArray *kt_aliases_unpack(GsBytes *u, const KtSnapshotIds *ids);
/** kt_aliases_renumber() - Replace ids of the stream by ids of the tracer. */
void kt_aliases_renumber(GArray *aliases, const KtRenumber *to);
/** kt_aliases_install() - Add them to @t. */
void kt_aliases_install(KtTracer *t, const GArray *aliases);

#endif /* KT_SNAPSHOT_INTERNAL_H */
