/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of this room share. */
#ifndef KT_SNAPSHOT_INTERNAL_H
#define KT_SNAPSHOT_INTERNAL_H

#include "kalloc-tracer/model/model.h"
#include "kalloc-tracer/snapshot/snapshot.h"

/** struct KtSnapshotIds - the stream's version; how many there are of what
 *  blocks name; and the rows of this hook table by the stream's numbers */
typedef struct KtSnapshotIds {
    unsigned version;
    uint64_t stacks, tasks, caches, hooks;
    KtHookId hook[256];
} KtSnapshotIds;

/** kt_model_pack() - blocks, past lives, errors. */
void kt_model_pack(const KtModel *m, GsOut *p);
/** kt_model_unpack() - into @m, which is empty. */
void kt_model_unpack(KtModel *m, GsBytes *u, const KtSnapshotIds *ids);
/** kt_model_drop_pages() - it has no blocks of pages. */
void kt_model_drop_pages(KtModel *m);
/** kt_model_renumber() - the ids of all that @m has; those of backtraces are
 *  @stacks' from now on. */
void kt_model_renumber(KtModel *m, const KtRenumber *to,
                       const KtDepot *stacks);

/** kt_accounts_pack() - without marks. */
void kt_accounts_pack(const KtAccounts *a, GsOut *p);
/** kt_accounts_unpack() - into @a, which is empty. */
void kt_accounts_unpack(KtAccounts *a, GsBytes *u, uint32_t n_stacks,
                        uint32_t n_tasks, uint32_t n_caches);
/** kt_accounts_renumber() - other ids, of the backtraces in @stacks; marks
 *  are dropped. What loses its id is nobody's: kt_accounts_settle() follows. */
void kt_accounts_renumber(KtAccounts *a, const KtRenumber *to,
                          const KtDepot *stacks);

/**
 * kt_checkpoint_write() - Write all that the tracer knows into its journal
 *
 * The events in the journal did not lead to what the tracer knows, because a
 * snapshot was loaded: whoever reads the journal continues from this frame.
 * Any thread that holds no lock of the tracer; no events are pushed meanwhile.
 * Does nothing without a journal.
 */
void kt_checkpoint_write(KtTracer *t);

#endif /* KT_SNAPSHOT_INTERNAL_H */
