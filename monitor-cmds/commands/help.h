/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Prose and texts that the run-down, help, man page and markdown share. Called
 * by help.c and manual.c; any thread.
 */
#ifndef MC_HELP_H
#define MC_HELP_H

#include "monitor-cmds/table/tables.h"

/** struct McSection - a section of the manual; a NULL ends its paragraphs */
typedef struct McSection {
    const char *title;
    const char *paragraphs[8];
} McSection;
extern const McSection mc_sections[];
extern const unsigned mc_n_sections;

/** mc_option_help() - return (owned) the option's help, with the possible
 *  values */
char *mc_option_help(McOptionId id);
/** mc_option_usage() - return (owned) "-h, --help" or "-n N" */
char *mc_option_usage(McOptionId id);

#endif /* MC_HELP_H */
