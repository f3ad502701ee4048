/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the filter options let through.
 */
#ifndef MC_FILTER_H
#define MC_FILTER_H

#include "monitor-cmds/parse/expr.h"

/**
 * struct McFilter - filter options; all zero lets everything through
 * @has_size: requested size must lie in @size
 * @has_time: time must be known and lie in [@since, @until]
 * @task: (owned) pattern of a comm, NULL when @has_pid or for any task
 * @cache: (owned) pattern of a cache name, NULL for any
 * @cache_ids: (owned) the ids it stands for, see mc_filter_prepare()
 * @layer: KT_LAYER_NONE for any
 * @state: 'A', 'F', or 0 for any
 * @has_kind: error kind must be @kind
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

/** mc_filter_prepare() - resolve the cache pattern; false: it is the name of
 *  no cache seen so far. */
bool mc_filter_prepare(McFilter *f, KtTracer *t, GError **errp);
/** mc_filter_is_set() - does it keep anything out? */
bool mc_filter_is_set(const McFilter *f);

/** mc_filter_block() - @by_free: time and task are those of the free. Past
 *  lives pass whatever state is asked for. Any thread. */
bool mc_filter_block(const McFilter *f, KtTracer *t, const KtBlock *b,
                     bool by_free);
bool mc_filter_error(const McFilter *f, KtTracer *t, const KtError *e);

/** mc_match() - is @text matched by @pattern (* any bytes, ? one)? Takes
 *  time of at most the product of the lengths. */
bool mc_match(const char *pattern, const char *text);

#endif /* MC_FILTER_H */
