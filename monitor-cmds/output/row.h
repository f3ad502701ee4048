/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows: the one way from a command to text and to JSON.
 *
 * A command declares the columns of a row in a table, and fills in a struct.
 * Every form of the output walks the table:
 *
 *     typedef struct SeedRow { uint64_t seed; bool set; } SeedRow;
 *
 *     static const McColumn seed_columns[] = {
 *         MC_COLUMN(SeedRow, seed, NUMBER, "seed %", "first number"),
 *         MC_COLUMN(SeedRow, set, YES_NO, NULL, "was it set by the user?"),
 *         MC_END
 *     };
 *     static const McObject seed = { "seed", "ka seed", { seed_columns } };
 *
 *     mc_print(out, &seed, &(SeedRow) { 7, true });
 *
 *     text    seed 7
 *     JSON    {"schema":1,"type":"seed","seed":7,"set":"yes"}
 *
 * Help, man page and docs/commands.md are made from the same tables. A column
 * of a row of blocks that only one command has is in a set of its own, behind
 * or between the sets of all blocks (block-row.h).
 *
 * Called by the commands, on their thread, without the tracer's lock.
 */
#ifndef MC_ROW_H
#define MC_ROW_H

#include "monitor-cmds/output/format.h"

/** McLook - what a value is, and how the forms print it */
typedef enum McLook {
    /* Numbers, of any size. text                JSON */
    MC_LOOK_NUMBER,     /* 255                  255 */
    MC_LOOK_INTEGER,    /* -1                   -1 */
    MC_LOOK_DIFFERENCE, /* +255                 255 */
    MC_LOOK_BYTES,      /* ff                   255 */
    MC_LOOK_HEX,        /* ff                   "0xff" */
    MC_LOOK_ADDRESS,    /* 00000000000000ff     "0x00000000000000ff" */
    MC_LOOK_POINTER,    /* 00000000000000ff, 0  "0xff", "0x0" */
    MC_LOOK_OCTAL,      /* 0377                 255 */
    MC_LOOK_YES_NO,     /* yes                  "yes" */
    MC_LOOK_ACCESS,     /* w, or r for 0        "w" */
    MC_LOOK_LETTER,     /* A                    "A" */
    MC_LOOK_MARGIN,     /* the margin of blocks 255 */
    /* Texts. */
    MC_LOOK_WORD,       /* const char *; blanks are escaped in text, "" is
                         * unknown */
    MC_LOOK_CHARS,      /* the same, char[] */
    MC_LOOK_TEXT,       /* const char *; blanks are kept */
    MC_LOOK_LIST,       /* char **, ended by NULL; in text "; " between */
    /* Ids of the tracer. Stacks have further keys in JSON: with -s key_symbols,
     * with --pc key_at. */
    MC_LOOK_STACK,      /* frames, a blank between; a list */
    MC_LOOK_TAIL,       /* the same, a blank before each */
    MC_LOOK_FRAMES,     /* the same; in JSON one string of names */
    MC_LOOK_STOP,       /* of a stack: why it ends */
    MC_LOOK_CALLER,     /* a frame, by a getter; JSON has key_symbol */
    MC_LOOK_PID, MC_LOOK_COMM,        /* of a task */
    MC_LOOK_CACHE, MC_LOOK_HOOK, MC_LOOK_LAYER,    /* names */
    /* Anything: a function of the column prints it. */
    MC_LOOK_CUSTOM,
} McLook;

/* When a column is printed. Unknown values are "-" and null. */
enum {
    MC_V = 1,               /* only with -v */
    MC_TEXT_V = 2,          /* in text only with -v */
    MC_OMIT = 4,            /* not if it is unknown */
    MC_ZERO = 8,            /* 0 is unknown */
    MC_MOST = 16,           /* the largest number of its size is unknown */
    MC_IF_SET = 32,         /* in text only if it is known, and not 0 */
    MC_HEAD = 64,           /* the long form has it in its first line */
    MC_EXACT = 128,         /* the first frame of the stack is an instruction,
                             * and no return address */
    MC_WIDE = 256,          /* a table has it only if its lines may be long, or
                             * if it is sorted by it */
};

