/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The names that the values of some options can have, for completion and help.
 *
 * Reads only tables; any thread.
 */
#include "monitor-cmds/commands/commands.h"
#include "monitor-cmds/parse/parse.h"

/* Return the @n-th form of the command. */
static const char *form_at(const McCommand *c, unsigned n)
{
    for (unsigned i = 0; i < MC_FORM__COUNT; i++) {
        if (mc_form_applies(c, i) && !n--) {
            return mc_form_name(i);
        }
    }
    return NULL;
}

/* By the columns of the first kind of rows that a command prints. */
static const char *sort_at(const McCommand *c, unsigned i)
{
    if (c == &mc_commands[MC_CMD_TASK]) {
        return i < MC_TASK_BY__COUNT ? mc_task_sort_name(i) : NULL;
    }
    if (c && mc_command_objects[c - mc_commands][0] && !mc_sorts_sums(c)) {
        const McColumn *column = mc_sort_column(
            mc_command_objects[c - mc_commands][0], i);

        return column ? column->key : NULL;
    }
    return i < MC_TOP__COUNT ? mc_top_columns[i].key : NULL;
}

/* Return the @n-th column that is a sum. */
static const char *sum_at(unsigned n)
{
    for (unsigned i = 0; i < MC_TOP__COUNT; i++) {
        if (mc_top_is_sum(i) && !n--) {
            return mc_top_columns[i].key;
        }
    }
    return NULL;
}

const char *mc_option_choice(const McCommand *c, McOptionId id, unsigned i)
{
    switch (id) {
    case MC_OPT_SORT:
        return sort_at(c, i);
    case MC_OPT_BY:
        if (c == &mc_commands[MC_CMD_FAULT_LOG]) {
            return i ? NULL : mc_by_name(MC_BY_STACK);
        }
        return mc_option_name(id, i);
    case MC_OPT_VALUE:
        return sum_at(i);
    case MC_OPT_FORMAT:
        return form_at(c, i);
    default:
        return mc_option_name(id, i);
    }
}
