/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Undo: the table of commands that change something, and how each is undone.
 * docs/scripts.md has this table for users.
 */
#include "monitor-cmds/script/script.h"

#include <string.h>

/**
 * struct McUndoRule - how a command is undone
 * @changes: (nullable) does it change something, with these arguments?
 * @before, @after: (nullable) store what @undo needs
 * @undo: (nullable) NULL: it cannot be undone. Returns: false if that fails
 * @newest, @remove: (nullable) for a command that makes something with a
 *                   number: find the largest number, remove what has a number
 */
struct McUndoRule {
    McCommandId command;
    bool (*changes)(const McArgs *args);
    void (*before)(McUndo *u, const McContext *ctx, const McArgs *args);
    void (*after)(McUndo *u, const McContext *ctx);
    bool (*undo)(const McUndo *u, const McContext *ctx);
    uint64_t (*newest)(const McContext *ctx);
    unsigned (*remove)(KtTracer *t, uint32_t number);
};

/* ---- ka on, ka off ------------------------------------------------------- */

static void store_switch(McUndo *u, const McContext *ctx, const McArgs *args)
{
    u->flag = kt_tracer_enabled(ctx->tracer);
}

static bool undo_switch(const McUndo *u, const McContext *ctx)
{
    if (kt_tracer_enabled(ctx->tracer) != u->flag) {
        kt_tracer_set_enabled(ctx->tracer, u->flag);
    }
    return true;
}

/* ---- ka mark ------------------------------------------------------------- */

static bool makes_mark(const McArgs *args)
{
    return args->name != NULL;
}

typedef struct Search {
    const char *name;
    bool found;
} Search;

static bool compare_mark(const KtMarkInfo *m, void *opaque)
{
    Search *s = opaque;

    s->found |= !strcmp(m->name, s->name);
    return !s->found;
}

static bool has_mark(const McContext *ctx, const char *name)
{
    Search s = { .name = name };

    kt_query_begin(ctx->tracer);
    kt_query_marks(ctx->tracer, compare_mark, &s);
    kt_query_end(ctx->tracer);
    return s.found;
}

/* A mark that was dropped or replaced is gone. */
static void store_mark(McUndo *u, const McContext *ctx, const McArgs *args)
{
    u->name = g_strdup(args->name);
    u->flag = !mc_given(args, MC_OPT_DROP) && !has_mark(ctx, args->name);
}

static bool undo_mark(const McUndo *u, const McContext *ctx)
{
    return u->flag && kt_tracer_drop_mark(ctx->tracer, u->name);
}

/* ---- ka leak scan --every ------------------------------------------------ */

static bool sets_every(const McArgs *args)
{
    return mc_given(args, MC_OPT_EVERY);
}

static void store_every(McUndo *u, const McContext *ctx, const McArgs *args)
{
    u->number = kt_leak_every(ctx->tracer);
}

static bool undo_every(const McUndo *u, const McContext *ctx)
{
    kt_leak_set_every(ctx->tracer, u->number);
    return true;
}

/* ---- ka calls add, ka fault add ------------------------------------------ */

static bool keep_newest_watch(const KtWatchInfo *info, void *opaque)
{
    uint64_t *newest = opaque;

    *newest = MAX(*newest, info->id);
    return true;
}

static uint64_t newest_watch(const McContext *ctx)
{
    uint64_t newest = 0;

    kt_calls_requests(ctx->tracer, keep_newest_watch, &newest);
    return newest;
}

static bool keep_newest_fault(const KtFaultRule *rule, void *opaque)
{
    uint64_t *newest = opaque;

    *newest = MAX(*newest, rule->id);
    return true;
}

static uint64_t newest_fault(const McContext *ctx)
{
    uint64_t newest = 0;

    kt_faults_foreach(ctx->tracer, keep_newest_fault, &newest);
    return newest;
}

static void store_newest(McUndo *u, const McContext *ctx, const McArgs *args)
{
    u->number = u->rule->newest(ctx);
}

static void find_made(McUndo *u, const McContext *ctx)
{
    uint64_t newest = u->rule->newest(ctx);

    u->flag = newest > u->number;
    u->number = newest;
}

static bool remove_made(const McUndo *u, const McContext *ctx)
{
    return u->flag && u->rule->remove(ctx->tracer, u->number);
}

/* ---- ka fault seed ------------------------------------------------------- */

static void store_seed(McUndo *u, const McContext *ctx, const McArgs *args)
{
    u->number = kt_faults_seed(ctx->tracer);
}

