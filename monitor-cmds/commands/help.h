/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What run-down, help, man page and markdown share.
 */
#ifndef MC_HELP_H
#define MC_HELP_H

#include "monitor-cmds/table/tables.h"

/** struct McSection - prose of the manual; paragraphs end with a NULL. */
typedef struct McSection {
    const char *title;
    const char *paragraphs[8];
} McSection;
extern const McSection mc_sections[];
extern const unsigned mc_n_sections;

/** mc_option_help() - (owned) the option's help, with the names that its
 *  value may have. */
char *mc_option_help(McOptionId id);
/** mc_option_usage() - (owned) "-h, --help" or "-n N". */
char *mc_option_usage(McOptionId id);

#endif /* MC_HELP_H */
