/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Help on the monitor: the run-down, the page of a command, the one-line
 * help for the embedder; and the prose that the manual adds to the tables.
 *
 * Everything about commands, options, layers and error kinds comes from
 * their tables. Any thread; the run-down asks the tracer for its state.
 */
#include "help.h"

#include <string.h>

#include "commands.h"

#define WRAP 76

const McSection mc_sections[] = {
    { "Addresses", {
        "An address is a hex number with or without 0x, a symbol, "
        "symbol+offset, module:symbol or module:symbol+offset; the offset is "
        "hex. What traces print is read too: symbol+0x1c/0x90 and "
        "symbol+0x1c[module]. A range is two of them with a - between and no "
        "blanks; both ends belong to it.",
        "A word of hex digits may also be the name of a symbol. One rule "
        "decides: with 0x, or with 8 digits or more, it is a number; with "
        "fewer digits it is the symbol when there is one of that name, else "
        "a number. So add is the symbol add if the kernel has it, and 0xadd "
        "is always the address.",
        "Where code is asked for (ka alloc, ka free) a symbol alone means its "
        "whole function, with the part the compiler split off as .cold, and "
        "all functions of the name when there are several; symbol+0 is one "
        "address. Elsewhere a symbol is its address. A symbol that has the "
        "name of a command is written symbol+0.",
        "Sizes are hex, as they are printed. Times are decimal guest "
        "microseconds since the VM's clock started, as they are printed, "
        "with or without us. Other numbers are decimal.",
        NULL } },
    { "Output", {
        "A line is a block: state, first and last byte, "
        "(requested/reserved) bytes in hex, the stack that allocated it and "
        "when; a freed block adds free[...], one that kfree_rcu queued has "
        "rcu[...] before that. Stacks are leaf first. The last byte is that "
        "of the request; an address behind it, in what the allocator "
        "reserved, still finds the block. A block of 0 bytes ends one byte "
        "before it starts.",
        "What is not known is a -, an unknown time -us; a stack that was not "
        "kept is empty: alloc[]. With -s a program counter that no symbol "
        "covers stays in hex. Bytes of names that are no visible ASCII "
        "characters are \\xNN.",
        "ka show marks the line of the block with > and the offset of the "
        "address in it, and all other lines are indented alike. When no "
        "block contains the address a line says so in the place where the "
        "block would be. Past lives, newest first, have the letter P and "
        "their own offset.",
        "An error line is the block as it was then, with error[kind pc ...] "
        "and the time. An address without a block is printed as range of one "
        "byte, with - for state, sizes and stack. error_va=<va> follows when "
        "the address at fault is not the block's first byte.",
        "A listing is printed in batches while the guest runs; each line is "
        "true at the moment it was read. A listing cut by -n ends with "
        "... N more. A listing without lines says so, and why when nothing "
        "was recorded at all.",
        NULL } },
    { "JSON", {
        "-j prints one object a line. Each has schema (1; it grows when a key "
        "changes its meaning), type and the keys that the table of types "
        "tells. Addresses and program counters are strings, 0x and 16 hex "
        "digits; sizes, times and counts are numbers. With -s each stack has "
        "a second key, its name with _symbols behind. A key that does not "
        "apply is left out, one that applies and is not known is null. Every "
        "byte from 7f on is \\u00NN, whatever the guest put there.",
        "Without a type: {\"more\":N} behind a listing cut by -n, and "
        "{\"fail\":\"...\"} for bad input. A listing without rows prints "
        "nothing.",
        NULL } },
    { "The program", {
        "ka -f FILE [--at us] [command] answers from a journal (the plugin's "
        "option journal=FILE) as the running VM did, without QEMU; with "
        "--at as things stood at that guest microsecond, up to the first "
        "event that is later. ka on, off and clear are refused. Without a "
        "command it prints the run-down and what the file holds.",
        "A file that is damaged or was not closed is answered from as far as "
        "it goes; one line on stderr says how many bytes and events are "
        "missing. ka -f FILE --cells prints all events for programs.",
        "ka -q socket [command] asks a running VM through QMP's unix socket "
        "(human-monitor-command).",
        "The exit status is 0 for an answer, 1 for a bad command line, 2 "
        "when nothing could be answered.",
        NULL } },
    { "Bad input", {
        "One line says which word is wrong and what would be right; nothing "
        "is changed.",
        NULL } },
};
const unsigned mc_n_sections = G_N_ELEMENTS(mc_sections);

/* ---- options ------------------------------------------------------------- */

static const char *layer_at(unsigned i)
{
    return i + 1 < KT_LAYER__COUNT ? kt_layer_name(i + 1) : NULL;
}

static const char *kind_at(unsigned i)
{
    return i < KT_ERR__COUNT ? kt_error_name(i) : NULL;
}

static const char *by_at(unsigned i)
{
    return i < MC_BY__COUNT ? mc_by_name(i) : NULL;
}

static const char *column_at(unsigned i)
{
    return i < MC_TOP__COUNT ? mc_top_columns[i].key : NULL;
}

char *mc_option_help(McOptionId id)
{
    const char *(*name)(unsigned i) = id == MC_OPT_LAYER ? layer_at :
                                      id == MC_OPT_KIND ? kind_at :
                                      id == MC_OPT_BY ? by_at :
                                      id == MC_OPT_SORT ? column_at : NULL;
    GString *s = g_string_new(mc_options[id].help);

    for (unsigned i = 0; name && name(i); i++) {
        g_string_append_printf(s, "%s%s", i ? ", " : ": ", name(i));
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

/* @head in a column of its own, @text beside it, wrapped. */
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

/* Why there is nothing to see, or how much there is. */
static void print_state(McOut *out)
{
    g_autofree char *why = mc_why_nothing(out);
    KtTracer *t = out->ctx->tracer;
    KtStats s;

    if (!out->ctx->kernel) {
        mc_out_printf(out, "no symbols: %s", out->ctx->why_no_kernel ?
                      out->ctx->why_no_kernel : "no kernel file was given");
    }
    kt_query_begin(t);
    kt_query_stats(t, &s);
    kt_query_end(t);
    mc_out_printf(out, "now: tracing is %s, %" PRIu64 " live blocks, %" PRIu64
                  " errors%s", kt_tracer_enabled(t) ? "on" : "off",
                  s.live_blocks, s.errors, why);
}

/* @n words that the commands begin with. */
static void print_usages(McOut *out, char *const *words, unsigned n)
{
    const char *rest;

    for (unsigned i = 0; i < MC_CMD__COUNT; i++) {
        const McCommand *c = &mc_commands[i];
        g_autofree char *usage = mc_command_usage(c);

        if (!n || mc_command_begins(c, words, n, &rest)) {
            print_item(out, usage, 31, c->help);
        }
    }
}

bool mc_cmd_rundown(McOut *out, const McArgs *args, GError **errp)
{
    mc_out_printf(out, "%s", mc_help_short());
    print_usages(out, NULL, 0);
    mc_out_printf(out, "addresses: hex with or without 0x, symbol, "
                  "symbol+off, module:symbol");
    mc_out_printf(out, "options: -s symbols, -j JSON, -n N limit, -v more "
                  "fields; all: ka help <command>");
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

        if (c->options & (1u << i)) {
            print_item(out, head, 16, text);
        }
    }
}

bool mc_cmd_help(McOut *out, const McArgs *args, GError **errp)
{
    char *group[] = { (char *)args->group };

    if (args->group) {
        print_usages(out, group, 1);
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
