/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The statement "watched" of scripts of events. Single-threaded. */
#ifndef WATCHED_STATEMENT_H
#define WATCHED_STATEMENT_H

#include "tests/lib/events.h"

/** watched_statement() - watch a block, or add an access to it, see events.h.
 *  @a: the arguments of the statement */
void watched_statement(TestWorld *w, GHashTable *a);

#endif /* WATCHED_STATEMENT_H */
