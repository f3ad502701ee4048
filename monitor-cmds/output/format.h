/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Output: rows, formatted by the table of fields as text or as JSON, to a sink
 * that is called with chunks of whole lines.
 *
 * Called by the commands, on their thread; an McOut belongs to one thread.
 */
#ifndef MC_FORMAT_H
#define MC_FORMAT_H

#include "monitor-cmds/output/identity.h"
#include "monitor-cmds/parse/parse.h"
#include "monitor-cmds/table/put.h"

/* Value of "schema" in JSON objects. Increment it if a key changes its
 * meaning. */
#define MC_JSON_SCHEMA 1
/* Approximate size of a chunk, in bytes. */
#define MC_CHUNK 1200
/* Least width of the margin before a line; larger if an offset needs more. */
#define MC_MARGIN 6

typedef struct McOut McOut;

/** struct McPlace - the place of a value: the register @reg (borrowed), or the
 *  word at @at of a stack */
typedef struct McPlace {
    unsigned vcpu;
    const char *reg;
    uint64_t at;
    uint64_t value;
} McPlace;
/** struct McLeakRow - a leak; @bytes: sum over all leaks of the line; @held:
 *  number of leaks that only these hold */
typedef struct McLeakRow {
    KtLeakHold hold;
    uint64_t bytes;
    uint64_t held;
} McLeakRow;

/** struct McKeptRow - why a block is in use: a word at @place refers to it;
 *  KT_PLACE__COUNT: no word was found. @by: the word's address in words; @in
 *  (nullable): what has it; @held: number of blocks that only these hold */
typedef struct McKeptRow {
    KtPlace place;
    const char *by, *in;
    uint64_t held;
} McKeptRow;

/** struct McRefRow - a word that points to the block in question: @at is the
 *  offset in that block, @member (nullable) the member that contains the
 *  word */
typedef struct McRefRow {
    uint64_t at;
    const char *member;
} McRefRow;

/** struct McSlotRow - a slot of a slab: @va is the address of its object; print
 *  @number if @numbered; @list (nullable): the list that it is on, and its
 *  place there */
typedef struct McSlotRow {
    uint64_t va;
    uint32_t number;
    bool numbered;
    const char *list;
} McSlotRow;

/**
 * struct McRow - one line of a listing; all borrowed
 * @block: NULL in an error line without a block, and for a slot without one
 * @error: NULL except in error lines
 * @insn: (nullable) error lines of accesses: the instruction, if it is known
 * @page_shift: log2 of the size of the kernel's pages, 0: unknown; only for
 *              error lines
 * @hit: the line of the block that ka show was asked for
 * @offset: offset of the address in that block
 * @same: number of other blocks for which this line stands, too
 * @place: (nullable) register or word that points into the block
 * @object: (nullable) which object the block is of what was asked for
 * @leak, @ref, @kept: NULL except for ka leak and ka refs
 * @slot: NULL except for ka slab and ka cache
 * @identity: (nullable) of an error or a leak
 */
typedef struct McRow {
    const KtBlock *block;
    const KtError *error;
    const GsInstruction *insn;
    unsigned page_shift;
    bool hit;
    uint64_t offset;
    uint64_t same;
    const McPlace *place;
    const char *object;
    const McLeakRow *leak;
    const McRefRow *ref;
    const McKeptRow *kept;
    const McSlotRow *slot;
    const McIdentity *identity;
} McRow;

/**
 * struct McValue - the result of a getter; the field's type says which member
 * @s: (borrowed) a name, may point to @text; untrusted bytes
 * @list: (borrowed) NULL-terminated names
 * @exact: the first frame of @stack is an instruction, and no return address
 */
typedef struct McValue {
    uint64_t u;
    KtStackId stack;
    bool exact;
    const char *s;
    char *const *list;
    char text[24];
} McValue;

/**
 * struct McField - one row of fields.def
 * @get: stores the value of a row; returns false if it is unknown
 */
