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

#endif /* MC_SCRIPT_H */
