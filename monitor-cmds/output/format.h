/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Output: rows over the field table, as text or as JSON, to a sink that
 * takes chunks of whole lines.
 */
#ifndef MC_FORMAT_H
#define MC_FORMAT_H

#include "monitor-cmds/parse/parse.h"

/* "schema" of the JSON objects; grows when a key changes its meaning. */
#define MC_JSON_SCHEMA 1
/* Lines are joined into chunks of about so many bytes. */
#define MC_CHUNK 1200
/* Width of the margin before a line, wider when an offset needs it. */
#define MC_MARGIN 6

/** struct McPlace - where a value stands: in the register @reg (borrowed), or
 *  on a stack, at @at */
typedef struct McPlace {
    unsigned vcpu;
    const char *reg;
    uint64_t at;
    uint64_t value;
} McPlace;
/** struct McLeakRow - of a leak; all with its stack have @bytes */
typedef struct McLeakRow {
    KtLeakHold hold;
    uint64_t bytes;
} McLeakRow;

/** struct McRefRow - of a block that refers to another: @at is the offset of
 *  the place in that, @member (nullable) the word's name in its own type */
typedef struct McRefRow {
    uint64_t at;
    const char *member;
} McRefRow;

/**
 * struct McRow - one line of a listing; all borrowed
 * @block: NULL in an error line without a block
 * @error: NULL outside of error lines
 * @hit: the line ka show was asked for, at @offset in the block
 * @same: the line stands for so many other blocks, too
 * @place: (nullable) what holds the address that was looked for
 * @leak, @ref: NULL outside of ka leak scan and ka refs
 */
struct McRow {
    const KtBlock *block;
    const KtError *error;
    bool hit;
    uint64_t offset;
    uint64_t same;
    const McPlace *place;
    const McLeakRow *leak;
    const McRefRow *ref;
};

/**
 * struct McValue - what a getter found; the field's type tells which
 * @s: (borrowed) a name, may point to @text; untrusted bytes
 */
struct McValue {
    uint64_t u;
    KtStackId stack;
    const char *s;
    char text[24];
};

/** struct McStat - one line of ka stat; @s wins over @u when set, @unknown
 *  over both. @help may be NULL. */
typedef struct McStat {
    const char *key;
    const char *s;
    uint64_t u;
    bool hex;
    bool unknown;
    const char *help;
} McStat;

/** struct McFact - something that is known of an address: @key is what knows
 *  it */
typedef struct McFact {
    const char *key;
    const char *text;
} McFact;

/** struct McModule - what a module left behind, summed up; @report: borrowed
 *  @blocks, @bytes: not freed until now; @withdrawn: freed since
 *  @filtered: options keep some out, and let @matching of @blocks through */
typedef struct McModule {
    const KtModuleReport *report;
    uint64_t blocks;
    uint64_t bytes;
    uint64_t withdrawn;
    uint64_t matching;
    bool filtered;
} McModule;

/**
 * struct McFormat - one way to print; each call makes one line
 * @row: a block or error
 * @miss: ka show: no block contains @va
 * @past: @va had @n past lives
 * @more: the limit kept @n rows from being printed
 * @none: a listing without rows; @text says of what
 * @clean: ka error without rows; @events were checked, @text in words
 * @fail: bad input
 * @stat_group: heading of a group; @stat: a row of it
 * @stat_end: after the last row
 * @hook: a hook of ka stat -v
 * @module: what one left behind, its blocks follow
 * @facts: what is known of @va, most specific first; none: nothing is
 * @event: a row of ka events; @mark: what is none, by its name
 * @top_begin: what all rows of ka top or ka diff amount to, before the first
 *             @n of @rows; @top_row: one of them; @top_note: what else is to
 *             be known of it; @stray: a row of ka top --stray
 * @point: a mark of ka mark
 * @ref: ka refs: a word outside of blocks refers to offset @at of the block;
 *       @symbol (nullable) has the word's address
 * @sum: the end of a search, or what else is told in @n figures, of which
 *       @text is what they are in words
 */
