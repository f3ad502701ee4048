/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The statement "call" of scripts of events. Single-threaded. */
#ifndef CALL_STATEMENT_H
#define CALL_STATEMENT_H

#include "tests/lib/events.h"

/** call_statement() - add a record of a call, see events.h. The first begins
 *  the boot, with room for records. @a: the arguments of the statement */
void call_statement(TestWorld *w, GHashTable *a);

#endif /* CALL_STATEMENT_H */
