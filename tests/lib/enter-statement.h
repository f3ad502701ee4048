/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The statement "enter" of scripts of events, see events.h. Single-threaded. */
#ifndef ENTER_STATEMENT_H
#define ENTER_STATEMENT_H

#include "tests/lib/events.h"

/** enter_statement() - the guest calls a function. @a: key -> value */
void enter_statement(TestWorld *w, GHashTable *a);

#endif /* ENTER_STATEMENT_H */
