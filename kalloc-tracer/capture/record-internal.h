/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files record*.c share. */
#ifndef KT_RECORD_PARTS_H
#define KT_RECORD_PARTS_H

#include "kalloc-tracer/kernel/load-code.h"
#include "kalloc-tracer/capture/record.h"

/** kt_record_complete() - @m->ev has its backtrace, task and time from here
 *  on; once a callback. */
GS_HOT void kt_record_complete(KtHookCall *m);
/** kt_record_event() - @m->ev, completed, as an event of that kind. */
void kt_record_event(KtHookCall *m, KtEventKind kind, KtHookId hook,
                     uint64_t va);
/** kt_record_push() - push @m->ev, which kt_record_complete() has filled. */
static inline void kt_record_push(KtHookCall *m, KtEventKind kind,
                                  KtHookId hook, uint64_t va)
{
    m->ev.kind = kind;
    m->ev.hook = m->wrapper.v ? m->wrapper : hook;
    m->ev.va = va;
    kt_tracer_push(m->c->tracer, m->v->index, &m->ev);
}

/** kt_record_lose() - something was not recorded: counted, and a gap. */
void kt_record_lose(KtHookCall *m, KtCounter why);
/** kt_record_lose_call() - likewise a call that was entered, which @hands_out
 *  memory when it returns; while nothing is recorded only the first. */
void kt_record_lose_call(KtHookCall *m, KtCounter why, bool hands_out);
/** kt_record_await() - @call is under way: its return will be seen. */
GS_HOT void kt_record_await(KtHookCall *m, const KtPendingCall *call);
/** kt_record_free_site() - the wrapper that a free is called from. */
GS_HOT KtHookId kt_record_free_site(KtHookCall *m);

/** kt_record_outer_tells() - is @va the work of @call, of a KT_HOOK_OUTER
 *  function, itself? Sets the flags of the event that tells so. */
GS_HOT bool kt_record_outer_tells(KtHookCall *m, const KtPendingCall *call,
                                  uint64_t va);
/** kt_record_sizes() - layer, sizes and cache of what @call allocated at
 *  @va. */
GS_HOT void kt_record_sizes(KtHookCall *m, const KtPendingCall *call,
                            uint64_t va);

/** kt_record_pages_enter(), kt_record_pages_leave() - of a row of the page
 *  allocator. */
void kt_record_pages_enter(KtHookCall *m, const KtHookRow *hook, KtHookId id);
void kt_record_pages_leave(KtHookCall *m, const KtPendingCall *call,
                           uint64_t result);

#endif /* KT_RECORD_PARTS_H */
