/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tables of sums: rows by caller, stack, cache, task, module or size, for ka
 * top and ka diff. Made from the tracer's accounts, or counted from blocks and
 * past lives; sorted; printed by the formatters.
 *
 * Called by commands; one thread, no locks. Names of tasks and caches are
 * borrowed from a tracer.
 */
#ifndef MC_TOP_TABLE_H
#define MC_TOP_TABLE_H

#include "monitor-cmds/table/tables.h"

/** enum McBy - how rows are grouped (--by); the first values are those of
 *  KtBy */
typedef enum McBy {
    MC_BY_CALLER = KT_BY_CALLER,
    MC_BY_STACK = KT_BY_STACK,
    MC_BY_CACHE = KT_BY_CACHE,
    MC_BY_TASK = KT_BY_TASK,
    MC_BY_SIZE = KT_BY_SIZE,
    MC_BY_MODULE = KT_BY__COUNT,
    MC_BY__COUNT
} McBy;
/** mc_by_name() - return (static) "caller" and so on */
const char *mc_by_name(McBy by);
/** mc_by_account() - return the accounts that such sums are added up from */
KtBy mc_by_account(McBy by);

typedef enum McTopId {
#define MC_TOP(key, group, unit, help) MC_TOP_##key,
#include "monitor-cmds/table/top.def"
    MC_TOP__COUNT
} McTopId;

typedef enum McTopGroup {
    MC_TOP_CORE, MC_TOP_WIDE, MC_TOP_TOP, MC_TOP_V
} McTopGroup;

/** struct McTopColumn - one row of top.def */
typedef struct McTopColumn {
    const char *key;
    McTopGroup group;
    const char *help;
} McTopColumn;
extern const McTopColumn mc_top_columns[MC_TOP__COUNT];

/**
 * struct McTopRow - one row
 * @module: (borrowed) of MC_BY_MODULE: the module that caused it, "kernel",
 *          or "?" if it is not known
 * @a: the amounts; in ka diff their differences, modulo 2^64
 * @peak_known, @cross_known: false if the row is counted from blocks
 * @ends: number of known lifetimes
 * @life: number of lifetimes in each class, NULL if there are none
 * @now: time of the newest event
 * @since: time of the oldest live block
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
 * struct McTopTable - all rows
 * @tracer: (borrowed) the tracer to which the ids in keys belong
 * @kernel: (borrowed, nullable) the symbols, for modules
 * @diff: values are differences
 * @all: the sum of all rows
 * @totals: further totals; all 0 if @counted
 * @counted: amounts are counted from blocks and past lives
 * @one_layer: only pages are counted, so those of other layers are, too
 * @dropped: number of blocks and past lives that were evicted
 */
typedef struct McTopTable {
    KtTracer *tracer;
    const GsKernel *kernel;
    McBy by;
    bool diff;
    GHashTable *rows;       /* key as a number -> McTopRow */
    GHashTable *modules;    /* number of a frame -> name */
    GStringChunk *names;    /* names of modules, each once */
    McTopRow all;
    KtTotals totals;
    bool counted;
    bool one_layer;
    uint64_t dropped;
} McTopTable;

McTopTable *mc_top_new(KtTracer *tracer, const GsKernel *kernel, McBy by);
void mc_top_free(McTopTable *t);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(McTopTable, mc_top_free)

/** mc_top_add() - add an account of @from, whose ids may differ, or subtract
 *  it */
void mc_top_add(McTopTable *t, KtTracer *from, const KtAccountKey *key,
                const KtAccount *a, bool subtract);
/** mc_top_row() - return (borrowed) the row of an account of @t's tracer; it is
 *  added if there is none */
const McTopRow *mc_top_row(McTopTable *t, const KtAccountKey *key);
/** mc_top_count() - count a block: its amounts if @amounts, else only its
 *  lifetime, if its row exists. Between kt_query_begin() and kt_query_end() */
void mc_top_count(McTopTable *t, const KtBlock *b, bool amounts);
/** mc_top_sorted() - return (owned) McTopRow pointers, the largest value of the
 *  column first; ka diff has only rows with a difference */
GPtrArray *mc_top_sorted(const McTopTable *t, McTopId sort);

/** mc_top_value() - store a value. Return false if it is unknown. Differences
 *  are signed. */
bool mc_top_value(const McTopTable *t, const McTopRow *row, McTopId id,
                  int64_t *out);
/** mc_top_caller_number() - return a number that identifies a caller; @era is
 *  that of @pc, see GsStackEra. A kernel has its code within a few GiB, so the
 *  upper bits of @pc are the same in all callers, and @era may change them. */
uint64_t mc_top_caller_number(uint64_t pc, uint32_t era);
/** mc_top_compare_stacks() - compare stacks by their frames, because a reader
 *  of the journal has other ids */
int mc_top_compare_stacks(KtTracer *t, KtStackId a, KtStackId b);
/** mc_top_is_sum() - return true if the values of rows can be added up, also
 *  if rows are joined: it is no peak and no time */
bool mc_top_is_sum(McTopId id);
/** mc_top_shows() - return true if the text has this column */
bool mc_top_shows(const McTopTable *t, McTopId id, bool verbose);

#endif /* MC_TOP_TABLE_H */
