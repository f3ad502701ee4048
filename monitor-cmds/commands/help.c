/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Help in the monitor: the screen, the page of a command, QEMU's one-line
 * help; and the prose that the manual has in addition to the tables.
 *
 * Called by mc_run() and manual.c; any thread. Commands, options, layers and
 * error kinds come from their tables. The screen also queries the tracer.
 */

#include <string.h>

#include "monitor-cmds/commands/commands.h"

#define WRAP 76
/* Columns of a command on the screen of ka help. */
#define HEAD 17

const McSection mc_sections[] = {
    { "Addresses", {
        "An address is a hex number with or without 0x, a symbol, "
        "symbol+offset, module:symbol or module:symbol+offset; the offset is "
        "hex. The forms in kernel traces are accepted as well: "
        "symbol+0x1c/0x90 and symbol+0x1c[module]. A range is two addresses "
        "with a - between them, without blanks; it includes both ends. If "
        "the kernel keeps tags in pointers (arm64 with KASAN), a number may "
        "have a tag, which is ignored.",
        "pfn:HEX is the memory of the page frame of this number, phys:HEX "
        "that of this physical address, and page:HEX that of the page whose "
        "struct page (or folio) is at this address. Kernel messages name "
        "pages in these ways.",
        "A word of hex digits may also be the name of a symbol. The rule: "
        "with 0x, or with 8 digits or more, it is a number; with fewer "
        "digits it is the symbol if the kernel has a symbol of this name, "
        "else a number. So add is the symbol add if the kernel has it, and "
        "0xadd is always the address.",
        "If a command needs code (ka alloc, ka free), a symbol alone means "
        "the whole function, including the part that the compiler split off "
        "as .cold, and all functions of this name if there are several; "
        "symbol+0 is one address. For other commands a symbol is its address. "
        "Write symbol+0 for a symbol that has the name of a command.",
        "Sizes are hex, as they are printed. Times are decimal guest "
        "microseconds since the start of the VM's clock, as they are "
        "printed, with or without us. Other numbers are decimal.",
        NULL } },
    { "Output", {
        "A line is a block: state, first and last byte, "
        "(requested/reserved) bytes in hex, the stack of the allocation and "
        "its time. A freed block has free[...] as well, and a block that was "
        "queued by kfree_rcu has rcu[...] before it. Stacks are leaf first. "
        "The last byte is the last requested one; an address after it, in "
        "the reserved bytes, still finds the block. A block of 0 bytes ends "
        "one byte before it starts.",
        "An unknown value is -, an unknown time is -us; a stack that was not "
        "kept is empty: alloc[]. Frames are names, symbol+0xoffset, and "
        "[module] if they are in one; with -x, or if no symbol is known, they "
        "are addresses. Bytes of names that are no visible ASCII characters "
        "are \\xNN.",
        "ka show marks the line of the block with > and the offset of the "
        "address in it; all other lines have the same indentation. If no "
        "block contains the address, a line says so at the position of the "
        "block. Past lives, newest first, have the letter P and their own "
        "offset.",
        "An error line begins with the kind of the error. The block follows as "
        "it was at the time of the error, then error[...], the stack of the "
        "error, and this time. An address without a block is "
        "printed as a range of one byte, with - for state, sizes and stack. "
        "error_va=<va> follows if the address at fault is not the block's "
        "first byte.",
        "A listing is printed in batches while the guest runs; each line is "
        "correct for the moment in which it was read. A listing that -n "
        "shortened ends with ... N more. A listing without lines says so, and "
        "says why if nothing was recorded at all.",
        NULL } },
    { "JSON", {
        "-j prints one object a line. Each object has schema (1; it grows if "
        "a key changes its meaning), type, and the keys of the table of types "
        "below. Addresses and program counters are strings, 0x and 16 hex "
        "digits; sizes, times and counts are numbers. With -s each stack has "
        "a second key, its name plus _symbols; with --pc one more, plus _at. "
        "A key that does not apply is "
        "omitted; the value of a key that applies is null if it is unknown. "
        "Every byte from 7f on is \\u00NN, whatever its meaning in the guest.",
        "Two objects have no type: {\"more\":N} after a listing that -n "
        "shortened, and {\"fail\":\"...\"} for bad input. Text that is no "
        "row, such as the answer of ka clear, has the type text and the key "
        "text. A listing without "
        "rows prints nothing, also at a terminal and in the monitor: no line "
        "is no row, and what is wrong is an object with fail. Without -j a "
        "line says that there is nothing, and why.",
        NULL } },
    { "The program", {
        "ka -f FILE [--at us] [command] answers from a journal (the plugin's "
        "option journal=FILE) as the running VM did, without QEMU. With --at "
        "the answer is the one of this guest microsecond: later events are "
        "ignored. ka on, off and clear are refused. Without a command the "
        "program prints the commands, as ka help does, and what the file "
        "contains.",
        "If a file is damaged or was not closed, the readable part answers; "
        "one line on stderr says how many bytes and events are missing. ka "
        "-f FILE --cells prints all events for programs.",
        "ka export writes files for other tools, with -f and with -q; its own "
        "page, ka help export, has more.",
        "ka -q socket [command] queries a running VM by QMP's unix socket "
        "(human-monitor-command).",
        "ka help [command] explains the commands without a journal or a VM, as "
        "does ka command -h.",
        "The exit status is 0 for an answer, 1 for a bad command line, or if "
        "ka slab check found something, 2 if there is no answer.",
        NULL } },
    { "Bad input", {
        "One line says which word is wrong and what would be right; nothing "
        "is changed.",
        NULL } },
};
const unsigned mc_n_sections = G_N_ELEMENTS(mc_sections);

