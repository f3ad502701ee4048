/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tables of accounts: rows by caller, stack, cache, task, module or size, for
 * ka top and ka diff. Put together from the tracer's accounts, or counted
 * from blocks and past lives; sorted; printed by the formatters.
 *
 * No locks: one thread. Names of tasks and caches are borrowed from a tracer.
 */
#ifndef MC_TOP_H
#define MC_TOP_H

#include "monitor-cmds/table/tables.h"

/** What rows are by: --by. The first are KtBy. */
typedef enum McBy {
    MC_BY_CALLER = KT_BY_CALLER,
    MC_BY_STACK = KT_BY_STACK,
    MC_BY_CACHE = KT_BY_CACHE,
    MC_BY_TASK = KT_BY_TASK,
    MC_BY_SIZE = KT_BY_SIZE,
    MC_BY_MODULE = KT_BY__COUNT,
    MC_BY__COUNT
} McBy;
/** mc_by_name() - (static) "caller". */
const char *mc_by_name(McBy by);

typedef enum McTopId {
#define MC_TOP(key, group, help) MC_TOP_##key,
#include "monitor-cmds/table/top.def"
    MC_TOP__COUNT
} McTopId;

typedef enum McTopGroup { MC_TOP_CORE, MC_TOP_TOP, MC_TOP_V } McTopGroup;

/** struct McTopColumn - one row of top.def */
typedef struct McTopColumn {
    const char *key;
    McTopGroup group;
    const char *help;
} McTopColumn;
extern const McTopColumn mc_top_columns[MC_TOP__COUNT];

/**
 * struct McTopRow - one account as it is printed
 * @module: (borrowed) of MC_BY_MODULE
 * @a: the amounts; the differences of both in ka diff, modulo 2^64
 * @peak_known, @cross_known: of what is counted from blocks they are not
 * @ends: lifetimes known; @life: their classes, NULL for none
 * @now: time of the newest event; @since: of the oldest live block
 */
typedef struct McTopRow {
    KtAccountKey key;
    const char *module;
    KtAccount a;
    bool peak_known, cross_known;
    uint64_t ends;
    uint32_t *life;
    bool any_live;
    uint64_t now, since;
} McTopRow;

/**
 * struct McTopTable - all of them
 * @tracer: (borrowed) whose ids keys have
 * @kernel: (borrowed, nullable) tells modules
 * @diff: values are differences
 * @all: everything together; @totals: what else is known of it, all 0 when
 *       it was counted from blocks; @counted: that it was; @dropped: of those
 *       that are not known any more
 */
typedef struct McTopTable {
    KtTracer *tracer;
    const GsKernel *kernel;
    McBy by;
    bool diff;
    GHashTable *rows;       /* key as a number -> McTopRow */
    GHashTable *modules;    /* pc -> name */
    GStringChunk *names;    /* of modules, each once */
    McTopRow all;
    KtTotals totals;
    bool counted;
    uint64_t dropped;
    unsigned width[MC_TOP__COUNT];  /* of the text's columns */
} McTopTable;

McTopTable *mc_top_new(KtTracer *tracer, const GsKernel *kernel, McBy by);
void mc_top_free(McTopTable *t);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(McTopTable, mc_top_free)

/** mc_top_add() - an account of @from's, whose ids may be others: its amounts
 *  are added, or taken away. */
void mc_top_add(McTopTable *t, KtTracer *from, const KtAccountKey *key,
                const KtAccount *a, bool take_away);
/** mc_top_count() - a block: its amounts when @amounts, else only what tells
 *  lifetimes, in a row that there is. */
void mc_top_count(McTopTable *t, const KtBlock *b, bool amounts);
/** mc_top_sorted() - (owned) McTopRow, the largest of a column first; rows
 *  without a difference are left out of ka diff. */
GPtrArray *mc_top_sorted(const McTopTable *t, McTopId sort);

/** mc_top_value() - false: not known. Differences have a sign. */
bool mc_top_value(const McTopTable *t, const McTopRow *row, McTopId id,
                  int64_t *out);
/** mc_top_compare_stacks() - by their frames: ids are others in a journal's
 *  reader. */
int mc_top_compare_stacks(KtTracer *t, KtStackId a, KtStackId b);
/** mc_top_shows() - is there such a column? */
bool mc_top_shows(const McTopTable *t, McTopId id, bool verbose);

#endif /* MC_TOP_H */
