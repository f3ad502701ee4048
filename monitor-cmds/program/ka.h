/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parts of the program `ka`, which queries a journal file or a running VM. All
 * run on the program's only thread, and return an exit status: 0 answered, 1
 * bad command line, or ka slab check found something, 2 no answer.
 */
#ifndef MC_KA_H
#define MC_KA_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "kalloc-tracer/kt.h"
#include "monitor-cmds/export/export.h"
#include "monitor-cmds/program/source-lines.h"

#define KA_ANSWERED     0
#define KA_BAD_LINE     1
#define KA_FOUND        1
#define KA_NO_ANSWER    2
/* Of ka_export(): the command has nothing to write; run it as any other. */
#define KA_NOT_HERE     (-1)

/**
 * struct KaSource - where answers come from; paths are borrowed
 * @file, @until_us: a journal, and the time up to which it is read
 * @socket: of a running VM; @file or @socket is set
 * @replay: (owned) the journal that was read; NULL: a VM
 */
typedef struct KaSource {
    const char *file;
    const char *socket;
    uint64_t until_us;
    KtReplay *replay;
} KaSource;

/** ka_ask_file() - run @line on the journal of @s; @types: (nullable) path of a
 *  file with the kernel's types */
int ka_ask_file(const KaSource *s, const char *line, const char *types);
/** ka_read_file() - (owned) read the journal of @s, and print on stderr what is
 *  missing; @apply: its events make the answers. Return NULL after an error,
 *  which is printed. */
KtReplay *ka_read_file(const KaSource *s, bool apply);
/** ka_query_replay() - run @line on the journal that was read, and return the
 *  answer; @answer: (out, owned) the text, NULL without an answer */
int ka_query_replay(const KaSource *s, const char *line, char **answer);
/** ka_join_words() - return (owned) a command line of the words; those with
 *  blanks are quoted */
char *ka_join_words(char **words);
/** struct KaExport - what to export, and where to; @path: NULL: to standard
 *  output; @findings: (nullable) the file of ka report --findings; @lines:
 *  (nullable) lines of source are wanted, and from where. All borrowed */
typedef struct KaExport {
    KaSource source;
    const char *path;
    const char *findings;
    const KaLinesFiles *lines;
} KaExport;
/** ka_has_stacks() - return true if the answer to these words can have frames
 *  with lines: -l or -j is given */
bool ka_has_stacks(char **word);
/** ka_add_lines() - copy answers from standard input to standard output, with
 *  lines of source */
int ka_add_lines(const KaLinesFiles *files);
/** ka_ask_with_lines() - run a command, and print its answer with lines of
 *  source. Without lines one line on stderr says why. */
int ka_ask_with_lines(const KaExport *what, char **word);
/** ka_export() - run ka export, whose words these are; without the words of -o.
 *  Return an exit status, or KA_NOT_HERE. */
int ka_export(const KaExport *what, char **word);
/** ka_report() - run ka report; as ka_export() */
int ka_report(const KaExport *what, char **word);
/**
 * ka_write_symbols() - write the file of ka symbols
 * @answer: (borrowed) the answer of the command
 * @path: the file; it is replaced whole or not at all
 */
int ka_write_symbols(const char *answer, const char *path);
/** ka_dump_file() - print all events as cells of 64 bytes, for programs */
int ka_dump_file(const char *path);
/** ka_warn_missing() - print on stderr what is missing in the file; nothing if
 *  it is complete up to the requested time */
void ka_warn_missing(const char *path, const KtReplayInfo *info);
/** ka_missing_text() - return (owned) the same in words, NULL if nothing is
 *  missing */
char *ka_missing_text(const KtReplayInfo *info);
/** ka_flush() - flush standard output; @error: errno of earlier output, or 0.
 *  Print a failure on stderr and return false. */
