/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines of source in answers of ka that have the addresses of --pc. */
#ifndef MC_LINE_ANSWERS_H
#define MC_LINE_ANSWERS_H

#include "monitor-cmds/program/source-lines.h"

/**
 * ka_lines_add() - (owned) return the answer with lines of source
 * @l: (nullable) NULL: no lines are known, only the addresses are removed
 * @answer: untrusted
 * @keep: keep the addresses of the long form. JSON keeps them anyhow
 *
 *     "            make_it+0x18[mod] @ffffffffc0100017"
 *  -> "            make_it+0x18[mod]  drivers/mod.c:12"
 *
 *     "stack_symbols":[S...], "stack_at":[A...]  gets  "stack_lines":[L...]
 */
char *ka_lines_add(KaLines *l, const char *answer, bool keep);

#endif /* MC_LINE_ANSWERS_H */
