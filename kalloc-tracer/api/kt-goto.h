/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Go to an event of a replay: the VM stops when the guest has made it.
 *
 * A recorded run has one vCPU and is repeated exactly, so the number of an
 * event is an exact place in it:
 *
 *     journal   ALLOC  FREE  ACCESS  ALLOC  GAP  FREE
 *     place       1     2      2.1     3     3     4
 *
 * Accesses and gaps do not count, because a replay can have more of them than
 * the recorded run: access checks can be on in the replay alone, and commands
 * make gaps. An access has the place of the event before it, and its number
 * since then.
 */
#ifndef KT_API_GOTO_H
#define KT_API_GOTO_H

#include "kalloc-tracer/api/kt-event.h"

/** struct KtEventPlace - a place in a recording; 0: before the first event.
 *  @access: 0: the event itself */
typedef struct KtEventPlace {
    uint64_t event;
    uint64_t access;
} KtEventPlace;

/** kt_event_place_step() - Go from the place of the event before to that of
 *  @ev. */
static inline void kt_event_place_step(KtEventPlace *p, const KtEvent *ev)
{
    if (ev->kind == KT_EV_ACCESS) {
        p->access++;
    } else if (ev->kind != KT_EV_GAP) {
        p->event++;
        p->access = 0;
    }
}

/** kt_event_place_compare() - Return a number below 0, 0 or above 0, as
 *  strcmp() does. */
static inline int kt_event_place_compare(KtEventPlace a, KtEventPlace b)
{
    return a.event != b.event ? (a.event < b.event ? -1 : 1) :
           a.access != b.access ? (a.access < b.access ? -1 : 1) : 0;
}

/**
 * struct KtGoto - a replay that can stop at an event
 * @journal: (borrowed) the file of the recorded run
 * @block: an address in the block that was asked for last; 0: none
 * @now: return the place of the last event that was made
 * @stop_at: stop the VM at @place, which is ahead. The VM has to be continued
 * @has_begin: return true if a VM state was saved before the first event
 */
typedef struct KtGoto {
    const char *journal;
    uint64_t block;
    KtEventPlace (*now)(void *opaque);
    void (*stop_at)(void *opaque, KtEventPlace place);
    bool (*has_begin)(void *opaque);
    void *opaque;
} KtGoto;

#endif /* KT_API_GOTO_H */
