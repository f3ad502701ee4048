/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The program `ka`: run a command of the monitor on a journal file, or in a
 * running VM through its QMP socket. One thread.
 */
#include <errno.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "monitor-cmds/program/ka.h"
#include "monitor-cmds/mc.h"

static const char usage[] =
    "usage: ka -f FILE [--at US] [--types TYPES] [LINES] [COMMAND...]\n"
    "                                           query a journal file\n"
    "       ka -q SOCKET [LINES] [COMMAND...]   query a running VM by QMP\n"
    "       ka -q SOCKET log|calls|trace --follow [-o FILE] [-p PROGRAM]...\n"
    "                               [--session] [OPTION...]\n"
    "                                           copy the guest's log, the\n"
    "                                           calls of watched functions,\n"
    "                                           or the live trace to FILE,\n"
    "                                           into PROGRAMs, or to\n"
    "                                           stdout, until the VM\n"
    "                                           ends, a signal comes or\n"
    "                                           (--session) the session of\n"
    "                                           a module ends\n"
    "       ka -f FILE --cells                  all events, for programs\n"
    "       ka -f FILE|-q SOCKET symbols -o FILE [--unloaded]\n"
    "                                           write an ELF file of all\n"
    "                                           symbols for gdb and lldb\n"
    "       ka -f FILE|-q SOCKET export FORMAT [-o FILE] [OPTION...]\n"
    "                                           write sums by stack for other\n"
    "                                           tools; without FORMAT list\n"
    "                                           the formats\n"
    "       ka -f FILE|-q SOCKET report -o FILE.html [--findings FILE]\n"
    "                                           write a page for browsers,\n"
    "                                           with what sweep --json FILE\n"
    "                                           has written\n"
    "       ka --vmlinux FILE lines             add lines to the answers on\n"
    "                                           standard input: to stat -j,\n"
    "                                           base -v -j, and others with\n"
    "                                           -j -s --pc\n"
    "       ka help [COMMAND]                   explain one or all commands\n"
    "  -f FILE    a journal, made with the plugin's option journal=FILE\n"
    "  --at US    answer as of this guest microsecond\n"
    "  --types T  a file with the kernel's types, for ka struct: its vmlinux,\n"
    "             or BTF, as types=FILE\n"
    "  --color WHEN  auto: on a terminal, without NO_COLOR; always; or never\n"
    "  LINES      lines of source for the frames of answers with -l and -j,\n"
    "             and for export --frames line:\n"
    "    --vmlinux FILE|auto  the kernel's file with debug information; auto:\n"
    "                         where packages and debuginfod put it\n"
    "    --modules DIR        the files of modules are in DIR, or below it\n"
    "    --inlines            inlined functions are frames of their own\n"
    "  -q SOCKET  QMP's unix socket (qemu -qmp unix:SOCKET,server=on)\n"
    "  COMMAND    as in the monitor, without the leading ka. Without one: all\n"
    "             commands, and what the file contains\n"
    "  --version  the version of ka\n"
    "  --help     this text\n"
    "Exit status: 0 answered, 1 bad command line, or slab check found\n"
    "something, 2 nothing was answered, or a PROGRAM failed. If the file is\n"
    "damaged or was never closed, the readable part answers, and stderr says\n"
    "what is missing.\n";

#define COLOR "--color="

typedef struct Options {
    KaSource source;
    const char *types;
    const char *color;
    KaLinesFiles lines;
    bool cells;
    bool help;
    bool version;
} Options;

static int fail(const char *text, const char *word)
{
    fprintf(stderr, "ka: %s%s%s; ka --help explains\n", text,
            word ? ": " : "", word ? word : "");
    return KA_BAD_LINE;
}

static bool parse_us(const char *word, uint64_t *us)
{
    char *end;

    if (!g_ascii_isdigit(*word)) {
        return false;
    }
    *us = g_ascii_strtoull(word, &end, 10);
    return !*end || !strcmp(end, "us");
}

/* Return the variable for the option's value, NULL if @word has no value. */
static const char **value_of(Options *o, const char *word)
{
    return !strcmp(word, "-f") ? &o->source.file :
           !strcmp(word, "--types") ? &o->types :
           !strcmp(word, "--color") ? &o->color :
           !strcmp(word, "--vmlinux") ? &o->lines.vmlinux :
           !strcmp(word, "--modules") ? &o->lines.modules :
           !strcmp(word, "-q") ? &o->source.socket : NULL;
}

/* Parse the program's own options, which come first. Return the index of the
 * first word of the command, 0 after an error, which is printed. */
