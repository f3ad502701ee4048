/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The statements kernel and mark of events.h. Single-threaded. */
#ifndef TEST_JOURNAL_STATEMENTS_H
#define TEST_JOURNAL_STATEMENTS_H

#include "tests/lib/events.h"

/** kernel_statement() - write the kernel's symbols to the journal. It has no
 *  words. */
void kernel_statement(TestWorld *w, GHashTable *a);
/** mark_statement() - set a mark. @a: words of the statement. */
void mark_statement(TestWorld *w, GHashTable *a);

#endif /* TEST_JOURNAL_STATEMENTS_H */
