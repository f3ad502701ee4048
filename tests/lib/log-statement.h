/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The statement "log" of scripts of events, see events.h. Single-threaded. */
#ifndef LOG_STATEMENT_H
#define LOG_STATEMENT_H

#include "tests/lib/events.h"

/** log_statement() - add a line of the kernel's log. @a: key -> value */
void log_statement(TestWorld *w, GHashTable *a);

#endif /* LOG_STATEMENT_H */