/* ---- options ------------------------------------------------------------- */

/* Return true if the help of the option lists what its value can be. */
static bool lists_choices(McOptionId id)
{
    return id == MC_OPT_LAYER || id == MC_OPT_KIND || id == MC_OPT_BY ||
           id == MC_OPT_SORT;
}

char *mc_option_help(McOptionId id)
{
    GString *s = g_string_new(mc_options[id].help);
    const char *name;

    for (unsigned i = 0; lists_choices(id) &&
                         (name = mc_option_choice(NULL, id, i)); i++) {
        g_string_append_printf(s, "%s%s", i ? ", " : ": ", name);
    }
    return g_string_free(s, FALSE);
}

char *mc_option_usage(McOptionId id)
{
    const McOption *o = &mc_options[id];

    return g_strconcat(o->spelling, o->alt ? ", " : "", o->alt ? o->alt : "",
                       o->arg ? " " : "", o->arg ? o->arg : "", NULL);
}

/* ---- pages --------------------------------------------------------------- */

/* Print @head in a column, and @text wrapped beside it. */
static void print_item(McOut *out, const char *head, unsigned width,
                       const char *text)
{
    g_auto(GStrv) words = g_strsplit(text, " ", -1);
    unsigned indent = (width ? 2 : 1) + width;
    unsigned column = indent;

    g_string_append_printf(out->line, "%s%-*s", width ? "  " : " ",
                           (int)width, head);
    for (unsigned i = 0; words[i]; i++) {
        if (column + 1 + strlen(words[i]) > WRAP && column > indent) {
            mc_out_end_line(out);
            g_string_append_printf(out->line, "%*s", (int)indent, "");
            column = indent;
        }
        g_string_append_printf(out->line, " %s", words[i]);
        column += 1 + strlen(words[i]);
    }
    mc_out_end_line(out);
}