bool ka_flush(int error);
/**
 * ka_set_color() - choose when answers have colours
 * @when: (nullable) "auto", as without it: on a terminal; "always", "never"
 *
 * Returns: false if @when is another word.
 */
bool ka_set_color(const char *when);
/** ka_put() - print whole lines of an answer on standard output. Return false
 *  after an error, errno says which. */
bool ka_put(const char *text);
/** ka_ask_vm() - run @line in a running VM, through the QMP socket at @path */
int ka_ask_vm(const char *path, const char *line);
/**
 * ka_query_vm() - run @line in a running VM, and return the answer
 * @quiet: print no error; the VM may have ended
 * @answer: (out, owned) the text; NULL without an answer
 */
int ka_query_vm(const char *path, const char *line, bool quiet, char **answer);
/** ka_vm_is_there() - return true if a process listens on the socket @path */
bool ka_vm_is_there(const char *path);
/** What ka_follow() copies. */
typedef enum KaFollowed {
    KA_LOG,
    KA_CALLS,
    KA_TRACE,
} KaFollowed;
/**
 * struct KaFollow - what to copy, and where to; all borrowed
 * @line: the VM's command, which has --after
 * @path: (nullable) a file
 * @programs: command lines of the shell that get a copy each; without these
 *            and @path, standard output does
 * @what: of which command
 * @session: end when the session of a module ends
 */
typedef struct KaFollow {
    const char *line;
    const char *path;
    GPtrArray *programs;
    KaFollowed what;
    bool session;
} KaFollow;
/** ka_follow() - copy until the VM ends, or a signal (SIGINT, SIGTERM). */
int ka_follow(const char *socket, const KaFollow *f);

/* ---- output file --------------------------------------------------------- */

/* A file that is replaced whole or not at all, or standard output. */
/**
 * struct KaOutput - where an export goes
 * @to: write here
 * @path: (borrowed, nullable) the file; NULL: standard output
 * @temp: (owned, nullable) the file that becomes @path; NULL: @path is a device
 *        or a pipe, and is written directly
 */
typedef struct KaOutput {
    FILE *to;
    const char *path;
    char *temp;
} KaOutput;

/** ka_output_begin() - open a file in the folder of @path (nullable). Print one
 *  line on stderr and return false if it cannot be written. */
bool ka_output_begin(KaOutput *o, const char *path);
/** ka_output_end() - close the file, and move it into its place if @complete.
 *  Print one line on stderr and return false if this fails. */
bool ka_output_end(KaOutput *o, bool complete);

/* ---- profile source ------------------------------------------------------ */

/*
 * Where ka export and ka report get their answers: they run commands of ka on
 * a journal or in a running VM, and make a heap profile (sums of memory by
 * stack, McHeapProfile) of them.
 */
/** ka_source_open() - read the journal; nothing of a VM. Return false after an
 *  error, which is printed. */
bool ka_source_open(KaSource *s);
void ka_source_close(KaSource *s);
/** ka_source_kernel() - return (borrowed, nullable) the kernel of the journal,
 *  if its addresses are known */
const GsKernel *ka_source_kernel(const KaSource *s);
/** ka_source_query() - run @line; @answer: as for ka_query_replay() */
int ka_source_query(const KaSource *s, const char *line, char **answer);
/** ka_source_query_maybe() - run @line, whose answer is not needed. Return
 *  (owned) the answer, or "". */
char *ka_source_query_maybe(const KaSource *s, const char *line);
/** ka_source_lines() - (owned) open the debug information of its kernel; NULL:
 *  stderr says why there are no lines */
KaLines *ka_source_lines(const KaSource *s, const KaLinesFiles *files);
/**
 * ka_source_fill() - fill a profile, and note what is missing in it
 * @query: the line that answers with the sums: ka top or ka diff, with -j
 *
 * Returns: an exit status; an error is printed.
 */
int ka_source_fill(const KaSource *s, const char *query, McHeapProfile *p);

#endif /* MC_KA_H */
