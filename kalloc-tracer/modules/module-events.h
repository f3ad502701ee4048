/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Module events: loads and unloads of modules, with a place between two events.
 *
 * The vCPU thread that sees a load or unload adds a module event with the
 * number of the last event that was pushed before. Whoever applies events
 * handles it after that event and before the next one. So the map, the reports
 * and the journal have one common order:
 *
 *     event 41 | event 42 | (module "ext4" is unloaded, after = 42) | event 43
 *
 * Threads: any; the queue has a lock of its own.
 */
#ifndef KT_MODULE_EVENTS_H
#define KT_MODULE_EVENTS_H

#include "kalloc-tracer/journal/journal-format.h"
#include "kalloc-tracer/kt.h"

typedef struct KtModuleEvents KtModuleEvents;
typedef struct KtModule KtModule;       /* module-leaks.h */

/** What happened to a module. KT_MODULE_EVENT_INHERITED: it was in a snapshot
 *  that was loaded. KT_MODULE_EVENT_LOG, _CALLS, _FAULTS and _ALIAS are none:
 *  their frames have lines of the kernel's log, calls, faults, and names of
 *  caches, which have a place among the events, too. */
typedef enum KtModuleEventKind {
    KT_MODULE_EVENT_LOADED,
    KT_MODULE_EVENT_GONE,
    KT_MODULE_EVENT_INHERITED,
    KT_MODULE_EVENT_LOG,
    KT_MODULE_EVENT_CALLS,
    KT_MODULE_EVENT_FAULTS,
    KT_MODULE_EVENT_ALIAS,
} KtModuleEventKind;

/**
 * struct KtModuleEvent - a module or BPF program was loaded or unloaded
 * @after: number of the last event before it
 * @module: (owned, nullable) description; NULL for a BPF program
 * @frame: (owned, nullable) content of the journal's frame; NULL without a
 *         journal
 */
typedef struct KtModuleEvent {
    uint64_t after;
    KtModuleEventKind kind;
    KtModule *module;
    GByteArray *frame;
} KtModuleEvent;

/** kt_module_events_new() - Create an empty queue. @free_module frees modules
 *  of events that are never popped. Returns: (owned). */
KtModuleEvents *kt_module_events_new(void (*free_module)(KtModule *module));
/** kt_module_events_free() - Free the queue and its events; NULL does
 *  nothing. */
void kt_module_events_free(KtModuleEvents *n);

/** kt_module_events_add() - Add a copy of @note, which owns the content from
 *  now on. Any thread. */
void kt_module_events_add(KtModuleEvents *n, const KtModuleEvent *note);
/** kt_module_events_next() - Return @after of the first module event,
 *  UINT64_MAX if there is none. Any thread, without a lock. */
GS_HOT uint64_t kt_module_events_next(const KtModuleEvents *n);
/** kt_module_events_before() - Return how many of the @n events after number
 *  @done come before the first module event; 0 if that is due now. Any
 *  thread, without a lock. */
unsigned kt_module_events_before(const KtModuleEvents *notes, uint64_t done,
                                 unsigned n);
/** kt_module_events_pop() - Remove the first module event, if its place is not
 *  after event @done. Any thread. Returns: false if none is due; else the
 *  caller owns the content of @out. */
bool kt_module_events_pop(KtModuleEvents *n, uint64_t done,
                           KtModuleEvent *out);

#endif /* KT_MODULE_EVENTS_H */
