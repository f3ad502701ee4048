/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A parsed script: blocks of commands. script.c makes it, script-run.c runs it.
 * Immutable; any thread.
 */
#ifndef MC_SCRIPT_H
#define MC_SCRIPT_H

#include "monitor-cmds/commands/commands.h"

/** struct McScriptCommand - a line; @text: (owned) the command, without "ka" */
typedef struct McScriptCommand {
    unsigned line;
    char *text;
    bool pauses;            /* see mc_pauses() */
} McScriptCommand;

/**
 * struct McScriptBlock - commands that run one after another
 * @module: (owned) NULL for MC_MOMENT_FOUND
 * @line: of the line that begins it; 0: the commands outside of blocks
 * @commands: (owned) McScriptCommand
 */
typedef struct McScriptBlock {
    McMoment moment;
    char *module;
    unsigned line;
    GArray *commands;
} McScriptBlock;

/** struct McScript - see mc.h; @blocks: (owned) McScriptBlock, in the order of
 *  the file */
struct McScript {
    char *name;
    GArray *blocks;
    unsigned n_commands;
};

/** mc_script_block_is_for() - Return true if the block runs at @moment of
 *  @module. In names of modules "-" and "_" are the same, as for modprobe. */
bool mc_script_block_is_for(const McScriptBlock *b, McMoment moment,
                            const char *module);

/* ---- undo ---------------------------------------------------------------- */

/*
 * Undo: put back what a command of a script changed.
 *
 *     mc_undo_before(&u, ctx, line);
 *     mc_run(ctx, line);
 *     mc_undo_after(&u, ctx);
 *     ...
 *     mc_undo(&u, ctx);           later, the newest command first
 *
 * On the thread of mc_run(); no lock of its own.
 */
typedef struct McUndoRule McUndoRule;

/**
 * struct McUndo - what was before a command
 * @rule: NULL if the command changed nothing
 * @name: (owned, nullable) the word of the command
 * @flag, @number: what the rule stores
 */
typedef struct McUndo {
    const McUndoRule *rule;
    char *name;
    bool flag;
    uint64_t number;
} McUndo;

void mc_undo_clear(McUndo *u);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(McUndo, mc_undo_clear)

/** mc_undo_before() - Store what the command will change. @line: as for
 *  mc_run(), already checked. @u: (out) the caller clears it */
void mc_undo_before(McUndo *u, const McContext *ctx, const char *line);
/** mc_undo_after() - Store what the command, which succeeded, has made. */
void mc_undo_after(McUndo *u, const McContext *ctx);
/** mc_undo() - Undo the command. Returns: false if that is not possible; a
 *  command that changes nothing is always undone. */
bool mc_undo(const McUndo *u, const McContext *ctx);
/** mc_undo_changed() - Return true if the command changed something. */
static inline bool mc_undo_changed(const McUndo *u)
{
    return u->rule != NULL;
}

#endif /* MC_SCRIPT_H */
