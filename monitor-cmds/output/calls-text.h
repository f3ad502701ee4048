/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls as text: arguments, result and caller, which all forms of a call print
 * in the same words. On the thread of one command; no locks.
 */
#ifndef MC_CALLS_TEXT_H
#define MC_CALLS_TEXT_H

#include "monitor-cmds/output/row.h"

/**
 * struct McCallRow - a call
 * @view: the record
 * @name: names of its function; @name.name is "?" if they are not known
 * @has_task, @pid, @comm: the task
 * @kernel: (nullable) for the name of the caller
 * @tracer: (borrowed) which has the record
 */
typedef struct McCallRow {
    KtCallView view;
    KtPointName name;
    bool has_task;
    uint32_t pid;
    char comm[17];
    const GsKernel *kernel;
    KtTracer *tracer;
} McCallRow;

/** mc_call_row() - fill in a row; its strings are borrowed from the tracer.
 *  @kernel: (borrowed, nullable) */
void mc_call_row(McCallRow *row, KtTracer *t, const GsKernel *kernel,
                 const KtCallView *view);
/** mc_call_is_mark() - return true if the row is the begin or end of a
 *  session. */
bool mc_call_is_mark(const McCallRow *row);
/** mc_call_mark_module() - return (owned) the module of a session mark. */
char *mc_call_mark_module(const McCallRow *row);

/** McCallArgFn - called for an argument: its name and value in words */
typedef void McCallArgFn(void *opaque, const char *name, const char *value);
/** mc_call_foreach_arg() - call @fn for each argument in the order of the
 *  prototype. Without a prototype these are the registers, arg0 and so on. */
void mc_call_foreach_arg(const McCallRow *row, McCallArgFn *fn, void *opaque);
/** McCallDerefFn - called for a value of --deref: what it is, and in words, "?"
 *  if it could not be read */
typedef void McCallDerefFn(void *opaque, const KtCallDeref *deref,
                           const char *value);
/** mc_call_foreach_deref() - call @fn for each value of --deref. */
void mc_call_foreach_deref(const McCallRow *row, McCallDerefFn *fn,
                           void *opaque);
/** mc_put_call_result_derefs() - append ", ret->f_mode=29" for each value that
 *  the result leads to */
void mc_put_call_result_derefs(GString *s, const McCallRow *row);
/** mc_put_call_args() - append "size=320, flags=0xdc0", and what arguments lead
 *  to */
void mc_put_call_args(GString *s, const McCallRow *row);
/** mc_call_has_result() - return false for a call that has not returned, and if
 *  the type is void. */
bool mc_call_has_result(const McCallRow *row);
/** mc_put_call_result() - append the result; nothing if the type is void.
 *  Returns: false if there is none */
bool mc_put_call_result(GString *s, const McCallRow *row);
/** mc_put_call_caller() - append "<- name+0x10[module]", in hex without a
 *  kernel */
void mc_put_call_caller(GString *s, const McCallRow *row);

/** mc_print_call() - print a call, or the begin or end of a session */
void mc_print_call(McOut *o, const McCallRow *row);
extern const McObject mc_call_object, mc_session_object;

#endif /* MC_CALLS_TEXT_H */
