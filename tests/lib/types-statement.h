/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The statement "types" of scripts of events, see events.h. Single-threaded. */
#ifndef TYPES_STATEMENT_H
#define TYPES_STATEMENT_H

#include "tests/lib/events.h"

/** types_statement() - set the kernel's types, or what was learned instead.
 *  @a: key -> value */
void types_statement(TestWorld *w, GHashTable *a);

#endif /* TYPES_STATEMENT_H */
