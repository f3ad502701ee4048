/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Statements of scripts of events that have a file of their own, and what
 * statements read of their words. events.h has the language. @a: key -> value.
 * Single-threaded.
 */
#ifndef TEST_STATEMENTS_H
#define TEST_STATEMENTS_H

#include "tests/lib/events.h"

/** arg_text() - (borrowed) a value, or @none. */
const char *arg_text(GHashTable *a, const char *key, const char *none);
/** arg_number() - a value, or @none. What is no number aborts. */
uint64_t arg_number(GHashTable *a, const char *key, int base, uint64_t none);
uint64_t arg_hex(GHashTable *a, const char *key);
uint64_t arg_dec(GHashTable *a, const char *key);
/** arg_stack() - intern stack=. */
KtStackId arg_stack(KtTracer *t, GHashTable *a);
/** arg_task() - intern the task of pid= and comm=. */
KtTaskId arg_task(KtTracer *t, GHashTable *a);

void alias_statement(TestWorld *w, GHashTable *a);
/** call_statement() - add a record of a call. The first begins the boot, with
 *  room for records. */
void call_statement(TestWorld *w, GHashTable *a);
void enter_statement(TestWorld *w, GHashTable *a);
void kernel_statement(TestWorld *w, GHashTable *a);
void log_statement(TestWorld *w, GHashTable *a);
void mark_statement(TestWorld *w, GHashTable *a);
void types_statement(TestWorld *w, GHashTable *a);
void watched_statement(TestWorld *w, GHashTable *a);

#endif /* TEST_STATEMENTS_H */
