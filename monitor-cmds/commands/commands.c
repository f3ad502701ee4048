/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mc_run(): parse the line, prepare the output, run the command, print errors.
 *
 * Called by the plugin, the program `ka` and tests, on their thread. Only
 * commands hold the tracer's lock, for one batch at a time, and never while the
 * sink is called.
 */
#include "monitor-cmds/commands/commands.h"

#include <string.h>

McRunFn *const mc_command_functions[MC_CMD__COUNT] = {
#define MC_COMMAND(id, word, topic, args, params, options, run, ...) \
    [MC_CMD_##id] = run,
#include "monitor-cmds/table/commands.def"
};

const McObject *const mc_no_objects[] = { NULL };
const McObject *const *const mc_command_objects[MC_CMD__COUNT] = {
#define MC_COMMAND(id, word, topic, args, params, options, run, objects, ...) \
    [MC_CMD_##id] = objects,
#include "monitor-cmds/table/commands.def"
};

/* Return true if the line asks for JSON, even if it could not be parsed. */
static bool wants_json(const McArgs *args, const char *line)
{
    g_auto(GStrv) words = NULL;

    if (mc_given(args, MC_OPT_JSON) || !line || strlen(line) > MC_LINE_MAX) {
        return mc_given(args, MC_OPT_JSON);
    }
    words = g_strsplit_set(line, " \t\r\n", -1);
    return g_strv_contains((const char *const *)words,
                           mc_options[MC_OPT_JSON].spelling);
}

/* Return false if -l is given with something that has one form only, or --pc
 * with a form that has no place for it. */
static bool check_long(const McArgs *args, GError **errp)
{
    bool other = mc_given(args, MC_OPT_JSON) || mc_given(args, MC_OPT_FORMAT);

    if (mc_given(args, MC_OPT_LONG) && other) {
        return mc_fail_syntax(errp, "\"%s\": the long form is for text; omit "
                              "it, or %s", mc_options[MC_OPT_LONG].spelling,
                              mc_options[mc_given(args, MC_OPT_JSON) ?
                              MC_OPT_JSON : MC_OPT_FORMAT].spelling);
    }
    if (mc_given(args, MC_OPT_PC) && !mc_given(args, MC_OPT_JSON) &&
        !mc_given(args, MC_OPT_LONG)) {
        return mc_fail_syntax(errp, "\"%s\": is for -l and -j; add one of them",
                              mc_options[MC_OPT_PC].spelling);
    }
    return true;
}

/* Rows of blocks and errors have all that is known. */
static bool has_sums(const McCommand *c)
{
    return c == &mc_commands[MC_CMD_TOP] || c == &mc_commands[MC_CMD_DIFF];
}

static void set_long_form(McOut *out, const McArgs *args)
{
    out->long_form = true;
    out->verbose |= !has_sums(args->command);
}

static void set_format(McOut *out, const McArgs *args)
{
    if (mc_given(args, MC_OPT_JSON)) {
        out->json = true;
    }
    out->stacks = mc_given(args, MC_OPT_SYMBOLS);
    out->names = out->json ? out->stacks : !mc_given(args, MC_OPT_HEX);
    out->symbols = out->names ? mc_symbols(out->ctx) : NULL;
    out->verbose = mc_given(args, MC_OPT_VERBOSE);
    out->whole = out->verbose || mc_given(args, MC_OPT_WIDE) ||
                 mc_given(args, MC_OPT_HEX) || mc_given(args, MC_OPT_LONG) ||
                 mc_given(args, MC_OPT_FORMAT);
    out->exact = out->json || mc_given(args, MC_OPT_HEX) ||
                 mc_given(args, MC_OPT_LONG);
    out->sorted_by = args->sort_word;
    out->newest_us = out->ctx->tracer ? mc_stats(out).last_us : 0;
    out->pcs = mc_given(args, MC_OPT_PC);
    if (mc_given(args, MC_OPT_LONG) &&
        args->command->options & 1ull << MC_OPT_LONG) {
        set_long_form(out, args);
    }
}

/* Return true if the command may name a cache that does not exist yet. */
static bool may_come_later(const McCommand *c)
{
    return c == &mc_commands[MC_CMD_TRACE_ON] ||
           c == &mc_commands[MC_CMD_ACCESS_ON];
}

/* Return true if a person reads the answer. JSON, forms for other programs, and
 * the answers that a reader joins by --after have no remark. */
static bool is_for_people(const McArgs *args)
{
    return !mc_given(args, MC_OPT_JSON) && !mc_given(args, MC_OPT_AFTER) &&
           args->form == MC_FORM_TEXT;
}

/* Name what replaces the old words of the line. */
static void remark_renamed(McOut *out, const McArgs *args)
{
    for (unsigned i = 0; i < mc_n_renamed; i++) {
        if (args->renamed & 1ull << i && is_for_people(args)) {
            mc_remarkf(out, "'%s' is '%s' now", mc_renamed[i].old,
                       mc_renamed[i].now);
        }
    }
}

static void remark_gone(McOut *out, const McArgs *args)
{
    if (out->ctx->kernel_gone && is_for_people(args)) {
        mc_remark(out, "the guest's memory was replaced in a way that ka did "
                  "not see, and another kernel runs: what follows is of the "
                  "kernel before; reset the VM, or load a state");
    }
}

static bool run(McOut *out, McArgs *args, const char *line, GError **errp)
{
    if (!mc_parse(args, line, errp)) {
        return false;
    }
    remark_gone(out, args);
    remark_renamed(out, args);
    if (mc_given(args, MC_OPT_HELP)) {
        mc_help_command(out, args->command);
        return true;
    }
    if (!check_long(args, errp)) {
        return false;
    }
    if (!may_come_later(args->command) &&
        !mc_filter_prepare(&args->filter, out->ctx->tracer, errp)) {
        return false;
    }
    set_format(out, args);
    return mc_command_functions[args->command - mc_commands](out, args, errp);
}

int mc_run(const McContext *ctx, const char *line)
{
    g_autoptr(GError) err = NULL;
    g_auto(McArgs) args;
    McOut out;
    bool ok;

    mc_args_init(&args, ctx);
    mc_out_init(&out, ctx);
    ok = run(&out, &args, line, &err);
    if (!ok) {
        out.json = wants_json(&args, line);
        mc_fail(&out, err->message);
    }
    mc_out_deinit(&out);
    return !ok ? 1 : out.closed ? 2 : 0;
}

bool mc_pauses(const char *line)
{
    static const McCommandId paused[] = {
        MC_CMD_LEAK_SCAN, MC_CMD_LEAK_MODULE, MC_CMD_REFS, MC_CMD_TYPE,
        MC_CMD_SLAB_CHECK,
        MC_CMD_CACHE, MC_CMD_SLAB,
    };
    static const McOptionId not_then[] = { MC_OPT_EVERY, MC_OPT_HELP };
    const McContext none = { 0 };
    g_auto(McArgs) args;
    unsigned used;
    const McCommand *c;

    mc_args_init(&args, &none);
    if (!mc_parse_words(&args, line, NULL) || !args.words->len) {
        return false;
    }
    c = mc_command_find((char **)args.words->pdata, args.words->len, &used);
    for (unsigned i = 0; i < G_N_ELEMENTS(not_then); i++) {
        c = mc_given(&args, not_then[i]) ? NULL : c;
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(paused); i++) {
        if (c == &mc_commands[paused[i]]) {
            return true;
        }
    }
    return false;
}

bool mc_has_only(const McArgs *args, uint64_t options, const char *why,
                 GError **errp)
{
    uint64_t others = args->given & ~options & ~MC_OPTS_EVERYWHERE;

    if (others) {
        mc_fail_syntax(errp, "%s; omit %s", why,
                       mc_options[__builtin_ctzll(others)].spelling);
    }
    return !others;
}