static bool undo_seed(const McUndo *u, const McContext *ctx)
{
    kt_faults_set_seed(ctx->tracer, u->number);
    return true;
}

/* ---- ka trace on --------------------------------------------------------- */

static void store_trace(McUndo *u, const McContext *ctx, const McArgs *args)
{
    KtTraceInfo info;

    kt_query_begin(ctx->tracer);
    kt_query_trace_info(ctx->tracer, &info);
    kt_query_end(ctx->tracer);
    u->flag = info.on;
}

/* A trace that another one replaced is gone. */
static bool undo_trace(const McUndo *u, const McContext *ctx)
{
    return !u->flag && kt_trace_stop(ctx->tracer);
}

/* ---- ka access on -------------------------------------------------------- */

static void store_access(McUndo *u, const McContext *ctx, const McArgs *args)
{
    KtAccessInfo info = { 0 };

    kt_access_info(ctx->tracer, &info);
    g_free(info.text);
    u->flag = info.wanted;
}

/* Filters that others replaced are gone. */
static bool undo_access(const McUndo *u, const McContext *ctx)
{
    return !u->flag && kt_access_disarm(ctx->tracer);
}

/* ---- ka access watch ----------------------------------------------------- */

static bool changes_watch(const McArgs *args)
{
    return args->name;
}

static void store_watch(McUndo *u, const McContext *ctx, const McArgs *args)
{
    KtBlockWatchInfo info;

    kt_block_watch_info(ctx->tracer, &info);
    u->flag = info.any;
}

/* The block that was watched before, and its records, are gone. */
static bool undo_watch(const McUndo *u, const McContext *ctx)
{
    return !u->flag && kt_block_watch_stop(ctx->tracer);
}

/* ---- the table ----------------------------------------------------------- */

/* Commands without a row change nothing. */
static const McUndoRule rules[] = {
    { MC_CMD_ON, .before = store_switch, .undo = undo_switch },
    { MC_CMD_OFF, .before = store_switch, .undo = undo_switch },
    { MC_CMD_MARK, .changes = makes_mark, .before = store_mark,
      .undo = undo_mark },
    { MC_CMD_LEAK_SCAN, .changes = sets_every, .before = store_every,
      .undo = undo_every },
    { MC_CMD_CALLS_ADD, .before = store_newest, .after = find_made,
      .undo = remove_made, .newest = newest_watch, .remove = kt_calls_remove },
    { MC_CMD_CALLS_DEL },
    { MC_CMD_CALLS_CLEAR },
    { MC_CMD_FAULT_ADD, .before = store_newest, .after = find_made,
      .undo = remove_made, .newest = newest_fault,
      .remove = kt_faults_remove },
    { MC_CMD_TRACE_ON, .before = store_trace, .undo = undo_trace },
    { MC_CMD_TRACE_OFF },
    { MC_CMD_ACCESS_ON, .before = store_access, .undo = undo_access },
    { MC_CMD_ACCESS_OFF },
    { MC_CMD_ACCESS_WATCH, .changes = changes_watch, .before = store_watch,
      .undo = undo_watch },
    { MC_CMD_FAULT_SEED, .before = store_seed, .undo = undo_seed },
    { MC_CMD_FAULT_DEL },
    { MC_CMD_LEAK_DISMISS },
    { MC_CMD_CLEAR },
};

static const McUndoRule *find_rule(const McArgs *args)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(rules); i++) {
        const McUndoRule *r = &rules[i];

        if (args->command == &mc_commands[r->command]) {
            return !r->changes || r->changes(args) ? r : NULL;
        }
    }
    return NULL;
}

void mc_undo_before(McUndo *u, const McContext *ctx, const char *line)
{
    g_auto(McArgs) args;

    *u = (McUndo) { 0 };
    mc_args_init(&args, ctx);
    if (!mc_parse(&args, line, NULL) || mc_given(&args, MC_OPT_HELP)) {
        return;
    }
    u->rule = find_rule(&args);
    if (u->rule && u->rule->before) {
        u->rule->before(u, ctx, &args);
    }
}

void mc_undo_after(McUndo *u, const McContext *ctx)
{
    if (u->rule && u->rule->after) {
        u->rule->after(u, ctx);
    }
}

bool mc_undo(const McUndo *u, const McContext *ctx)
{
    return !u->rule || (u->rule->undo && u->rule->undo(u, ctx));
}

void mc_undo_clear(McUndo *u)
{
    g_clear_pointer(&u->name, g_free);
}
