/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Queue of module events: see module-events.h. */
#include "kalloc-tracer/modules/module-events.h"

#include <pthread.h>

/*
 * @lock: protects @waiting. No GMutex: the thread sanitizer does not know it
 * @next: (atomic) place of the first module event, UINT64_MAX if there is none
 * @waiting: KtModuleEvent*, by place; if the place is equal, oldest first
 * @free_module: frees the module of an event that was never popped
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

/* Sort a new event after those that have the same place. */
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

/* The place was read before the module event was added. Meanwhile events after
 * that place may have been applied: then the module event is due at once. */
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
