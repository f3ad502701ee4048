/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What comes between two events: see module-events.h.
 */
#include "kalloc-tracer/modules/module-events.h"

#include <pthread.h>

/*
 * @lock: of @waiting; not a GMutex, which the thread sanitizer does not see
 * @next: (atomic) place of the first
 * @waiting: KtModuleEvent*, by place; of one place, in the order that they came
 * @free_module: frees the module of an event that nobody took
 */
struct KtModuleEvents {
    pthread_mutex_t lock;
    uint64_t next;
    GQueue waiting;
    void (*free_module)(KtModule *module);
};

static void event_free(KtModuleEvents *n, KtModuleEvent *event)
{
    if (event->module) {
        n->free_module(event->module);
    }
    if (event->frame) {
        g_byte_array_unref(event->frame);
    }
    g_free(event);
}

KtModuleEvents *kt_module_events_new(void (*free_module)(KtModule *module))
{
    KtModuleEvents *n = g_new0(KtModuleEvents, 1);

    n->free_module = free_module;
    pthread_mutex_init(&n->lock, NULL);
    g_queue_init(&n->waiting);
    n->next = UINT64_MAX;
    return n;
}

void kt_module_events_free(KtModuleEvents *n)
{
    KtModuleEvent *event;

    if (!n) {
        return;
    }
    while ((event = g_queue_pop_head(&n->waiting))) {
        event_free(n, event);
    }
    pthread_mutex_destroy(&n->lock);
    g_free(n);
}

static void publish_locked(KtModuleEvents *n)
{
    const KtModuleEvent *first = g_queue_peek_head(&n->waiting);

    __atomic_store_n(&n->next, first ? first->after : UINT64_MAX,
                     __ATOMIC_RELEASE);
}

/* Behind those of the same place. */
static gint by_place(gconstpointer there, gconstpointer added, gpointer opaque)
{
    return ((const KtModuleEvent *)there)->after <=
                   ((const KtModuleEvent *)added)->after ?
               -1 :
               1;
}

void kt_module_events_add(KtModuleEvents *n, const KtModuleEvent *note)
{
    pthread_mutex_lock(&n->lock);
    g_queue_insert_sorted(&n->waiting, g_memdup2(note, sizeof(*note)),
                          by_place, NULL);
    publish_locked(n);
    pthread_mutex_unlock(&n->lock);
}

uint64_t kt_module_events_next(const KtModuleEvents *n)
{
    return __atomic_load_n(&n->next, __ATOMIC_ACQUIRE);
}

/* The place of a note was read before the note was added: by then it may be
 * long past. */
unsigned kt_module_events_before(const KtModuleEvents *notes, uint64_t done,
                                 unsigned n)
{
    uint64_t next = kt_module_events_next(notes);

    if (next <= done) {
        return 0;
    }
    return MIN(next - done, n);
}

bool kt_module_events_pop(KtModuleEvents *n, uint64_t done, KtModuleEvent *out)
{
    KtModuleEvent *first;
    bool due;

    pthread_mutex_lock(&n->lock);
    first = g_queue_peek_head(&n->waiting);
    due = first && first->after <= done;
    if (due) {
        *out = *first;
        g_free(g_queue_pop_head(&n->waiting));
        publish_locked(n);
    }
    pthread_mutex_unlock(&n->lock);
    return due;
}
