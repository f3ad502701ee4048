/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The stack and the task of an access. On the vCPU's own thread. */
#ifndef KT_WATCH_STACK_H
#define KT_WATCH_STACK_H

#include "kalloc-tracer/capture/watch-code.h"

/** struct KtWatchStack - @n frames; the first is the instruction */
typedef struct KtWatchStack {
    uint64_t frame[KT_MAX_FRAMES];
    unsigned n;
    GsStop stop;
} KtWatchStack;

/** kt_watch_task() - Set the task of @m->ev. Returns: the address of its
 *  task_struct. */
uint64_t kt_watch_task(KtHookCall *m);
/** kt_watch_walk() - Walk the stack of the access by the instruction at @pc.
 *  @entry: it is the first of its function, and @m->ra is set; @task: of
 *  kt_watch_task() */
void kt_watch_walk(KtHookCall *m, uint64_t pc, bool entry, uint64_t task,
                   KtWatchStack *out);
/** kt_watch_walk_code() - Walk the stack anew if the function at @pc, which is
 *  no entry, may have no frame record: its code says who called it. Does
 *  nothing where all functions have one, or if there were too many such walks.
 *  @out: (in/out) of kt_watch_walk() */
void kt_watch_walk_code(KtHookCall *m, uint64_t pc, uint64_t task,
                        KtWatchStack *out);
/** kt_watch_intern() - Return the id of a stack. */
KtStackId kt_watch_intern(const KtHookCall *m, const KtWatchStack *st);
/** kt_watch_first() - Return the first frame whose code answers for the access:
 *  it is no leaf and no memory function; @st->n if there is none. */
unsigned kt_watch_first(const KtCodeClasses *c, const KtWatchStack *st);
/** kt_watch_frame_class() - Return the class of the code of frame @i. */
KtCodeClass kt_watch_frame_class(const KtCodeClasses *c, const KtWatchStack *st,
                                 unsigned i);

#endif /* KT_WATCH_STACK_H */