static int parse(Options *o, int argc, char **argv)
{
    int i = 1;

    for (; i < argc && argv[i][0] == '-'; i++) {
        const char **value = value_of(o, argv[i]);
        bool at = !strcmp(argv[i], "--at");

        if ((value || at) && i + 1 == argc) {
            fail("a value is missing after", argv[i]);
            return 0;
        }
        if (value) {
            *value = argv[++i];
        } else if (at && !parse_us(argv[++i], &o->source.until_us)) {
            fail("--at takes decimal microseconds, not", argv[i]);
            return 0;
        } else if (g_str_has_prefix(argv[i], COLOR)) {
            o->color = argv[i] + strlen(COLOR);
        } else if (!strcmp(argv[i], "--cells")) {
            o->cells = true;
        } else if (!strcmp(argv[i], "--inlines")) {
            o->lines.inlines = true;
        } else if (!at && (o->source.file || o->source.socket) && !o->cells) {
            break;              /* ka -f FILE --cache task_struct */
        } else if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            o->help = true;
        } else if (!strcmp(argv[i], "--version")) {
            o->version = true;
        } else if (!at) {
            fail("no such option", argv[i]);
            return 0;
        }
    }
    return i;
}

char *ka_join_words(char **words)
{
    GString *line = g_string_new(NULL);

    for (unsigned i = 0; words[i]; i++) {
        const char *quote = !strpbrk(words[i], " \t\r\n") ? "" :
                            strchr(words[i], '\'') ? "\"" : "'";

        g_string_append_printf(line, "%s%s%s%s", i ? " " : "", quote, words[i],
                               quote);
    }
    return g_string_free(line, FALSE);
}

/* Options of --follow. @on: it was given; @any: another one was */
typedef struct Follow {
    KaFollow what;
    bool on, any;
} Follow;

/* Parse a word that belongs to --follow, and its value @next. Return how many
 * words these are, 0: the word is the command's. */
static unsigned parse_follow(Follow *f, char *word, char *next)
{
    bool has_value = next && (!strcmp(word, "-o") || !strcmp(word, "-p"));

    if (!strcmp(word, "--follow")) {
        f->on = true;
    } else if (!strcmp(word, "--session")) {
        f->any = f->what.session = true;
    } else if (has_value && word[1] == 'o') {
        f->any = true;
        f->what.path = next;
    } else if (has_value) {
        f->any = true;
        g_ptr_array_add(f->what.programs, next);
    } else {
        return 0;
    }
    return has_value ? 2 : 1;
}

/* Remove the options of --follow from the words. */
static void take_follow(Follow *f, char **word)
{
    char **to = word;

    for (char **from = word; *from;) {
        unsigned n = parse_follow(f, from[0], from[1]);

        if (!n) {
            *to++ = *from;
        }
        from += n ? n : 1;
    }
    *to = NULL;
}

/* Return true if the command can be followed. */
static bool find_followed(const char *word, KaFollowed *what)
{
    static const char *const words[] = {
        [KA_LOG] = "log", [KA_CALLS] = "calls", [KA_TRACE] = "trace",
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        if (!g_strcmp0(word, words[i])) {
            *what = i;
            return true;
        }
    }
    return false;
}

static int ask_vm(const Options *o, char **word)
{
    g_autoptr(GPtrArray) programs = g_ptr_array_new();
    Follow f = { .what.programs = programs };
    g_autofree char *line = NULL;

    if (find_followed(*word, &f.what.what)) {
        take_follow(&f, word);
    }
    if (f.any && !f.on) {
        return fail("-o, -p and --session need --follow", NULL);
    }
    if (f.what.session && f.what.what != KA_CALLS) {
        return fail("--session is for calls --follow", NULL);
    }
    f.what.line = line = ka_join_words(word);
    return f.on ? ka_follow(o->source.socket, &f.what) :
                  ka_ask_vm(o->source.socket, line);
}

/* ---- -o FILE of other commands ------------------------------------------- */

/* Remove an option and its value from the words. Return the value, NULL if it
 * is not there. */
static const char *take_option(char **word, const char *option)
{
    const char *path = NULL;
    char **to = word;

    for (char **from = word; *from; from++) {
        if (!strcmp(*from, option) && from[1]) {
            path = *++from;
        } else {
            *to++ = *from;
        }
    }
    *to = NULL;
    return path;
}

/* Run ka symbols, and write its answer to @path. */
static int write_symbols(const Options *o, char **word, const char *path)
{
    g_autofree char *line = ka_join_words(word), *answer = NULL;
    KaSource s = o->source;
    int rc;

    if (!ka_source_open(&s)) {
        return KA_NO_ANSWER;
    }
    rc = ka_source_query(&s, line, &answer);
    ka_source_close(&s);
    if (rc == KA_ANSWERED) {
        return ka_write_symbols(answer, path);
    }
    if (answer) {
        fputs(answer, stdout);
    }
    return rc;
}

static bool wants_lines(const Options *o)
{
    return o->lines.vmlinux || o->lines.modules;
}

static KaExport export_of(const Options *o)
{
    return (KaExport) {
        .source = o->source,
        .lines = wants_lines(o) ? &o->lines : NULL,
    };
}