/** McUnit - how people read a number. It is exact with -x, -l and in JSON. */
typedef enum McUnit {
    MC_PLAIN,
    MC_SIZE,            /* bytes: 13.5 MiB */
    MC_DURATION,        /* microseconds: 2.13 s */
    MC_AGE,             /* a time in microseconds: 4 s ago */
} McUnit;

typedef struct McColumn McColumn;

/**
 * struct McValue - a value, as it was read; the look says which member
 * @s: (borrowed) may point to @text; untrusted bytes
 * @list: (borrowed) NULL-terminated
 */
typedef struct McValue {
    uint64_t u;
    McStack stack;
    McFrame frame;
    const char *s;
    const char *const *list;
    char text[32];
} McValue;

/**
 * struct McTest - a column is only in rows in which a number or pointer is set
 * @via, @at, @size: where it is, as in McColumn; @size 0: no test
 * @mask: (or 0) only these bits count
 * @one_of: (or 0) a set: the number must be one of those whose bits are set
 * @no: the opposite
 */
typedef struct McTest {
    uint16_t via, at, size;
    bool no;
    uint64_t mask, one_of;
} McTest;

/**
 * struct McColumn - a column
 * @key: of JSON; NULL: only text has the column
 * @text: what is around the value in text, which stands for "%"; "%5" and
 *        "%-5" are widths, "%*" is one of McOut.width; "{block|blocks}" is the
 *        first word for 1. NULL: only JSON has the column
 * @head: (nullable) heading in a table. Columns without one that have a text
 *        follow as in a line; "": the table has no such column
 * @unit: of a number
 * @help: for the manual
 * @flags: MC_V and so on
 * @via: 0, or offset of a pointer in the row plus 1: the value is in what it
 *       points to, unknown if it is NULL
 * @at, @size: offset and size of the value
 * @mask: (or 0) the value is 1 if one of these bits is set, else 0
 * @name: (nullable) returns (static) the name of the value, a text
 * @get: (nullable) stores the value instead; returns false if it is unknown
 * @put: MC_LOOK_CUSTOM: (nullable) append the value, as JSON or as text
 * @only, @when: (nullable) rows that have the column
 * @text_when: (nullable) the short text has it only then, or with -v
 */
struct McColumn {
    const char *key, *text, *help, *head;
    McLook look;
    McUnit unit;
    unsigned flags;
    uint16_t via, at, size;
    uint64_t mask;
    const char *(*name)(unsigned value);
    bool (*get)(const McOut *o, const McColumn *c, const void *row,
                McValue *v);
    void (*put)(McOut *o, GString *s, const void *row, bool json);
    McTest only;
    bool (*when)(const McOut *o, const void *row);
    bool (*text_when)(const void *row);
};

/* Heads of getters, get_name(), and of functions for @when. */
#define MC_GETTER(name) \
    static bool get_##name(const McOut *o, const McColumn *c, \
                           const void *row, McValue *v)
#define MC_WHEN(name) static bool name(const McOut *o, const void *row)

#define MC_MEMBER(Row, member_) \
    .at = offsetof(Row, member_), .size = sizeof(((Row *)0)->member_)

/* A column: a member of the row, whose name is the key. */
#define MC_COLUMN(Row, member_, look_, text_, help_, ...) \
    { .key = #member_, .look = MC_LOOK_##look_, .text = text_, .help = help_, \
      MC_MEMBER(Row, member_), __VA_ARGS__ }
/* The same with another key. */
#define MC_KEY(key_, Row, member_, look_, text_, help_, ...) \
    { .key = key_, .look = MC_LOOK_##look_, .text = text_, .help = help_, \
      MC_MEMBER(Row, member_), __VA_ARGS__ }
/* A member of what a pointer of the row points to. */
#define MC_VIA(key_, Row, pointer_, member_, look_, text_, help_, ...) \
    { .key = key_, .look = MC_LOOK_##look_, .text = text_, .help = help_, \
      .via = offsetof(Row, pointer_) + 1, \
      MC_MEMBER(__typeof__(*((Row *)0)->pointer_), member_), __VA_ARGS__ }