typedef struct McField {
    const char *key;
    McFieldType type;
    McFieldGroup group;
    const char *before;
    const char *after;
    bool (*get)(KtTracer *t, const McRow *row, McValue *v);
    const char *help;
} McField;
extern const McField mc_fields[MC_FIELD__COUNT];

/**
 * struct McLogRow - a line of the kernel's log; all borrowed
 * @text: @line->len bytes of the guest
 * @has_task, @pid, @comm: the writer
 * @module: NULL: none, or not known
 */
typedef struct McLogRow {
    const KtLogLine *line;
    const char *text;
    bool has_task;
    uint32_t pid;
    const char *comm;
    const char *module;
} McLogRow;

struct McCallRow;

/** struct McStat - one line of ka stat. @unknown overrides @list, a set @list
 *  (NULL-terminated; only in JSON objects) overrides @s, and a set @s overrides
 *  @u. @help may be NULL. */
typedef struct McStat {
    const char *key;
    const char *const *list;
    const char *s;
    uint64_t u;
    bool hex;
    bool unknown;
    const char *help;
} McStat;

/** struct McFact - a fact about an address; @key: the source of the fact */
typedef struct McFact {
    const char *key;
    const char *text;
} McFact;

/**
 * struct McModule - sums of the blocks that a module had not freed
 * @report: (borrowed)
 * @blocks, @bytes: not freed until now
 * @classified: it is known which of them are in use
 * @leaked, @leaked_bytes: of @blocks, those to which nothing in use refers
 * @kept, @kept_bytes: of @blocks, those in use
 * @no_pages: pages of the page allocator were not looked at
 * @withdrawn: freed since
 * @filtered: options exclude some; @matching: number of @blocks that match
 */
typedef struct McModule {
    const KtModuleReport *report;
    uint64_t blocks;
    uint64_t bytes;
    bool classified;
    uint64_t leaked, leaked_bytes;
    uint64_t kept, kept_bytes;
    bool no_pages;
    uint64_t withdrawn;
    uint64_t matching;
    bool filtered;
} McModule;

/**
 * struct McFormat - one output format; each call prints one line
 * @row: a block or error
 * @miss: ka show: no block contains @va
 * @past: @va has @n past lives
 * @more: the limit excluded @n rows
 * @none: a listing without rows; @text: the line
 * @clean: ka error without rows; @events were checked, @text in words
 * @fail: bad input
 * @stat_group: heading of a group; @stat: a row of it
 * @stat_end: after the last row
 * @hook: a hook of ka stat -v
 * @module: a report of ka leak module; its blocks follow
 * @facts: facts about @va, the most specific first; @n can be 0
 * @event: an event of ka events, or of ka trace with the block that it is about
 *         (nullable); @mark: a control frame, by its name
 * @top_begin: the sum of all rows of ka top or ka diff, before the first @n of
 *             @rows; @top_row: a row; @top_note: a remark on the sum
 * @stray: a row of ka top --stray
 * @point: a mark of ka mark
 * @ref: ka refs: a word outside of blocks points to offset @at of the block;
 *       @symbol (nullable): the variable that contains the word
 * @log: a line of the kernel's log; @log_event: the same among events
 * @call: a call of ka calls
 * @watched: an access to the block at @block of ka access watch
 * @call_request, @call_point: rows of ka calls points
 * @sum: the end of a search: @n figures, @text is the same in words
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
    void (*event)(McOut *o, const KtEvent *ev, const KtTracedBlock *b);
    void (*mark)(McOut *o, const char *name, uint64_t value);
    void (*top_begin)(McOut *o, McTopTable *t, const GPtrArray *rows,
                      unsigned n);
    void (*top_row)(McOut *o, const McTopTable *t, const McTopRow *row);
    void (*top_note)(McOut *o, const char *format, ...) G_GNUC_PRINTF(2, 3);
    void (*stray)(McOut *o, const KtStray *s, bool by_stack);
    void (*point)(McOut *o, const KtMarkInfo *p);
    void (*ref)(McOut *o, const KtRef *ref, uint64_t at, const char *symbol);
    void (*log)(McOut *o, const McLogRow *row);
    void (*log_event)(McOut *o, const McLogRow *row);
    void (*call)(McOut *o, const struct McCallRow *row);
    void (*watched)(McOut *o, const KtBlockAccess *a, uint64_t block);
    void (*call_request)(McOut *o, const KtWatchInfo *r);
    void (*call_point)(McOut *o, const KtPointInfo *p, uint64_t per_second);
    void (*sum)(McOut *o, McObjectId id, const McStat *figure, unsigned n,
                const char *text);
} McFormat;
extern const McFormat mc_format_text;
extern const McFormat mc_format_json;

/**
 * struct McOut - the output of a command
 * @line: the line that is being made
 * @chunk: complete lines that were not printed yet
 * @margin: width of the margin of rows
 * @symbols: kernel for the names of program counters; NULL prints them in hex
 * @verbose: -v
 * @long_form: -l; @newest_us: time of the newest event, for ages
 * @pcs: --pc
 * @closed: nobody reads the output any more; nothing more is printed
 * @stat_open: JSON: the object of ka stat was begun
 */
