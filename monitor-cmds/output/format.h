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
/* Most columns of a line about a block, and most lines of a row. */
#define MC_COLUMNS 100
#define MC_ROW_LINES 8
/* It begins each further line of a row. */
#define MC_INDENT "        "
/* Least width of the margin before a line; larger if an offset needs more. */
#define MC_MARGIN 6

typedef struct McOut McOut;
typedef struct McLongPlan McLongPlan;
typedef struct McTable McTable;

/**
 * struct McOut - the output of a command
 * @json: -j
 * @line: the line that is being made; @word: a part of it, for a moment
 * @chunk: complete lines that were not printed yet
 * @margin: width of the margin of rows
 * @width: widths of columns "%*", @n_widths: those that this line had
 * @names: frames have names: text without -x, JSON with -s
 * @symbols: kernel for these names; NULL prints addresses
 * @frame_names: (owned, nullable) names that were looked up, see
 *               mc_frame_name(), in @names_of
 * @stacks: -s
 * @verbose: -v
 * @whole: lines may be longer than MC_COLUMNS: -w, -x, -v, -l
 * @narrow: 0, or how much the row that is printed omits to fit, see row-text.c;
 *          @item_at: where its last item begins; @line_at: where its lines
 *          begin, @n_lines, 0: it is not wrapped; @too_long: an item does not
 *          fit in a line; @stack_lines: a stack may begin a line
 * @long_form: -l; @newest_us: time of the newest event, for ages
 * @exact: sizes and times are plain numbers, without units
 * @table: (owned, nullable) rows and lines behind them that wait until the
 *         widths of their columns are known, see row-table.c
 * @sorted_by: (borrowed, nullable) heading of a column that no table omits
 * @long_plan: (owned, nullable) of the rows of -l
 * @pcs: --pc
 * @closed: nobody reads the output any more; nothing more is printed
 */
struct McOut {
    const McContext *ctx;
    bool json;
    GString *line, *word;
    GString *chunk;
    unsigned margin;
    unsigned width[24], n_widths;
    bool names, stacks;
    const GsKernel *symbols;
    GHashTable *frame_names;
    const GsKernel *names_of;
    bool verbose, whole;
    unsigned narrow;
    size_t item_at, line_at[MC_ROW_LINES];
    unsigned n_lines;
    bool too_long, stack_lines;
    bool long_form, exact;
    McTable *table;
    const char *sorted_by;
    McLongPlan *long_plan;
    bool pcs;
    uint64_t newest_us;
    bool closed;
};

void mc_out_init(McOut *o, const McContext *ctx);
/** mc_out_deinit() - print the last chunk, and free */
void mc_out_deinit(McOut *o);

/** mc_out_end_line() - end o->line, which has no newline. Bytes that are no
 *  printable ASCII characters become \xNN. With -j, a line that is no object
 *  becomes one of the type "text". */
void mc_out_end_line(McOut *o);
/** mc_out_put_line() - print @line, which has no newline, as above */
void mc_out_put_line(McOut *o, GString *line);
/** mc_out_wrapped() - print one line of text. Without `-w` a line of more than
 *  MC_COLUMNS continues on indented lines */
void mc_out_wrapped(McOut *o, const char *text);
/** mc_out_printf() - the same with a format */
void mc_out_printf(McOut *o, const char *format, ...) G_GNUC_PRINTF(2, 3);
/** mc_out_text() - print text of several lines, each with a newline */
void mc_out_text(McOut *o, const char *text);
/** mc_out_flush() - pass the chunk to the sink */
void mc_out_flush(McOut *o);

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
void mc_long_plan_free(McLongPlan *p);
/** mc_long_stack() - print a stack in the long form, -l: a frame a line */
void mc_long_stack(McOut *o, const McStack *stack);
/** mc_frame() - return frame @i, less than s->n */
McFrame mc_frame(const McStack *s, unsigned i);
/** mc_caller() - return the first frame; its address is 0 if there is none */
McFrame mc_caller(const McStack *s);

/** mc_frame_symbol() - find the function of a frame by the names of its time.
 *  @k: (nullable) NULL: nothing is found */
bool mc_frame_symbol(const GsKernel *k, const McFrame *f, GsSymbol *out);
/** mc_stack_module() - return (borrowed until the modules change) the module
 *  that caused what the stack is of: that of the first frame that is in one;
 *  NULL: none is, or @k is NULL */
const char *mc_stack_module(const GsKernel *k, const McStack *stack);
/** mc_frame_at() - return the address by which a line of source is looked up:
 *  of a call its last byte, which is before the return address. @k: (nullable)
 *  as above */
uint64_t mc_frame_at(const GsKernel *k, const McFrame *f);

/**
 * struct McFrameName - the names of a frame
 * @full: symbol+0xoff[module], as of mc_put_pc()
 * @function: the same without the offset
 * @is_helper: it is one of the allocator, or of another function that only does
 *             the work of its caller
 */
typedef struct McFrameName {
    const char *full, *function;
    bool is_helper;
} McFrameName;
/** mc_frame_name() - find the names of a frame by @o->symbols. Each is looked
 *  up once. Returns: (borrowed) valid until the next call */
const McFrameName *mc_frame_name(McOut *o, const McFrame *f);

/** mc_put_pc() - append an address as symbol+0xoff[module], by the names of its
 *  time; in hex if no symbol covers it */
void mc_put_pc(GString *s, const GsKernel *k, const McFrame *f);
/** mc_put_function() - the same without the offset */
void mc_put_function(GString *s, const GsKernel *k, const McFrame *f);
/** mc_put_pc_as_kernel() - the same in the kernel's format %pS:
 *  symbol+0xoff/0xsize [module] */
void mc_put_pc_as_kernel(GString *s, const GsKernel *k, const McFrame *f);

#endif /* MC_FORMAT_H */
