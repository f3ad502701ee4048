/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the page of ka report shows, and the same as JSON. Texts of the guest
 * are visible ASCII: the readers of program/ saw to that, and the writer
 * escapes what markup, scripts and JSON use. One thread.
 */
#ifndef MC_REPORT_DATA_H
#define MC_REPORT_DATA_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "monitor-cmds/export/export.h"
#include "monitor-cmds/export/timeline.h"

/* ---- strings ------------------------------------------------------------- */

/* A table of strings: each different text has a number. */
/** struct McStrings - @text: (const char *) by number. */
typedef struct McStrings {
    GPtrArray *text;
    GHashTable *ids;
    GStringChunk *bytes;
} McStrings;

McStrings *mc_strings_new(void);
void mc_strings_free(McStrings *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(McStrings, mc_strings_free)

/** mc_strings_add() - return the number of a text. */
unsigned mc_strings_add(McStrings *s, const char *text);
/** mc_strings_text() - return (borrowed) the text of a number. */
const char *mc_strings_text(const McStrings *s, unsigned id);

/* ---- the page ------------------------------------------------------------ */

/* Rows of a table, and cards of errors, that the page has; others are counted
 * and added up. */
#define MC_REPORT_ROWS      500u
#define MC_REPORT_CARDS     500u

/** struct McReportRow - a row of a table. @name: in the table of strings;
 *  @known: one bit for each value */
typedef struct McReportRow {
    unsigned name;
    uint32_t known;
    int64_t value[MC_TOP__COUNT];
} McReportRow;

/**
 * struct McReportTable - the rows of ka top by something
 * @by: (static) by what
 * @row: McReportRow, in the order of ka top
 * @more: number of rows that are not there
 * @rest: their sums
 * @tail: (nullable) McReportRow, all rows behind those of @row, to be joined
 *        with those of another run
 */
typedef struct McReportTable {
    const char *by;
    GArray *row;
    uint64_t more;
    McReportRow rest;
    GArray *tail;
} McReportTable;

/** The stacks of a card. */
typedef enum McCardStack {
    MC_CARD_ALLOC,
    MC_CARD_FREE,
    MC_CARD_ERROR,
    MC_CARD_FORMER_ALLOC,       /* of a former owner */
    MC_CARD_FORMER_FREE,
    MC_CARD__COUNT
} McCardStack;

/** struct McCardPart - a stack of a card. @when: its heading, in the table of
 *  strings; @frame: (unsigned, nullable) names in that table, the leaf first.
 *  NULL: this did not happen, or is not known */
typedef struct McCardPart {
    unsigned when;
    GArray *frame;
} McCardPart;

/**
 * struct McReportCard - an error; texts are numbers in the table of strings
 * @alt: (unsigned) further titles
 * @block: the block, as a line
 * @what: the access or the wrong size, how often, and the neighbour; may be ""
 * @address: for the commands that go on
 */
typedef struct McReportCard {
    unsigned title, fold, exact, kind, block, what, address;
    GArray *alt;
    bool weak;
    McCardPart part[MC_CARD__COUNT];
} McReportCard;

/* Lines of the kernel's log that the page has: the newest ones. */
#define MC_REPORT_LINES     20000u

/** struct McReportLine - a line of the kernel's log. @text: in the table of
 *  strings; @us: of the VM's clock; @ns: of the kernel's; @number: of the line,
 *  from 1 */
typedef struct McReportLine {
    unsigned text, level;
    int64_t us, ns, number;
} McReportLine;

typedef struct McLeakGroups McLeakGroups;
typedef struct McJob McJob;

/**
 * struct McReport - what the page shows
 * @profile: sums by stack, and what is missing in them
 * @command: (owned) how a command line goes on with the same journal or VM: "ka
 *           -f run.journal"
 * @source: (owned) the name of the journal or socket
 * @table: McReportTable
 * @card: McReportCard, the first errors
 * @errors: number of all errors
 * @leaks, @map: the leaks and the heap map
 * @job: (nullable) what scripts/sweep found
 * @base: (nullable, owned) another run, with which the page compares this one
 * @joined: this run or the other one of such a page; @strings are of both
 * @log: McReportLine, the newest lines of the kernel's log
 * @timeline, @steps: (nullable) of a journal
 * @place: of each stack, its node in the tree and the inverted tree, while the
 *         page is written
 */
typedef struct McReport {
    McHeapProfile *profile;
    McStrings *strings;
    char *command;
    char *source;
    GArray *table;
    GArray *card;
    uint64_t errors;
    GArray *log;
    McLeakGroups *leaks;
    struct McMapColumns *map;
    McJob *job;
    struct McReport *base;
    bool joined;
    McTimeline *timeline;
    McTimeSteps *steps;
    unsigned *place[2];
} McReport;

McReport *mc_report_new(void);
void mc_report_free(McReport *r);
/** mc_report_add_base() - return (borrowed) a new report, which the page of @r
 *  compares with @r. Call it before there are tables. */
McReport *mc_report_add_base(McReport *r);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(McReport, mc_report_free)

/** mc_report_text() - return the number of a text; @text: untrusted, bytes that
 *  are not visible ASCII or a blank become \xNN. */
unsigned mc_report_text(McReport *r, const char *text);
/** mc_report_table() - return (borrowed until the next call) a new table. */
McReportTable *mc_report_table(McReport *r, const char *by);
/** mc_report_row() - add a row; the table has a limit. */
void mc_report_row(McReportTable *t, const McReportRow *row);
/** mc_report_card() - return (borrowed until the next call) a new card; NULL
 *  once there are enough. The error is counted. */
McReportCard *mc_report_card(McReport *r);

/** mc_put_report_json() - append all as one object of JSON. */
void mc_put_report_json(GString *to, McReport *r);

/* ---- findings ------------------------------------------------------------ */

/*
 * Findings: the errors of a page that have one fold hash, as scripts/sweep
 * groups and names them.
 */
/** struct McFinding - @name: the title of the first error; with the first
 *  digits of the hash, if findings of other hashes have this title, too. @fold:
 *  in the table of strings; @n: its errors */
typedef struct McFinding {
    unsigned name, fold, n;
} McFinding;

/* ---- job ----------------------------------------------------------------- */

/*
 * The job of a page: what scripts/sweep found in the run, all kinds of findings
 * together, and why the run is not complete.
 */
/* Cards, and lines of a text, that the page has; others are counted. */
#define MC_JOB_CARDS    500u
#define MC_JOB_LINES    500u

/** struct McJobText - a text of several lines. @line: (unsigned) in the table
 *  of strings; @more: lines that are not there */
typedef struct McJobText {
    GArray *line;
    uint64_t more;
} McJobText;

/** struct McJobCard - a finding; texts are in the table of strings. @hidden:
 *  why it does not fail the build, or "" */
typedef struct McJobCard {
    unsigned name, kind, fold, hidden;
    McJobText text;
} McJobCard;

/**
 * struct McJob - all of it
 * @problem: why the run is not complete, or ""
 * @detail: more about that
 * @card: McJobCard, those that fail the build first
 * @failing, @hidden: how many findings there are, by their names
 * @more: cards beyond the limit
 */
struct McJob {
    unsigned problem;
    McJobText detail;
    GArray *card;
    uint64_t failing, hidden, more;
};

McJob *mc_job_new(McReport *r);
void mc_job_free(McJob *j);
/** mc_job_text() - split a text into lines; @text: untrusted, as
 *  mc_report_text() */
void mc_job_text(McReport *r, McJobText *to, const char *text);
/** mc_job_add() - return (borrowed until the next call) a new card; NULL once
 *  there are enough. The card is counted in @more then. */
McJobCard *mc_job_add(McJob *j);
/** mc_job_summary() - return (owned) the job in one line. It says that nothing
 *  was found only if there is no finding at all and the run is complete. */
char *mc_job_summary(const McReport *r);
/** mc_put_job() - append the member "job"; null without one. */
void mc_put_job(GString *to, const McReport *r);

/* ---- joined tables ------------------------------------------------------- */

/*
 * The tables of two runs, joined by the names of their rows:
 *
 *     this run            base                joined
 *     f 64                f 32   g 8          f 64 32    g 0 8
 */
/** struct McJoinedRow - @in: bit 0: the run has it, bit 1: its base has it;
 *  @value: of the run and of its base */
typedef struct McJoinedRow {
    unsigned name, in;
    int64_t value[2][MC_TOP__COUNT];
} McJoinedRow;

/** mc_join_tables() - join the rows of two runs by their names. Rows are sorted
 *  by the difference of live bytes, then of allocated bytes; the largest is
 *  first. Returns: (owned) McJoinedRow. */
GArray *mc_join_tables(const McReportTable *run, const McReportTable *base,
                       const McStrings *strings);
/** mc_put_joined_tables() - append the tables of @r and its base as a member of
 *  JSON. */
void mc_put_joined_tables(GString *to, const McReport *r);

/* ---- leak groups --------------------------------------------------------- */

/*
 * Leaks of a page: the lines of ka leak list and ka leak module. A group is one
 * line: blocks of one allocation stack.
 */
/* Groups that the page has; others are counted. Half of them are asked for of
 * the scan, half of modules. */
#define MC_REPORT_GROUPS    1000u

/**
 * struct McLeakGroup - a group; texts are numbers in the table of strings
 * @module: number of the module that left it, plus 1; 0: of the scan
 * @state: what refers to it, in words
 * @block, @address: the newest block
 * @n, @bytes: blocks of the group, and their requested bytes; @bytes_known
 * @held: further blocks that only these hold
 * @alloc: where the newest block was allocated
 * @weak: the hashes are of a part of the stack. Without title and hashes if the
 *        group is no leak for sure
 */
typedef struct McLeakGroup {
    unsigned module, state, title, fold, exact, block, address;
    uint64_t n, bytes, held;
    bool bytes_known, weak;
    McCardPart alloc;
} McLeakGroup;

/** The sums of a module's report. */
typedef enum McLeftId {
    MC_LEFT_unloaded_us, MC_LEFT_blocks, MC_LEFT_bytes, MC_LEFT_withdrawn,
    MC_LEFT_leaked, MC_LEFT_leaked_bytes, MC_LEFT_kept, MC_LEFT_kept_bytes,
    MC_LEFT_bad_frees, MC_LEFT_unsure, MC_LEFT_not_listed,
    MC_LEFT__COUNT
} McLeftId;
/** mc_left_key() - return (static) the key of ka leak module -j. */
const char *mc_left_key(McLeftId id);

/** struct McLeftModule - a module that was unloaded. @known: one bit for each
 *  value */
typedef struct McLeftModule {
    unsigned name;
    uint32_t known;
    int64_t value[MC_LEFT__COUNT];
} McLeftModule;

/**
 * struct McLeakGroups - all of it
 * @scan: what the last scan says, or why there is none: in the table of
 *        strings
 * @scanned: there was a scan
 * @leaks, @stacks, @bytes, @us: the sums of the scan, and its time
 * @group: McLeakGroup
 * @module: McLeftModule
 * @more: groups beyond the limit
 */
struct McLeakGroups {
    unsigned scan;
    bool scanned;
    int64_t leaks, stacks, bytes, us;
    GArray *group;
    GArray *module;
    uint64_t more;
};

McLeakGroups *mc_leak_groups_new(void);
void mc_leak_groups_free(McLeakGroups *l);
/** mc_leak_groups_add() - return (borrowed until the next call) a new group;
 *  NULL once there are enough. The group is counted. */
McLeakGroup *mc_leak_groups_add(McLeakGroups *l);
/** mc_put_leaks() - append the member "leaks". */
void mc_put_leaks(GString *to, const McLeakGroups *l);

/* ---- map columns --------------------------------------------------------- */

/*
 * The heap map of a page, as columns: the cells and blocks of ka map. Numbers
 * of pages (4 KiB) have 52 bits, which JavaScript's numbers hold; addresses
 * have not.
 */
/* Most cells and blocks that are taken from an answer. */
#define MC_COLUMN_CELLS     32768u
#define MC_COLUMN_BLOCKS    20000u

/** struct McCellColumn - a cell; @cache, @caller: in the table of strings;
 *  @oldest_us: -1: nothing is live */
typedef struct McCellColumn {
    uint64_t va;
    unsigned space, cache, caller;
    int64_t live, pages, freed, blocks, oldest_us;
    bool listed;
} McCellColumn;

/** struct McBlockColumn - a block; @cell: the number of the cell in which it
 *  begins; @state: 0 live, 1 queued by kfree_rcu(), 2 freed */
typedef struct McBlockColumn {
    uint64_t va;
    unsigned cell, cache, caller, state;
    int64_t asked, size, us;
    bool pages;
} McBlockColumn;

/**
 * struct McMapColumns - all of it
 * @cell: McCellColumn, by space, then by address
 * @block: McBlockColumn, by address
 * @cell_bytes: size of a cell; 0: there is no map
 * @live, @blocks: sums of all live blocks
 */
typedef struct McMapColumns {
    GArray *cell, *block;
    int64_t cell_bytes, live, blocks;
} McMapColumns;

McMapColumns *mc_map_columns_new(void);
void mc_map_columns_free(McMapColumns *m);
/** mc_map_columns_find() - find the cell of an address. Return false if there
 *  is none. */
bool mc_map_columns_find(const McMapColumns *m, unsigned space, uint64_t va,
                         unsigned *out);
/** mc_put_map() - append the member "map". */
void mc_put_map(GString *to, const McMapColumns *m);

/* ---- stack tree ---------------------------------------------------------- */

/*
 * Stacks as a tree, for a flame graph: frames of one name below one node are
 * one node, and its values are the sums of its stacks.
 *
 *     stacks, leaf first        tree                      in pre-order
 *     kmalloc f root   64       (all) 96                  depth 0
 *     kmalloc g root   32         root 96                 depth 1
 *                                   f 64                  depth 2
 *                                     kmalloc 64          depth 3
 *                                   g 32                  depth 2
 *                                     kmalloc 32          depth 3
 *
 * In an inverted tree the leaves of the stacks are below the root. Nodes with
 * small values are cut: one node replaces all children of a node that are cut.
 * It has the number of their stacks and the sums of their values, so all nodes
 * still add up to the root.
 */
/* Most nodes of a tree, those for what was cut included. */
#define MC_TREE_NODES   20000u
/* A node is cut if it has less than this part of the root, of each value. */
#define MC_TREE_PART    5000

/* The values of a node. */
#define MC_TREE_VALUES  4
extern const McTopId mc_tree_value[MC_TREE_VALUES];

/**
 * struct McTreeNode - a node
 * @depth: distance to the root
 * @name: of the frame, in the table of strings
 * @cut: not 0: the node stands for so many stacks that were cut, and has no
 *       name
 * @base: its values in the other run
 */
typedef struct McTreeNode {
    unsigned depth;
    unsigned name;
    uint64_t cut;
    int64_t value[MC_TREE_VALUES];
    int64_t base[MC_TREE_VALUES];
} McTreeNode;

/**
 * mc_stack_tree_new() - (owned) build a tree
 * @base: (nullable) another run, whose stacks are joined with those of @p by
 *        the names of their frames
 * @strings: names are added to this table
 * @inverted: the leaves are next to the root
 * @max: most nodes, at least 2
 * @place: (nullable, out) of each stack of @p, the number of the node in which
 *         it ends; if this was cut, of that which stands for it
 *
 * Returns: McTreeNode in pre-order, the children of a node by name; the first
 * one is the root.
 */
GArray *mc_stack_tree_new(const McHeapProfile *p, const McHeapProfile *base,
                          McStrings *strings, bool inverted, unsigned max,
                          unsigned *place);

/* ---- report time --------------------------------------------------------- */

/*
 * The timeline of a page, and sums over time for the interval that a user
 * selects.
 */
/* Cells of all tables together, and steps that are joined no more. */
#define MC_REPORT_CELLS     300000u
#define MC_REPORT_STEPS     8u

/**
 * mc_report_set_time() - give a page its timeline
 * @t, @steps: (owned) of the journal of the page; @steps: nullable: there are
 *             no intervals
 *
 * A journal that a running VM writes can grow while it is read. If the steps
 * have other sums than the page, they are dropped, and a note says so.
 */
void mc_report_set_time(McReport *r, McTimeline *t, McTimeSteps *steps);
/** mc_put_report_time() - append the timeline as a member of JSON, null if
 *  there is none. The trees were put before. */
void mc_put_report_time(GString *to, McReport *r);

/* ---- report html --------------------------------------------------------- */

/* Rows of the table for readers without scripts. */
#define MC_REPORT_PLAIN_ROWS    50u

/** mc_write_report() - write the page; errors of writes are seen by the caller
 *  (ferror()). */
void mc_write_report(McReport *r, FILE *to);

#endif /* MC_REPORT_DATA_H */
