/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What comes between two events: modules that are loaded and unloaded.
 *
 * The vCPU thread that sees it adds a note. Whoever applies events takes the
 * note in its place, and only there it becomes part of the one order that the
 * map, the reports and the journal have in common.
 */
#ifndef KT_NOTES_H
#define KT_NOTES_H

#include "kalloc-tracer/journal/journal-format.h"
#include "kalloc-tracer/kt.h"

typedef struct KtModuleEvents KtModuleEvents;
typedef struct KtModule KtModule;       /* of module-leaks.h */

/** What becomes of a module; KT_MODULE_EVENT_INHERITED: it came with a VM's
 * state. */
typedef enum KtModuleEventKind {
    KT_MODULE_EVENT_LOADED,
    KT_MODULE_EVENT_GONE,
    KT_MODULE_EVENT_INHERITED
} KtModuleEventKind;

/**
 * struct KtModuleEvent - a module or BPF program comes or goes
 * @after: the place in the queue of the last event before
 * @module: (owned, nullable) what is known of a module
 * @frame: (owned, nullable) for the journal
 */
typedef struct KtModuleEvent {
    uint64_t after;
    KtModuleEventKind kind;
    KtModule *module;
    GByteArray *frame;
} KtModuleEvent;

/** kt_module_events_new() - (owned) @free_module: frees the module of an event
 *  that is still here when kt_module_events_free() is called. */
KtModuleEvents *kt_module_events_new(void (*free_module)(KtModule *module));
/** kt_module_events_free() - NULL does nothing. */
void kt_module_events_free(KtModuleEvents *n);

/** kt_module_events_add() - any thread; what @note owns is taken. */
void kt_module_events_add(KtModuleEvents *n, const KtModuleEvent *note);
/** kt_module_events_next() - the place that the next one comes behind,
 *  UINT64_MAX without one; any thread. */
GS_HOT uint64_t kt_module_events_next(const KtModuleEvents *n);
/** kt_module_events_before() - of the @n events behind @done those that come
 *  before the next one; 0 when it is due, that is, to be taken first. Any
 * thread. */
unsigned kt_module_events_before(const KtModuleEvents *notes, uint64_t done,
                                 unsigned n);
/** kt_module_events_pop() - the next one that comes behind @done or earlier,
 *  if there is one; any thread. The caller owns what is in @out. */
bool kt_module_events_pop(KtModuleEvents *n, uint64_t done,
                           KtModuleEvent *out);

#endif /* KT_NOTES_H */
