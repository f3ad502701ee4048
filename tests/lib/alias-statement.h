/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The statement alias of events.h. Single-threaded. */
#ifndef TEST_ALIAS_STATEMENT_H
#define TEST_ALIAS_STATEMENT_H

#include "tests/lib/events.h"

/** alias_statement() - add another name of a kmem_cache. @a: words of the
 *  statement. */
void alias_statement(TestWorld *w, GHashTable *a);

#endif /* TEST_ALIAS_STATEMENT_H */
