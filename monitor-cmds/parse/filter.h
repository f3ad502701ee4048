/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The filter options of a command line, and which rows match them.
 *
 * The parser fills an McFilter; commands test each row with it, on their
 * thread.
 */
#ifndef MC_FILTER_H
#define MC_FILTER_H

#include "monitor-cmds/parse/expr.h"

/**
 * struct McFilter - filter options; if none is set, every row matches
 * @spec: conditions on blocks; its strings are owned
 * @has_kind: the error kind must be @kind
 * @block: (owned) made by mc_filter_prepare()
 */
typedef struct McFilter {
    KtBlockSpec spec;
    bool has_kind;
    KtErrorKind kind;
    KtBlockFilter *block;
} McFilter;

void mc_filter_init(McFilter *f);
void mc_filter_deinit(McFilter *f);

/** mc_filter_prepare() - make @f->block. Return false if no known cache has the
 *  name. */
bool mc_filter_prepare(McFilter *f, KtTracer *t, GError **errp);
/** mc_filter_is_set() - return true if some rows may not match */
bool mc_filter_is_set(const McFilter *f);

/** mc_filter_block() - return true if the block matches; @by_free: compare the
 *  time and the task of the free. --state does not apply to past lives. Any
 *  thread. */
static inline bool mc_filter_block(const McFilter *f, const KtBlock *b,
                                   bool by_free)
{
    return kt_block_filter_block(f->block, b, by_free);
}

bool mc_filter_error(const McFilter *f, const KtError *e);
/** mc_filter_task() - return true if a task matches. @pid: of a task that is
 *  not known, -1: unknown, too. */
bool mc_filter_task(const McFilter *f, KtTaskId task, int64_t pid);

/** mc_match() - kt_name_matches(), by a short name */
static inline bool mc_match(const char *pattern, const char *text)
{
    return kt_name_matches(pattern, text);
}

#endif /* MC_FILTER_H */