/* Print why nothing is recorded, or how much is. */
static void print_state(McOut *out)
{
    g_autofree char *why = NULL;
    KtTracer *t = out->ctx->tracer;
    g_autofree char *now = NULL;
    KtStats s;

    if (!t) {
        return;
    }
    why = mc_why_nothing(out);
    if (!out->ctx->kernel) {
        print_item(out, "no symbols:", 11, mc_why_no_kernel(out->ctx));
    }
    s = mc_stats(out);
    now = g_strdup_printf("tracing is %s, %" PRIu64 " live blocks, %" PRIu64
                          " errors%s", kt_tracer_enabled(t) ? "on" : "off",
                          s.live_blocks, s.errors, why);
    print_item(out, "now:", 4, now);
}

/* Print the usage of all commands that begin with @word. */
static void print_usages(McOut *out, const char *word)
{
    char *words[] = { (char *)word };
    const char *rest;

    for (unsigned i = 0; i < MC_CMD__COUNT; i++) {
        const McCommand *c = &mc_commands[i];
        g_autofree char *usage = mc_command_usage(c);

        if (mc_command_begins(c, words, 1, &rest)) {
            print_item(out, usage, 31, c->help);
        }
    }
}

/* ---- the screen ---------------------------------------------------------- */

/* Print a command and its help in one line. */
static void print_shown(McOut *out, const McCommand *c)
{
    g_autofree char *usage = g_strconcat(c->word, *c->params ? " " : "",
                                         c->params, NULL);

    mc_out_printf(out, "  %-*s %s", HEAD, strlen(usage) > HEAD ? c->word :
                  usage, c->help);
}

/* Print the question of row @i and the commands that answer it; return the
 * row of the next one. */
static unsigned print_question(McOut *out, unsigned i)
{
    g_autoptr(GString) also = g_string_new(NULL);

    mc_out_printf(out, "%s", mc_questions[i].text);
    for (i++; i < mc_n_questions && !mc_questions[i].text; i++) {
        const McCommand *c = &mc_commands[mc_questions[i].command];

        if (mc_questions[i].shown) {
            print_shown(out, c);
        } else {
            g_string_append_printf(also, "%s%s", also->len ? ", " : "",
                                   c->word ? c->word : c->params);
        }
    }
    mc_out_printf(out, "  also: %s", also->str);
    return i;
}

bool mc_cmd_rundown(McOut *out, const McArgs *args, GError **errp)
{
    mc_out_printf(out, "%s", mc_help_short());
    for (unsigned i = 0; i < mc_n_questions;) {
        i = print_question(out, i);
    }
    mc_out_printf(out, "ka help COMMAND explains one. -x: addresses, -j: JSON, "
                  "-n N: limit, -l: all");
    print_state(out);
    return true;
}

void mc_help_command(McOut *out, const McCommand *c)
{
    g_autofree char *usage = mc_command_usage(c);

    if (c == &mc_commands[MC_CMD_RUNDOWN]) {
        mc_cmd_rundown(out, NULL, NULL);
        return;
    }
    mc_out_printf(out, "usage: %s%s", usage, c->options ? " [option...]" : "");
    print_item(out, "", 0, c->help);
    print_item(out, "", 0, c->detail);
    mc_out_printf(out, "options:");
    for (unsigned i = 0; i < MC_OPT__COUNT; i++) {
        g_autofree char *head = mc_option_usage(i);
        g_autofree char *text = mc_option_help(i);

        if (c->options & (1ull << i)) {
            print_item(out, head, 16, text);
        }
    }
}

/* For the manual: mc_out_end_line() makes these objects. */
static const McObject text_object = {
    "text", "text that is no row, such as the answer of ka clear",
    { (const McColumn[]) { MC_END } },
    .line = true,
};
MC_OBJECTS(mc_help_objects, &text_object);

bool mc_cmd_help(McOut *out, const McArgs *args, GError **errp)
{
    if (args->group) {
        print_usages(out, args->group);
        return true;
    }
    if (!args->topic) {
        return mc_cmd_rundown(out, args, errp);
    }
    mc_help_command(out, args->topic);
    return true;
}

const char *mc_help_short(void)
{
    return "ka: what the guest kernel allocated and freed, where and when";
}

const char *mc_help_params(void)
{
    return "[command] [words] [options]";
}