struct McOut {
    const McContext *ctx;
    const McFormat *format;
    GString *line;
    GString *chunk;
    unsigned margin;
    const GsKernel *symbols;
    bool verbose;
    bool long_form;
    bool pcs;
    uint64_t newest_us;
    bool closed;
    bool stat_open;
};

void mc_out_init(McOut *o, const McContext *ctx);
/** mc_out_deinit() - print the last chunk, and free */
void mc_out_deinit(McOut *o);

/** mc_out_end_line() - end o->line, which has no newline. Bytes that are no
 *  printable ASCII characters become \xNN. */
void mc_out_end_line(McOut *o);
/** mc_out_printf() - print one whole text line, without its newline */
void mc_out_printf(McOut *o, const char *format, ...) G_GNUC_PRINTF(2, 3);
/** mc_out_text() - print text of several lines, each with a newline */
void mc_out_text(McOut *o, const char *text);
/** mc_out_flush() - pass the chunk to the sink */
void mc_out_flush(McOut *o);

/** mc_event_name() - return (static) "alloc", "free" and so on */
const char *mc_event_name(KtEventKind kind);
/** mc_family_name() - return (static) the name of the allocator that was
 *  called */
const char *mc_family_name(KtFamily family);

/** struct McWalk - how a format prints a member of an object; @word: NULL and
 *  "" are omitted */
typedef struct McWalk {
    void (*word)(McOut *o, const char *key, const char *word);
    void (*number)(McOut *o, const char *key, uint64_t v);
} McWalk;
/** mc_walk_event() - print what an event names: allocator, cache, task, vCPU
 *  and hook, in the order of all formats */
void mc_walk_event(McOut *o, const KtEvent *ev, const McWalk *walk);
/** mc_walk_traced() - print what is known of the block that an event is
 *  about, with keys that begin with block_; nothing if it is not known */
void mc_walk_traced(McOut *o, const KtTracedBlock *b, const McWalk *walk);

/* ---- shared by the formatters -------------------------------------------- */

/** mc_field_applies() - return true if @row has field @f; @verbose: -v */
bool mc_field_applies(const McField *f, const McRow *row, bool verbose);

/** mc_text_stack() - append the frames of a stack. @exact: the first one is an
 *  instruction, and no return address */
void mc_text_stack(McOut *o, KtStackId id, bool exact);
/** mc_put_padded() - insert blanks at @from until @width characters follow */
void mc_put_padded(GString *s, size_t from, size_t width);
/* Rows of accounts as text. */
void mc_text_top_begin(McOut *o, McTopTable *t, const GPtrArray *rows,
                       unsigned n);