typedef struct McFormat {
    void (*row)(McOut *o, const McRow *row);
    void (*miss)(McOut *o, uint64_t va);
    void (*past)(McOut *o, uint64_t va, uint64_t n);
    void (*more)(McOut *o, uint64_t n);
    void (*none)(McOut *o, const char *text);
    void (*clean)(McOut *o, uint64_t events, const char *text);
    void (*fail)(McOut *o, const char *text);
    void (*stat_group)(McOut *o, const char *name);
    void (*stat)(McOut *o, const McStat *s);
    void (*stat_end)(McOut *o);
    void (*hook)(McOut *o, const McHookStatus *h);
    void (*module)(McOut *o, const McModule *m);
    void (*facts)(McOut *o, uint64_t va, const McFact *fact, unsigned n);
    void (*event)(McOut *o, const KtEvent *ev);
    void (*mark)(McOut *o, const char *name, uint64_t value);
    void (*top_begin)(McOut *o, McTopTable *t, const GPtrArray *rows,
                      unsigned n);
    void (*top_row)(McOut *o, const McTopTable *t, const McTopRow *row);
    void (*top_note)(McOut *o, const char *format, ...) G_GNUC_PRINTF(2, 3);
    void (*stray)(McOut *o, const KtStray *s, bool by_stack);
    void (*point)(McOut *o, const KtMarkInfo *p);
    void (*ref)(McOut *o, const KtRef *ref, uint64_t at, const char *symbol);
    void (*sum)(McOut *o, McObjectId id, const McStat *figure, unsigned n,
                const char *text);
} McFormat;
extern const McFormat mc_format_text;
extern const McFormat mc_format_json;

/**
 * struct McOut - where a command's output goes
 * @line: the line being made
 * @chunk: lines not handed to the sink yet
 * @margin: width of the margin of rows
 * @symbols: kernel to name program counters by, NULL prints them raw
 * @names: (nullable) of program counters (uint64_t): these go before what
 *         @symbols says
 * @verbose: -v
 * @closed: the sink wants no more; nothing is printed from here on
 * @stat_open: JSON: the object of ka stat has been begun
 */
struct McOut {
    const McContext *ctx;
    const McFormat *format;
    GString *line;
    GString *chunk;
    unsigned margin;
    const GsKernel *symbols;
    GHashTable *names;
    bool verbose;
    bool closed;
    bool stat_open;
};

void mc_out_init(McOut *o, const McContext *ctx);
/** mc_out_deinit() - hand over what is left, free. */
void mc_out_deinit(McOut *o);

/** mc_out_end_line() - o->line is complete, without its newline; bytes that
 *  are no printable ASCII characters become \xNN. */
void mc_out_end_line(McOut *o);
/** mc_out_printf() - one whole text line, without its newline. */
void mc_out_printf(McOut *o, const char *format, ...) G_GNUC_PRINTF(2, 3);
/** mc_out_text() - text of several lines, each ended by a newline. */
void mc_out_text(McOut *o, const char *text);
/** mc_out_flush() - hand the chunk to the sink. */
void mc_out_flush(McOut *o);

/** mc_event_name() - (static) "alloc", "free" and so on. */
const char *mc_event_name(KtEventKind kind);
/** mc_family_name() - (static) of the call that frees. */
const char *mc_family_name(KtFamily family);

/* ---- shared by the formatters -------------------------------------------- */

/** mc_field_applies() - is @f part of @row? @verbose: with -v. */
bool mc_field_applies(const McField *f, const McRow *row, bool verbose);

/** mc_put_hex() - append in hex, at least @digits. */
void mc_put_hex(GString *s, uint64_t v, unsigned digits);
/** mc_put_decimal() - append in decimal. */
void mc_put_decimal(GString *s, uint64_t v);
/** mc_put_word() - append untrusted bytes; what is no visible ASCII
 *  character becomes \xNN, so that the word stays one. */
void mc_put_word(GString *s, const char *word);

/**
 * mc_put_pc() - append a program counter as symbol+0xoff[module], raw hex
 *               when no symbol covers it
 * @leafward: the frame before it in the stack, 0 for the first
 */
void mc_put_pc(GString *s, const GsKernel *k, uint64_t pc, uint64_t leafward);
/** mc_put_pc_as_kernel() - likewise, as its %pS prints one:
 *  symbol+0xoff/0xsize [module] */
void mc_put_pc_as_kernel(GString *s, const GsKernel *k, uint64_t pc,
                         uint64_t leafward);

/** mc_put_frame() - the same as @o names it; @names: by symbols at all. */
void mc_put_frame(McOut *o, GString *s, bool names, uint64_t pc,
                  uint64_t leafward);

#endif /* MC_FORMAT_H */