/* Conditions: a member of the row, or of what a pointer of it points to. */
#define MC_IF(Row, member_) .only = { MC_MEMBER(Row, member_) }
#define MC_UNLESS(Row, member_) .only = { MC_MEMBER(Row, member_), .no = true }
#define MC_IF_VIA(Row, pointer_, member_, ...) \
    .only = { .via = offsetof(Row, pointer_) + 1, \
              MC_MEMBER(__typeof__(*((Row *)0)->pointer_), member_), \
              __VA_ARGS__ }
/* A value that a function computes. */
#define MC_GET(key_, get_, look_, text_, help_, ...) \
    { .key = key_, .look = MC_LOOK_##look_, .text = text_, .help = help_, \
      .get = get_, __VA_ARGS__ }
/* A value that a function prints. */
#define MC_PUT(key_, put_, text_, help_, ...) \
    { .key = key_, .look = MC_LOOK_CUSTOM, .text = text_, .help = help_, \
      .put = put_, __VA_ARGS__ }
/* Text that has no value of its own. */
#define MC_ONLY_TEXT(text_, ...) \
    { .text = text_, .look = MC_LOOK_CUSTOM, __VA_ARGS__ }
#define MC_END { .key = NULL }

/* Sets of columns of an object. */
#define MC_SETS 8

/**
 * struct McObject - a kind of rows
 * @type: value of "type" in JSON; NULL: a row that is only printed as text
 * @help: which command prints it
 * @columns: sets of columns, each ended by MC_END
 * @line: JSON has the line of text, too, as the key "text"
 * @is_table: its rows are a table with headings. Rows with the same headings
 *            are in one table, also those of other objects. JSON has the line
 *            without the table as "text"
 * @long_lines: its lines are never wrapped: they are the guest's texts, or
 *              commands to copy
 * @is_block: its columns are fields of blocks: the manual lists them once; -l
 *            prints a paragraph
 */
typedef struct McObject {
    const char *type, *help;
    const McColumn *columns[MC_SETS];
    bool line;
    bool is_block, is_table, long_lines;
} McObject;

/* The kinds of rows of a command, for its row in commands.def. */
#define MC_OBJECTS(name_, ...) \
    const McObject *const name_[] = { __VA_ARGS__, NULL }

/* An object of one set of columns; with .line; with .line, as a
 * table; with long lines. */
#define MC_OBJECT(type_, help_, ...) \
    { .type = type_, .help = help_, \
      .columns = { (const McColumn[]) { __VA_ARGS__, MC_END } } }
#define MC_TABLE_OBJECT(type_, help_, ...) \
    { .type = type_, .help = help_, .line = true, .is_table = true, \
      .columns = { (const McColumn[]) { __VA_ARGS__, MC_END } } }
#define MC_LONG_OBJECT(type_, help_, line_, ...) \
    { .type = type_, .help = help_, .line = line_, .long_lines = true, \
      .columns = { (const McColumn[]) { __VA_ARGS__, MC_END } } }
#define MC_LINE_OBJECT(type_, help_, ...) \
    { .type = type_, .help = help_, .line = true, \
      .columns = { (const McColumn[]) { __VA_ARGS__, MC_END } } }

/** mc_print() - print a row */
void mc_print(McOut *o, const McObject *object, const void *row);
/** mc_print_line() - print a row whose text is @text, without its newline */
void mc_print_line(McOut *o, const McObject *object, const void *row,
                   const char *text);
/** mc_more() - say that the limit excluded @n rows */
void mc_more(McOut *o, uint64_t n);
/** mc_remark() - print a line of text; nothing in JSON, such as for a listing
 *  without rows */
void mc_remark(McOut *o, const char *text);
void mc_remarkf(McOut *o, const char *format, ...) G_GNUC_PRINTF(2, 3);
/** mc_goes_on() - return true if a listing of @n rows prints row @i, too. Say
 *  how many rows the limit excludes if this is the first of them. */
bool mc_goes_on(McOut *o, uint64_t i, uint64_t n, uint64_t limit);
/** mc_set_margin() - make the margin as wide as "> +<offset> " needs, if it is
 *  smaller */