void mc_text_top_row(McOut *o, const McTopTable *t, const McTopRow *row);
void mc_text_top_note(McOut *o, const char *format, ...) G_GNUC_PRINTF(2, 3);
void mc_text_stray(McOut *o, const KtStray *s, bool by_stack);
void mc_text_point(McOut *o, const KtMarkInfo *p);
/** mc_text_fields() - append the fields of a row before field @end */
void mc_text_fields(McOut *o, const McRow *row, unsigned end);
/** mc_long_stack() - print a stack in the long form, -l: a frame a line.
 *  @exact: as for mc_text_stack() */
void mc_long_stack(McOut *o, KtStackId id, bool exact);
/** mc_long_row() - print a row in the long form */
void mc_long_row(McOut *o, const McRow *row);
/* A row of ka access watch, as text and as JSON. */
void mc_text_watched(McOut *o, const KtBlockAccess *a, uint64_t block);
void mc_json_watched(McOut *o, const KtBlockAccess *a, uint64_t block);
/* A row of ka calls, as text and as JSON. */
void mc_text_call(McOut *o, const struct McCallRow *row);
void mc_text_call_request(McOut *o, const KtWatchInfo *r);
void mc_text_call_point(McOut *o, const KtPointInfo *p, uint64_t per_second);
void mc_json_call(McOut *o, const struct McCallRow *row);
void mc_json_call_request(McOut *o, const KtWatchInfo *r);
void mc_json_call_point(McOut *o, const KtPointInfo *p, uint64_t per_second);
/** mc_put_log_text() - append a text of the guest's log. A byte that is no
 *  printable ASCII character, and a backslash, becomes \xNN, as in /dev/kmsg,
 *  so that the text stays one line. */
void mc_put_log_text(GString *s, const char *text, size_t len);
/** mc_log_row() - fill in the writer of @row->line. @comm: holds the name */
void mc_log_row(KtTracer *t, McLogRow *row, char comm[17]);
/* A log line in each form: McFormat's log and log_event. */
void mc_text_log(McOut *o, const McLogRow *row);
void mc_text_log_event(McOut *o, const McLogRow *row);
void mc_json_log(McOut *o, const McLogRow *row);
void mc_ftrace_log(McOut *o, const McLogRow *row);

/* ---- frames ------------------------------------------------------------- */

/**
 * struct McFrame - an address of code, with what its name depends on
 * @leafward: the previous frame of the stack (nearer to the leaf), 0 if @pc is
 *            the first
 * @era: when the stack was taken, see GsStackEra
 * @exact: @pc is an instruction, and no return address
 */
typedef struct McFrame {
    uint64_t pc, leafward;
    uint32_t era;
    bool exact;
} McFrame;

/** struct McStack - the frames of a stack (borrowed); @n is 0 if there is
 *  none. @exact: the first frame is an instruction, and no return address */
typedef struct McStack {
    const uint64_t *pc;
    unsigned n;
    bool exact;
    GsStop stop;
    GsStackEra era;
} McStack;
McStack mc_stack(KtTracer *t, KtStackId id);
/** mc_frame() - return frame @i, less than s->n */
McFrame mc_frame(const McStack *s, unsigned i);
/** mc_caller() - return the first frame; its address is 0 if there is none */
McFrame mc_caller(const McStack *s);

/** mc_frame_symbol() - find the function of a frame by the names of its time.
 *  @k: (nullable) NULL: nothing is found */
bool mc_frame_symbol(const GsKernel *k, const McFrame *f, GsSymbol *out);
/** mc_frame_at() - return the address by which a line of source is looked up:
 *  of a call its last byte, which is before the return address. @k: (nullable)
 *  as above */
uint64_t mc_frame_at(const GsKernel *k, const McFrame *f);

/** mc_put_pc() - append an address as symbol+0xoff[module], by the names of its
 *  time; in hex if no symbol covers it */
void mc_put_pc(GString *s, const GsKernel *k, const McFrame *f);
/** mc_put_pc_as_kernel() - the same in the kernel's format %pS:
 *  symbol+0xoff/0xsize [module] */
void mc_put_pc_as_kernel(GString *s, const GsKernel *k, const McFrame *f);

#endif /* MC_FORMAT_H */