static int run_command(const Options *o, char **word)
{
    const KaExport what = export_of(o);
    g_autofree char *line = NULL;

    if (what.lines && ka_has_stacks(word)) {
        return ka_ask_with_lines(&what, word);
    }
    if (what.lines && *word) {
        fprintf(stderr, "ka: lines of source are added to answers with -l and "
                "-j\n");
    }
    if (o->source.socket) {
        return ask_vm(o, word);
    }
    line = ka_join_words(word);
    return o->cells ? ka_dump_file(o->source.file) :
                      ka_ask_file(&o->source, line, o->types);
}

static int write_file(const Options *o, char **word)
{
    bool report = !g_strcmp0(*word, "report");
    KaExport what = export_of(o);
    int rc;

    what.path = take_option(word, "-o");
    what.findings = report ? take_option(word, "--findings") : NULL;
    rc = report ? ka_report(&what, word) : ka_export(&what, word);
    return rc == KA_NOT_HERE ? run_command(o, word) : rc;
}

/* Return true if the program writes the answer of this command as a file. */
static bool is_file_command(const char *word)
{
    return !g_strcmp0(word, "export") || !g_strcmp0(word, "report");
}

/* ---- help ---------------------------------------------------------------- */

/* Return true if the words only ask for a page of help. */
static bool asks_for_help(char **word)
{
    const char *const *words = (const char *const *)word;

    return !g_strcmp0(words[0], "help") ||
           (words[0] && (g_strv_contains(words, "-h") ||
                         g_strv_contains(words, "--help")));
}

/* ---- answers that are no text -------------------------------------------- */

/* Return false, after an error, if bytes would be printed on a terminal. */
static bool check_terminal(const Options *o, char **word)
{
    if (!isatty(STDOUT_FILENO)) {
        return true;
    }
    if (o->cells) {
        fail("--cells are bytes, no text for a terminal; redirect them to a "
             "file or a program", NULL);
        return false;
    }
    if (!g_strcmp0(word[0], "symbols") && !asks_for_help(word)) {
        fail("symbols is a file, no text for a terminal; write it with -o FILE",
             NULL);
        return false;
    }
    return true;
}

static bool print(void *opaque, const char *text)
{
    int *error = opaque;

    if (fputs(text, stdout) >= 0) {
        return true;
    }
    *error = errno;
    return false;
}

/* Print a page of help, without a file or a VM. */
static int print_help(char **word)
{
    g_autofree char *line = ka_join_words(word);
    int error = 0;
    const McContext ctx = { .puts = print, .puts_opaque = &error };
    int rc = mc_run(&ctx, line);

    return !ka_flush(error) ? KA_NO_ANSWER :
           rc == 1 ? KA_BAD_LINE : KA_ANSWERED;
}

int main(int argc, char **argv)
{
    Options o = { .source.until_us = UINT64_MAX };
    int first = parse(&o, argc, argv);
    const char *path;

    if (!first) {
        return KA_BAD_LINE;
    }
    if (!ka_set_color(o.color)) {
        return fail("--color is auto, always or never, not", o.color);
    }
    if (o.help || o.version) {
        fputs(o.help ? usage : "ka " KA_VERSION "\n", stdout);
        return ka_flush(0) ? KA_ANSWERED : KA_NO_ANSWER;
    }
    if (!o.source.file && !o.source.socket && asks_for_help(argv + first)) {
        return print_help(argv + first);
    }
    if (!o.source.file && !o.source.socket && wants_lines(&o) &&
        !g_strcmp0(argv[first], "lines") && !argv[first + 1]) {
        return ka_add_lines(&o.lines);
    }
    if (!o.source.file == !o.source.socket) {
        return fail("ask either a file (-f) or a VM (-q)", NULL);
    }
    if (o.source.socket &&
        (o.cells || o.types || o.source.until_us != UINT64_MAX)) {
        return fail("--at, --types and --cells are for files", NULL);
    }
    if (wants_lines(&o) && (o.cells || o.types)) {
        return fail("--vmlinux and --modules are not for --cells and --types",
                    NULL);
    }
    if (o.lines.inlines && !wants_lines(&o)) {
        return fail("--inlines needs --vmlinux or --modules", NULL);
    }
    if (o.cells && o.source.until_us != UINT64_MAX) {
        return fail("--cells are all events; --at is for answers", NULL);
    }
    if (o.cells && argv[first]) {
        return fail("--cells takes no command", argv[first]);
    }
    path = g_strcmp0(argv[first], "symbols") ? NULL :
           take_option(argv + first, "-o");
    if (path) {
        return write_symbols(&o, argv + first, path);
    }
    if (!check_terminal(&o, argv + first)) {
        return KA_BAD_LINE;
    }
    return is_file_command(argv[first]) ? write_file(&o, argv + first) :
                                          run_command(&o, argv + first);
}