void mc_set_margin(McOut *o, uint64_t offset);
/** mc_fail() - print that the input is bad */
void mc_fail(McOut *o, const char *text);

/** mc_put_bytes() - append an amount of memory to a sentence: "64 bytes",
 *  "13.5 MiB"; exact as values with a unit are */
void mc_put_bytes(const McOut *o, GString *s, uint64_t bytes);

/* ---- parts of rows ------------------------------------------------------- */

/** mc_value() - read a value. Returns: false if it is unknown */
bool mc_value(const McOut *o, const McColumn *c, const void *row, McValue *v);
/** mc_has_text() - return true if the short text of the row has the column */
bool mc_has_text(const McOut *o, const McColumn *c, const void *row);
/** mc_applies() - return true if the row has the column */
bool mc_applies(const McOut *o, const McColumn *c, const void *row);
/** mc_put_padded() - insert blanks at @from until @width characters follow */
void mc_put_padded(GString *s, size_t from, size_t width);
/** mc_put_text_value() - append a value to @s as the text has it */
void mc_put_text_value(McOut *o, GString *s, const McColumn *c,
                       const McValue *v);
/** mc_put_columns() - append columns as text; @need: only those that have
 *  these flags */
void mc_put_columns(McOut *o, GString *s, const McColumn *columns,
                    const void *row, unsigned need);
/** mc_put_row() - append the columns of a row as text. If lines may not be
 *  long, stacks begin with the first frame that is no helper, and have at most
 *  three frames; what does not fit in a line begins a new one, and what does
 *  not fit there has fewer frames, then no offsets, and is broken at blanks */
void mc_put_row(McOut *o, GString *s, const McObject *object, const void *row);
/** mc_end_row() - end the lines of the row that mc_put_row() has appended to
 *  @o->line; all but the first are indented */
void mc_end_row(McOut *o);
/** mc_json_columns() - append columns as members of a JSON object */
void mc_json_columns(McOut *o, const McColumn *columns, const void *row);
/** mc_json_open() - begin an object with its schema and its type */
void mc_json_open(McOut *o, const McObject *object);
/** mc_put_cell() - append a value as the cell of a table */
void mc_put_cell(McOut *o, GString *s, const McColumn *c, const void *row);
/** mc_put_notes() - append the columns that no table has as cells */
void mc_put_notes(McOut *o, GString *s, const McColumn *columns,
                  const void *row);
/** mc_long_row() - print a row of a block in the long form */
void mc_long_row(McOut *o, const McObject *object, const void *row);

/* ---- tables -------------------------------------------------------------- */

/** mc_table_row() - add a row; it is printed once the table ends */
void mc_table_row(McOut *o, const McObject *object, const void *row);
/** mc_table_line() - add a line of text behind the rows */
void mc_table_line(McOut *o, const char *text);
/** mc_table_put() - print the rows and lines so far, if there is a table */
void mc_table_put(McOut *o);
void mc_table_free(McTable *t);

/* ---- order --------------------------------------------------------------- */

/** mc_sort_column() - return the @i-th column by which rows can be sorted: one
 *  with a key and a number. NULL: there are no more */
const McColumn *mc_sort_column(const McObject *object, unsigned i);
/** mc_find_sort_column() - return the one named @key; NULL and an error that
 *  lists them if there is none */
const McColumn *mc_find_sort_column(const McObject *object, const char *key,
                                    GError **errp);
/** mc_sort_rows() - sort structs of rows by a column, the largest value first,
 *  unknown ones last; equal ones stay in their order */
void mc_sort_rows(McOut *o, const McColumn *c, GArray *rows);

/* ---- figures ------------------------------------------------------------- */

/* An object whose columns are printed below each other, a line each with its
 * help, under headings; in JSON it is one object. */

/** mc_figures_begin() - begin the object */
void mc_figures_begin(McOut *o, const McObject *object);
/** mc_figures() - print columns; @heading: (nullable) the line before them */
void mc_figures(McOut *o, const char *heading, const McColumn *columns,
                const void *row);
/** mc_figures_end() - end the object */
void mc_figures_end(McOut *o);

#endif /* MC_ROW_H */
