/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What comes between two events: see module-events.h.
 */
#include "kalloc-tracer/modules/module-events.h"

#include <pthread.h>

#include "kalloc-tracer/modules/module-leaks.h"

/*
 * @lock: of @waiting; not a GMutex, which the thread sanitizer does not see
 * @next: (atomic) place of the first
 * @waiting: KtNote*, by place; of one place, in the order that they came
 */
struct KtNotes {
    pthread_mutex_t lock;
    uint64_t next;
    GQueue waiting;
};

static void note_free(gpointer p)
{
    KtNote *note = p;

    kt_module_free(note->module);
    if (note->frame) {
        g_byte_array_unref(note->frame);
    }
    g_free(note);
}

KtNotes *kt_notes_new(void)
{
    KtNotes *n = g_new0(KtNotes, 1);

    pthread_mutex_init(&n->lock, NULL);
    g_queue_init(&n->waiting);
    n->next = UINT64_MAX;
    return n;
}

void kt_notes_free(KtNotes *n)
{
    if (n) {
        g_queue_clear_full(&n->waiting, note_free);
        pthread_mutex_destroy(&n->lock);
        g_free(n);
    }
}

static void publish_locked(KtNotes *n)
{
    const KtNote *first = g_queue_peek_head(&n->waiting);

    __atomic_store_n(&n->next, first ? first->after : UINT64_MAX,
                     __ATOMIC_RELEASE);
}

/* Behind those of the same place. */
static gint by_place(gconstpointer there, gconstpointer added, gpointer opaque)
{
    return ((const KtNote *)there)->after <= ((const KtNote *)added)->after ?
           -1 : 1;
}

void kt_notes_add(KtNotes *n, const KtNote *note)
{
    pthread_mutex_lock(&n->lock);
    g_queue_insert_sorted(&n->waiting, g_memdup2(note, sizeof(*note)),
                          by_place, NULL);
    publish_locked(n);
    pthread_mutex_unlock(&n->lock);
}

uint64_t kt_notes_next(const KtNotes *n)
{
    return __atomic_load_n(&n->next, __ATOMIC_ACQUIRE);
}

/* The place of a note was read before the note was added: by then it may be
 * long past. */
unsigned kt_notes_before(const KtNotes *notes, uint64_t done, unsigned n)
{
    uint64_t next = kt_notes_next(notes);

    if (next <= done) {
        return 0;
    }
    return MIN(next - done, n);
}

bool kt_notes_take(KtNotes *n, uint64_t done, KtNote *out)
{
    KtNote *first;
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
