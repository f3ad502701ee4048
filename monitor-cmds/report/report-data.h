/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the page of ka report shows, and the same as JSON. Texts of the guest
 * are visible ASCII: the readers of program/ saw to that, and the writer
 * escapes what markup, scripts and JSON use. One thread.
 */
#ifndef MC_REPORT_DATA_H
#define MC_REPORT_DATA_H

#include "monitor-cmds/export/heap-profile.h"
#include "monitor-cmds/export/timeline.h"
#include "monitor-cmds/report/strings.h"

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
 * @leaks, @map: see leak-groups.h, map-columns.h
 * @job: (nullable) what scripts/sweep found, see job.h
 * @base: (nullable, owned) another run, with which the page compares this one
 * @joined: this run or the other one of such a page; @strings are of both
 * @timeline, @steps: (nullable) of a journal, see report-time.h
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

#endif /* MC_REPORT_DATA_H */
