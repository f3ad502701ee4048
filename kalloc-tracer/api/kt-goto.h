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

#include "kalloc-tracer/api/kt-block-watch.h"
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

/* ---- the last access to a word ------------------------------------------- */
/*
 * Which instruction wrote to a word last is not in the journal. A replay that
 * goes through the time before finds it, and a second one goes there:
 *
 *     @since              the last access        here
 *       |        x              x                  |
 *     1 load a state --> the page is trapped --> stops at or behind it
 *     2 load a state --> stops at the access
 *
 * With -icount the VM's clock is another one at each instruction. So the clock
 * and the program counter are an exact place.
 */

/** Bytes of a word. */
#define KT_GOTO_WORD 8u

/**
 * struct KtWordSearch - look for the last access to the word at @va, before
 * now
 * @loads: loads count, too
 * @since: accesses before this event do not count
 * @since_us: its time
 */
typedef struct KtWordSearch {
    uint64_t va;
    bool loads;
    KtEventPlace since;
    uint64_t since_us;
} KtWordSearch;

/** What is known of an instruction that the replay has to reach. */
typedef enum KtGotoStep {
    KT_GOTO_NONE,       /* no instruction was asked for, or the VM went on */
    KT_GOTO_SEARCHES,   /* accesses are collected when the VM continues */
    KT_GOTO_NOTHING,    /* there is no such access */
    KT_GOTO_KNOWN,      /* the replay stops at it when the VM continues */
    KT_GOTO_THERE,      /* the VM stands at it; it has not run */
} KtGotoStep;

/**
 * struct KtGotoInsn - an instruction that the replay has to reach
 * @is_word: it is that of a search for @word; else of the access at @place
 * @access: from KT_GOTO_KNOWN on; its stack and task are of KT_GOTO_THERE
 * @found: accesses that were found
 */
typedef struct KtGotoInsn {
    KtGotoStep step;
    bool is_word;
    KtWordSearch word;
    KtEventPlace place;
    KtBlockAccess access;
    uint64_t pc;
    uint64_t found;
} KtGotoInsn;

/* ---- a replay ------------------------------------------------------------ */

/**
 * struct KtGoto - a replay that can stop at an event, or at an instruction
 * @journal: (borrowed) the file of the recorded run
 * @block: an address in the block that was asked for last; 0: none
 * @now: return the place of the last event that was made
 * @us: return the time of the VM's clock
 * @stop_at: stop the VM at @place. The VM has to be continued. If @place is
 *           behind, a VM state has to be loaded first. .event 0: do not stop
 * @search: look for an access, likewise. Returns: false if the VM runs
 * @insn: read the state of the instruction that was asked for
 * @has_begin: return true if a VM state was saved before the first event
 */
typedef struct KtGoto {
    const char *journal;
    uint64_t block;
    KtEventPlace (*now)(void *opaque);
    uint64_t (*us)(void *opaque);
    void (*stop_at)(void *opaque, KtEventPlace place);
    bool (*search)(void *opaque, const KtWordSearch *word);
    void (*insn)(void *opaque, KtGotoInsn *out);
    bool (*has_begin)(void *opaque);
    void *opaque;
} KtGoto;

#endif /* KT_API_GOTO_H */
