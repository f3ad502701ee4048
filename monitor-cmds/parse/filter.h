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
 * struct McFilter - filter options; if all are zero, every row matches
 * @has_size: the requested size must be in @size
 * @has_time: the time must be known and in [@since, @until]
 * @task: (owned) pattern of a comm; NULL if @has_pid is set, or for any task
 * @cache: (owned) pattern of a cache name, NULL for any
 * @cache_ids: (owned) ids of the matching caches, see mc_filter_prepare()
 * @layer: KT_LAYER_NONE for any
 * @state: 'A', 'F', or 0 for any
 * @has_kind: the error kind must be @kind
 */
typedef struct McFilter {
    bool has_size;
    bool has_time;
    bool has_pid;
    bool has_kind;
    char state;
    KtLayer layer;
    KtErrorKind kind;
    McRange size;
    uint64_t since;
    uint64_t until;
    uint64_t pid;
    char *task;
    char *cache;
    uint8_t *cache_ids;
} McFilter;

void mc_filter_init(McFilter *f);
void mc_filter_deinit(McFilter *f);

/** mc_filter_prepare() - find the caches of the pattern. Return false if no
 *  known cache has this name. */
bool mc_filter_prepare(McFilter *f, KtTracer *t, GError **errp);
/** mc_filter_knows_cache() - return true if a known cache has this name, or any
 *  may. Any thread. */
bool mc_filter_knows_cache(const McFilter *f, KtTracer *t);
/** mc_filter_knows_task() - return true if an event is of this task, or any may
 *  be. Any thread. */
bool mc_filter_knows_task(const McFilter *f, KtTracer *t);
/** mc_filter_is_set() - return true if some rows may not match */
bool mc_filter_is_set(const McFilter *f);

/** mc_filter_block() - return true if the block matches; @by_free: compare the
 *  time and the task of the free. --state does not apply to past lives. Any
 *  thread. */
bool mc_filter_block(const McFilter *f, KtTracer *t, const KtBlock *b,
                     bool by_free);
bool mc_filter_error(const McFilter *f, KtTracer *t, const KtError *e);

/** mc_filter_time() - return true if a time matches, 0: unknown. */
bool mc_filter_time(const McFilter *f, uint64_t us);
/** mc_filter_task() - return true if a task matches. @pid: of a task that is
 *  not known, -1: unknown, too. */
bool mc_filter_task(const McFilter *f, KtTracer *t, KtTaskId task,
                    int64_t pid);

/** mc_match() - kt_name_matches(), by a short name */
static inline bool mc_match(const char *pattern, const char *text)
{
    return kt_name_matches(pattern, text);
}

#endif /* MC_FILTER_H */
